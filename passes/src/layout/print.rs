use std::fmt::Write;

use tpc_ir::program::Layout;
use tpc_ir::{Dim, Graph, Op, Value};

use super::Layouts;

/// Prints the layouts of weights, and each result of a view op as a view or a copy.
pub fn print(graph: &Graph, layouts: &Layouts) -> String {
    let mut out = String::new();
    for (inst, data) in graph.insts() {
        let value = data.results[0];
        let op = data.op.name();
        let _ = match &data.op {
            Op::Weight(_) => {
                let bytes = layouts.weight_storage[value.index()].map_or(0, |s| s.bytes);
                let format = layouts.format(value).name();
                writeln!(out, "{value} weight {format}, {bytes} bytes")
            }
            _ if layouts.is_view(graph, inst) => {
                writeln!(out, "{value} {op} view{}", place(graph, layouts, value))
            }
            _ if data.op.is_view() => writeln!(out, "{value} {op} copy"),
            _ => Ok(()),
        };
    }
    out
}

/// Prints ` of v3 at 128 strides [4, 256, 64, 256]`. Omits a zero offset, and the strides of views without gaps and
/// permuted axes.
fn place(graph: &Graph, layouts: &Layouts, value: Value) -> String {
    let Some((base, layout)) = layouts.layout(graph, value) else {
        return String::new();
    };
    let mut out = format!(" of {base}");
    if layout.offset != Dim::ZERO {
        let _ = write!(out, " at {}", layout.offset);
    }
    let ty = &graph.value(value).ty;
    if Layout::dense(ty).is_none_or(|d| d.strides != layout.strides) {
        let strides = layout.strides.each_ref().map(ToString::to_string);
        let _ = write!(out, " strides [{}]", strides.join(", "));
    }
    out
}
