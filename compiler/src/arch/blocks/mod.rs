//! The building blocks that descriptions choose from. Each reads its part of the description, asks for its tensors and
//! appends its instructions; none knows an architecture by name.

pub(in crate::arch) mod attention;
pub(in crate::arch) mod builder;
pub(in crate::arch) mod embedding;
pub(in crate::arch) mod ffn;
pub(in crate::arch) mod head;
pub(in crate::arch) mod hparams;
mod keys;
mod kv_cache;
pub(in crate::arch) mod latent;
mod moe;
pub(in crate::arch) mod nextn;
pub(in crate::arch) mod norm;
pub(in crate::arch) mod per_layer;
mod qk_norm;
pub(in crate::arch) mod recurrent;
mod rope;
mod rotation;
mod router;

pub use kv_cache::CACHE_TYPES;

use super::LowerOptions;
use super::description::Arch;
use hparams::{HParams, LayerHParams};

/// What a block is built for.
#[derive(Clone, Copy)]
pub(in crate::arch) struct Context<'a> {
    pub(in crate::arch) arch: &'a Arch,
    pub(in crate::arch) hparams: &'a HParams,
    pub(in crate::arch) options: &'a LowerOptions,
}

/// What a layer's blocks are built for.
#[derive(Clone, Copy)]
pub(in crate::arch) struct LayerContext<'a> {
    pub(in crate::arch) model: Context<'a>,
    pub(in crate::arch) layer: &'a LayerHParams,
}
