use tpc_ir::{Bindings, Graph, Op};

use tpc_gguf::{GgufFile, TensorInfo};

/// The size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSize {
    /// Elements of all tensors.
    pub params: u64,
    /// Bytes of all tensors.
    pub bytes: u64,
}

impl ModelSize {
    pub(super) fn of_file(file: &GgufFile) -> ModelSize {
        let header = file.header();
        ModelSize {
            params: header.tensors().iter().map(TensorInfo::elements).sum(),
            bytes: u64::try_from(header.data_bytes()).unwrap_or(u64::MAX),
        }
    }

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
