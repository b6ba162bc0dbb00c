//! Building blocks that descriptions choose from. A block reads its part of the description, requests its tensors and
//! appends its instructions. Blocks do not name architectures.

mod activation;
mod adapters;
mod attention;
pub(crate) mod builder;
mod channel_mix;
mod compressed;
pub(crate) mod context;
pub(crate) mod embedding;
mod ffn;
mod ffn_input;
pub(crate) mod head;
pub(crate) mod hyper;
mod indexer;
mod kept_stream;
mod kv_cache;
mod latent;
pub(crate) mod layer;
mod log_scale;
mod mask;
mod moe;
mod network;
pub(crate) mod nextn;
mod ngrams;
pub(crate) mod norm;
mod own_value;
pub(crate) mod per_layer;
mod post_norm;
mod qk_norm;
mod recurrent;
pub(crate) mod residual;
mod residual_sum;
mod rope;
mod rotation;
mod router;
mod switch;
pub(crate) mod table;
mod taps;
mod token_values;
mod value_experts;

pub use kv_cache::{CACHE_TYPES, IK_CACHE_TYPES};
