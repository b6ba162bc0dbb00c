//! The KV cache. Each layer has a state for keys and one for values, written row by row and read up to the last row in
//! use. Layers with a window have shorter caches.

use tpc_ir::op::{InputKind, SetRows};
use tpc_ir::{DType, Dim, Symbol, TensorType, Value};

use super::builder::Builder;
use super::context::LayerContext;
use crate::error::ArchError;
use crate::hparams::Reach;

/// Cache element types that can be written at run time.
pub const CACHE_TYPES: [DType; 9] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::Q8_0,
    DType::Q5_1,
    DType::Q5_0,
    DType::Q4_1,
    DType::Q4_0,
    DType::Iq4Nl,
];

/// Cache element types that only `ik_llama.cpp` has.
pub const IK_CACHE_TYPES: [DType; 2] = [DType::Q6_0, DType::Q8Kv];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheKind {
    Keys,
    Values,
    /// Keys of a sparse-attention indexer.
    IndexerKeys,
    /// Rows of blocks, which serve as keys and values.
    Blocks,
}

/// Sizes and inputs of caches, which depend on a layer's reach.
pub(super) struct CacheInputs {
    cells: Symbol,
    used: Symbol,
    rows: InputKind,
    pub(super) mask: InputKind,
}

impl CacheInputs {
    pub(super) fn new(reach: Reach) -> CacheInputs {
        match reach {
            Reach::Full => CacheInputs {
                cells: Symbol::NCtx,
                used: Symbol::NKv,
                rows: InputKind::CacheRows,
                mask: InputKind::Mask,
            },
            Reach::Window => CacheInputs {
                cells: Symbol::NCtxSwa,
                used: Symbol::NKvSwa,
                rows: InputKind::CacheRowsSwa,
                mask: InputKind::MaskSwa,
            },
        }
    }
}

/// Stores `new: [d, heads, n_tokens]`. Returns the cells in use, `[d, n_kv, heads]`.
pub(super) fn store(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    kind: CacheKind,
    new: Value,
) -> Result<Value, ArchError> {
    let options = cx.model.options;
    let (tensor, dtype) = match kind {
        CacheKind::Keys => ("cache_k", options.cache_type_k),
        CacheKind::Values => ("cache_v", options.cache_type_v),
        CacheKind::IndexerKeys => ("cache_k_indexer", options.cache_type_k),
        CacheKind::Blocks => ("cache_k_blocks", options.cache_type_k),
    };
    // Without a window, a cache has one cell per token.
    let reach = match kind {
        CacheKind::Keys | CacheKind::Values => cx.layer.reach,
        CacheKind::IndexerKeys | CacheKind::Blocks => Reach::Full,
    };
    let [d, heads, ..] = b.dims(new).clone();
    check(dtype, kind, head_size(&d), cx.layer.index)?;
    let inputs = CacheInputs::new(reach);
    let ty = TensorType::new(dtype, [d, heads, Dim::symbol(inputs.cells)]);
    let cache = b.state(&format!("{tensor}_l{}", cx.layer.index), ty);
    let rows = b.input(inputs.rows);
    let stored = b.push(SetRows::along(2), vec![cache, new, rows], tensor)?;
    b.update(cache, stored);
    let used = b.slice(stored, 2, 0, Dim::symbol(inputs.used), tensor)?;
    b.swap_heads(used, tensor)
}

pub(super) fn head_size(d: &Dim) -> u64 {
    d.as_const()
        .expect("invariant: the size of heads is constant")
}

fn check(dtype: DType, kind: CacheKind, size: u64, layer: u32) -> Result<(), ArchError> {
    let known = CACHE_TYPES.contains(&dtype) || IK_CACHE_TYPES.contains(&dtype);
    let reason = if !known {
        "this type cannot be written at run time"
    } else if !size.is_multiple_of(dtype.block_len()) {
        "its blocks would run across heads"
    } else {
        return Ok(());
    };
    let (option, what) = match kind {
        CacheKind::Keys => ("--cache-type-k", "key heads"),
        CacheKind::IndexerKeys => ("--cache-type-k", "keys of indexers"),
        CacheKind::Blocks => ("--cache-type-k", "rows of blocks"),
        CacheKind::Values => ("--cache-type-v", "value heads"),
    };
    Err(ArchError::CacheType {
        option,
        dtype,
        what,
        size,
        layer,
        reason,
    })
}
