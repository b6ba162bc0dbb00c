//! Captured graphs: what an engine built from ggml's ops, read back as a graph of the IR.
//!
//! A capture is a list of tensors in the order of computation, one JSON object per line: an op, its operands, and where
//! its memory is. It has no symbols, no values and no layers, only sizes, strides and offsets. Reading it takes four
//! steps:
//!
//! 1. `record` parses the lines and checks everything that later steps rely on;
//! 2. `leaves` tells weights, inputs and states apart, by what is done with them;
//! 3. `memory` and `ops` follow the program: a view is taken out of the value that its memory holds when it is read
//!    (`strides`), a write makes a new value, and every op of ggml has an entry in `lowering`: its counterpart in the IR,
//!    or several ops (`forms`, `compose`). An op without either becomes an [`Opaque`](tpc_ir::op::Opaque) op, and a note
//!    says so;
//! 4. `symbols` finds out which sizes are those of the batch and makes them symbols again, `layers` where one layer
//!    ends and the next begins.
//!
//! Names are for people: no name of a tensor decides anything.

mod append;
mod codes;
mod compose;
mod error;
mod forms;
mod layers;
mod leaves;
mod lowering;
mod memory;
mod ops;
mod rebuild;
mod record;
mod strides;
mod symbols;
mod write;

pub use codes::CODES;
pub use error::CaptureError;
pub use record::{Layout, Record, packed, parse as records};
pub use write::write;

use std::collections::BTreeSet;

use tpc_ir::{Output, Symbol, Verified, stage};

use memory::Memory;
use tpc_diag::Diagnostic;

/// A captured graph.
#[derive(Clone, Debug)]
pub struct CapturedGraph {
    /// The graph.
    pub graph: Verified<stage::Model>,
    /// What each symbol of the graph was in the capture.
    pub batch: Vec<(Symbol, u64)>,
    /// Layers that were found; 0 where none were told apart.
    pub n_layer: u32,
    /// Per instruction of the graph, the line of the capture that it comes from, counted from 1.
    pub lines: Vec<usize>,
    /// What is worth knowing: ops without a rule, views that are no boxes, sizes that stay numbers.
    pub notes: Vec<Diagnostic>,
    /// The records.
    pub records: Vec<Record>,
}

/// Reads a capture.
///
/// # Errors
/// When a line is no record, or the records do not fit together; the error has the line.
pub fn read(text: &str, name: &str) -> Result<CapturedGraph, CaptureError> {
    let tensors = record::parse(text)?;
    let Memory {
        graph,
        mut notes,
        lines,
        ..
    } = lower(&tensors, name)?;
    let symbols::Symbolic { graph, batch, note } = symbols::introduce(&graph)?;
    notes.extend(note);
    let (graph, n_layer) = layers::assign(&graph);
    let graph = Verified::new(graph).map_err(|v| CaptureError::inconsistent(&v.errors[0]))?;
    Ok(CapturedGraph {
        graph,
        batch,
        n_layer,
        lines,
        notes,
        records: tensors,
    })
}

/// The graph with the sizes of the capture.
fn lower<'t>(tensors: &'t [Record], name: &str) -> Result<Memory<'t>, CaptureError> {
    let mut leaves = leaves::Leaves::of(tensors);
    let mut m = Memory::new(tensors, name);
    for (i, t) in tensors.iter().enumerate() {
        if t.is_leaf() {
            continue;
        }
        for source in t.src.iter().flatten().chain(std::iter::once(&i)) {
            leaves.define(&mut m, tensors[*source].root);
        }
        m.at(t.line);
        ops::lower(&mut m, i).map_err(|e| CaptureError::inconsistent(&e))?;
    }
    let mut names = BTreeSet::new();
    for i in leaves::results(tensors) {
        for value in m.results(i).map_err(|e| CaptureError::inconsistent(&e))? {
            let name = leaves::unique(&mut names, &tensors[i]);
            m.graph.outputs.push(Output::Named(name, value));
        }
    }
    for (i, state) in leaves.states(&m) {
        let value = m.whole(i).map_err(|e| CaptureError::inconsistent(&e))?;
        if value != state {
            m.graph.outputs.push(Output::State { state, value });
        }
    }
    if m.graph.outputs.is_empty() {
        return Err(CaptureError::Empty {
            records: tensors.len(),
        });
    }
    Ok(m)
}

#[cfg(test)]
mod tests;
