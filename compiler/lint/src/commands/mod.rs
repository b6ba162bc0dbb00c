//! Lints of llama.cpp command lines: predictions for llama.cpp and for tpc.

mod assumed_devices;
mod bad_value;
mod batch_width;
mod batches;
mod beside;
mod cache_kernels;
mod changed_model;
mod draft_vocabulary;
mod fitted;
mod full_window;
mod main_gpu;
mod no_fused_attention;
pub(crate) mod remote_devices;
mod rounded_sums;
mod rows;
mod said_twice;
mod tensor_split;
mod unfused_attention;
mod unknown_flag;
mod value_cache;

use super::{Check, Command, EntityKind, Lint};

pub(super) static LINTS: &[&Lint] = &[
    &tensor_split::REFUSED,
    &tensor_split::NOT_LISTED,
    &tensor_split::MANY,
    &tensor_split::MIXED,
    &tensor_split::BLOCKS,
    &tensor_split::EMBEDDINGS,
    &tensor_split::MEASURED,
    &tensor_split::ROWS,
    &tensor_split::LINEAR,
    &tensor_split::ATTENTION,
    &tensor_split::TORN,
    &tensor_split::BIAS,
    &tensor_split::CACHES,
    &tensor_split::NORMED,
    &tensor_split::KV_HEADS,
    &tensor_split::SLOPES,
    &rows::DROPPED,
    &no_fused_attention::LINT,
    &unfused_attention::LINT,
    &value_cache::LINT,
    &cache_kernels::LINT,
    &remote_devices::LINT,
    &rounded_sums::LINT,
    &beside::LINT,
    &draft_vocabulary::LINT,
    &batches::LINT,
    &batch_width::LINT,
    &main_gpu::LINT,
    &rows::LINT,
    &unknown_flag::LINT,
    &bad_value::LINT,
    &said_twice::LINT,
    &assumed_devices::LINT,
    &fitted::LINT,
    &changed_model::LINT,
    &full_window::LINT,
];
