//! How large a model and its caches are.

use tpc_ir::{Bindings, Graph, Op, Window, cache_cells};

use tpc_gguf::{GgufFile, TensorInfo};

/// The size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSize {
    /// Elements of all its tensors.
    pub params: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl ModelSize {
    /// The size that a file's header states.
    pub(super) fn of_file(file: &GgufFile) -> ModelSize {
        let header = file.header();
        ModelSize {
            params: header.tensors().iter().map(TensorInfo::elements).sum(),
            bytes: u64::try_from(header.data_bytes()).unwrap_or(u64::MAX),
        }
    }

    /// The size of a graph's weights.
    pub(super) fn of_graph(graph: &Graph) -> ModelSize {
        let batch = Bindings::default();
        let mut out = ModelSize {
            params: 0,
            bytes: 0,
        };
        for (_, inst) in graph.insts() {
            if let Op::Weight(_) = inst.op {
                let ty = &graph.value(inst.results[0]).ty;
                let elements = ty.elements().and_then(|n| n.as_const()).unwrap_or(0);
                out.params = out.params.saturating_add(elements);
                out.bytes = out.bytes.saturating_add(ty.bytes(&batch).unwrap_or(0));
            }
        }
        out
    }
}

/// Cells of the KV caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Of layers that attend to everything.
    pub n_ctx: u64,
    /// Of layers with a sliding window.
    pub n_ctx_swa: u64,
}

impl CacheSizes {
    /// The sizes for a context, of which each sequence has its part: layers with a window keep its tokens and a batch more per
    /// sequence, in steps of 256 as the usual engine does.
    pub fn new(n_ctx: u64, window: Option<Window>, ubatch: u64, parallel: u64) -> CacheSizes {
        let each = match parallel {
            0 | 1 => n_ctx,
            n => n_ctx / n,
        };
        let swa = window.map_or(each, |w| {
            let cells = w.tokens().saturating_add(ubatch);
            cells
                .checked_next_multiple_of(256)
                .unwrap_or(each)
                .min(each)
        });
        CacheSizes {
            n_ctx: cache_cells(each, parallel),
            n_ctx_swa: cache_cells(swa, parallel),
        }
    }
}
