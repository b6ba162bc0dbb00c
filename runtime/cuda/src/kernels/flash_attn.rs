use tpc_ir::op::FlashAttn;

use super::attention::{Attention, FAMILY};
use super::flash_decode::{self, FlashDecode};
use super::flash_prefill::FlashPrefill;
use super::kernel::{GRID, Geometry, Request, Selection, kernel};

/// The number of cells per warp above which a block gets another warp.
const CELLS: usize = 64;
/// The maximum number of warps per block. The warps of a block share one query head of a token.
const WARPS: usize = 8;

/// Attention kernels, which divide the cells in different ways.
///
/// - `Decode`: up to [`flash_decode::TOKENS`] tokens and a writable cache type. Blocks share the cells of a KV head.
/// - `Prefill`: more tokens and a cache that f16 can hold. A block computes a tile of rows.
/// - `PerHead`: all other cases, such as heads that exceed shared memory. A block computes one token and query head.
enum AttentionKernel {
    Decode(FlashDecode),
    Prefill(FlashPrefill),
    PerHead,
}

impl AttentionKernel {
    fn select(a: &Attention<'_>) -> AttentionKernel {
        // Without columns of V, a row may still have a log-sum-exp, which the other kernels do not write.
        if a.v.max_dims[0] == 0 {
            return AttentionKernel::PerHead;
        }
        match a.q.max_dims[1] <= flash_decode::TOKENS {
            true => FlashDecode::of(a).map_or(AttentionKernel::PerHead, AttentionKernel::Decode),
            false => FlashPrefill::of(a).map_or(AttentionKernel::PerHead, AttentionKernel::Prefill),
        }
    }
}

/// A second result receives the int8 terms of the first result.
pub(super) fn flash_attn(op: &FlashAttn, request: &Request<'_>) -> Selection {
    let attention = Attention::new(op, request)?;
    match AttentionKernel::select(&attention) {
        AttentionKernel::Decode(kernel) => kernel.kernel(&attention),
        AttentionKernel::Prefill(kernel) => kernel.kernel(&attention),
        AttentionKernel::PerHead => per_head(&attention),
    }
}

/// Selects the kernel with one block per token and query head, which supports all sizes and types.
fn per_head(a: &Attention<'_>) -> Selection {
    let params = a.with_slopes(a.params().u32(0))?;
    let [dk, tokens, heads, streams] = a.q.max_dims;
    let warps = a.k.max_dims[1].div_ceil(CELLS).clamp(1, WARPS);
    let floats = dk + warps * (32 + 2 + a.v.max_dims[0]);
    let units = tokens.saturating_mul(heads).saturating_mul(streams);
    let geometry = Geometry {
        grid: [units.clamp(1, GRID * 1024) as u32, 1, 1],
        threads: 32 * warps as u32,
        shared_bytes: u32::try_from(4 * floats).map_err(|_| "the heads are too wide")?,
    };
    kernel(a.instance(FAMILY, "flash_attn"), params, geometry)
}
