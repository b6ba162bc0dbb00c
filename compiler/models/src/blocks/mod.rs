//! The building blocks that descriptions choose from. Each reads its part of the description, asks for its tensors and
//! appends its instructions; none knows an architecture by name.

pub(crate) mod attention;
pub(crate) mod builder;
pub(crate) mod embedding;
pub(crate) mod ffn;
pub(crate) mod head;
pub(crate) mod hparams;
mod keys;
mod kv_cache;
pub(crate) mod latent;
mod moe;
pub(crate) mod nextn;
pub(crate) mod norm;
pub(crate) mod per_layer;
mod qk_norm;
pub(crate) mod recurrent;
mod rope;
mod rotation;
mod router;

pub use kv_cache::CACHE_TYPES;

use super::LowerOptions;
use super::description::Arch;
use hparams::{HParams, LayerHParams};

/// What a block is built for.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) arch: &'a Arch,
    pub(crate) hparams: &'a HParams,
    pub(crate) options: &'a LowerOptions,
}

/// What a layer's blocks are built for.
#[derive(Clone, Copy)]
pub(crate) struct LayerContext<'a> {
    pub(crate) model: Context<'a>,
    pub(crate) layer: &'a LayerHParams,
}
