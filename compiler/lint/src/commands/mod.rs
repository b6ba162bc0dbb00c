//! Lints of llama.cpp's command lines: what llama.cpp would do with them, and what tpc would.

mod alibi;
mod assumed_devices;
mod attention_on_host;
mod bad_value;
mod batches;
mod beside;
mod cache_kernels;
mod cache_on_host;
mod changed_model;
mod draft_vocabulary;
mod fitted;
mod full_window;
mod main_gpu;
mod measured_failure;
mod no_fused_attention;
mod refused;
pub(crate) mod remote_devices;
mod rounded_sums;
mod rows;
mod said_twice;
mod too_many_devices;
mod unfused_attention;
mod unknown_flag;
mod value_cache;

use super::{Check, Command, EntityKind, Lint};

/// The lints of command lines, in the order in which findings are told.
pub(super) static LINTS: &[&Lint] = &[
    &refused::LINT,
    &cache_on_host::LINT,
    &alibi::LINT,
    &attention_on_host::LINT,
    &no_fused_attention::LINT,
    &unfused_attention::LINT,
    &value_cache::LINT,
    &cache_kernels::LINT,
    &too_many_devices::LINT,
    &measured_failure::LINT,
    &remote_devices::LINT,
    &rounded_sums::LINT,
    &beside::LINT,
    &draft_vocabulary::LINT,
    &batches::LINT,
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
