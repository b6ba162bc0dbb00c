//! Building blocks that descriptions choose from. A block reads its part of the description, requests its tensors and
//! appends its instructions. Blocks do not name architectures.

mod activation;
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
mod mask;
mod moe;
mod network;
pub(crate) mod nextn;
mod ngrams;
pub(crate) mod norm;
pub(crate) mod per_layer;
mod qk_norm;
mod recurrent;
pub(crate) mod residual;
mod rope;
mod rotation;
mod router;

pub use kv_cache::{CACHE_TYPES, IK_CACHE_TYPES};
