//! Captured graphs: a graph of ggml's ops, as a program built it, read as a graph of the IR.
//!
//! A capture is a list of tensors in the order of computation, one JSON object per line: an op, its operands, and its
//! place in memory. It does not contain symbols, values or layers, only sizes, strides and offsets. Reading it takes
//! five steps:
//!
//! 1. `record` parses the lines and checks all that later steps rely on;
//! 2. `leaves` tells weights, inputs and states apart, by the ops that use them;
//! 3. `memory` and `ops` follow the program. A read takes a view out of the value that its memory holds (`strides`),
//!    and a write makes a new value. Every op of ggml has an entry in `lowering`: its counterpart in the IR, or several
//!    ops (`forms`, `compose`). An op without either becomes an [`Opaque`](tpc_ir::op::Opaque) op, with a note;
//! 4. `account` checks that the graph keeps all information of a record;
//! 5. `symbols` finds the sizes of the batch and makes them symbols. If there are several captures of a program, it
//!    uses the differences between them (`samples`). `layers` finds the layers.
//!
//! Tensor names do not affect the result; names are for people.

mod account;
mod append;
mod batch;
mod codes;
mod compose;
mod error;
mod forms;
mod layers;
mod leaves;
mod lowering;
mod memory;
mod operands;
mod ops;
mod rebuild;
mod record;
mod samples;
mod strides;
mod symbols;
mod trace;
mod write;

pub use account::{Field, Use, without_effect};
pub use codes::CODES;
pub use error::CaptureError;
pub use record::{Layout, Record, Role, packed, parse as records};
pub use write::write;

use std::collections::BTreeSet;

use tpc_ir::{Output, RANK, Symbol, Verified, stage};

use memory::Memory;
use tpc_diag::Diagnostic;

/// A captured graph.
#[derive(Clone, Debug)]
pub struct CapturedGraph {
    /// The graph.
    pub graph: Verified<stage::Model>,
    /// The size of each symbol of the graph in the capture.
    pub batch: Vec<(Symbol, u64)>,
    /// The number of layers, or 0 if no layers were found.
    pub n_layer: u32,
    /// Per instruction of the graph, its line in the capture, from 1.
    pub lines: Vec<usize>,
    /// Notes: ops without a rule, views that are not boxes, sizes that stay numbers.
    pub notes: Vec<Diagnostic>,
    /// The records.
    pub records: Vec<Record>,
    /// The leaves of the graph.
    pub leaves: Vec<Leaf>,
    /// The record of each named output, in their order.
    pub results: Vec<usize>,
}

/// A leaf of a captured graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The name of its weight, input or state.
    pub name: String,
    /// Its kind.
    pub role: Role,
    /// The position of its record.
    pub record: usize,
    /// The sizes of its value: the sizes of the record, or other sizes with the same elements in the same order.
    pub ne: [u64; RANK],
}

/// Reads a capture as a graph of this name.
///
/// # Errors
/// Returns an error with the line number if a line is not a record, or if the records do not fit together.
pub fn read(text: &str, name: &str) -> Result<CapturedGraph, CaptureError> {
    with_symbols(record::parse(text)?, name, Packed::Apart)
}

/// Reads records as an executable graph for batches of any size: with symbols, and each result whole, in its memory
/// layout.
///
/// # Errors
/// Returns an error if the records do not fit together.
pub fn read_sized(tensors: &[Record], name: &str) -> Result<CapturedGraph, CaptureError> {
    with_symbols(record::parse(&write(tensors))?, name, Packed::Whole)
}

fn with_symbols(
    tensors: Vec<Record>,
    name: &str,
    packed: Packed,
) -> Result<CapturedGraph, CaptureError> {
    let mut lowered = lower(&tensors, name, packed)?;
    let memory = &mut lowered.memory;
    let samples = samples::Samples::new(&tensors, &memory.graph, &memory.traces);
    let symbols::Symbolic { graph, batch, note } = symbols::introduce(&memory.graph, &samples)?;
    memory.graph = graph;
    memory.notes.extend(note);
    let captured = finish(lowered, batch)?;
    Ok(CapturedGraph {
        records: tensors,
        ..captured
    })
}

/// Reads records as an executable graph of their own sizes: without symbols, and each result whole, in its memory
/// layout.
///
/// # Errors
/// Returns an error if the records do not fit together.
pub fn read_fixed(tensors: &[Record], name: &str) -> Result<CapturedGraph, CaptureError> {
    // Parse the text again, because the parser checks the content of a file.
    let tensors = record::parse(&write(tensors))?;
    let captured = finish(lower(&tensors, name, Packed::Whole)?, Vec::new())?;
    Ok(CapturedGraph {
        records: tensors,
        ..captured
    })
}

/// Finishes lowered records as a verified graph with layers. The result's list of records is still empty.
fn finish(
    lowered: LoweredRecords<'_>,
    batch: Vec<(Symbol, u64)>,
) -> Result<CapturedGraph, CaptureError> {
    let Memory {
        graph,
        notes,
        lines,
        ..
    } = lowered.memory;
    let (graph, n_layer) = layers::assign(&graph);
    let graph = Verified::new(graph).map_err(|v| CaptureError::inconsistent(&v.errors[0]))?;
    Ok(CapturedGraph {
        graph,
        batch,
        n_layer,
        lines,
        notes,
        records: Vec::new(),
        leaves: lowered.leaves,
        results: lowered.results,
    })
}

/// Results that ggml packs into one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    /// Each is an output.
    Apart,
    /// The tensor is an output.
    Whole,
}

/// The graph of a capture before its symbols are known.
struct LoweredRecords<'t> {
    memory: Memory<'t>,
    leaves: Vec<Leaf>,
    /// The record of each named output.
    results: Vec<usize>,
}

/// Lowers the records to a graph with the sizes of the capture, without symbols and layers.
fn lower<'t>(
    tensors: &'t [Record],
    name: &str,
    packed: Packed,
) -> Result<LoweredRecords<'t>, CaptureError> {
    let mut leaves = leaves::Leaves::from_records(tensors);
    let mut m = Memory::new(tensors, name);
    for (i, t) in tensors.iter().enumerate() {
        if t.is_leaf() {
            continue;
        }
        for source in t.src.iter().flatten().chain(std::iter::once(&i)) {
            leaves.define(&mut m, tensors[*source].root);
        }
        m.set_line(t.line);
        ops::lower(&mut m, i).map_err(|e| CaptureError::inconsistent(&e))?;
    }
    let mut names = BTreeSet::new();
    let mut results = Vec::new();
    for i in leaves::results(tensors) {
        let values = match packed {
            Packed::Apart => m.results(i),
            Packed::Whole => m.read(i).map(|v| vec![v]),
        };
        for value in values.map_err(|e| CaptureError::inconsistent(&e))? {
            let name = leaves::unique(&mut names, &tensors[i]);
            m.graph.outputs.push(Output::Named(name, value));
            results.push(i);
        }
    }
    for (i, state) in leaves.states(&m) {
        let value = m.whole(i).map_err(|e| CaptureError::inconsistent(&e))?;
        if value != state {
            m.graph.outputs.push(Output::State { state, value });
        }
    }
    account::check(tensors, &m.graph, &m.lines, &m.traces)?;
    if m.graph.outputs.is_empty() {
        return Err(CaptureError::Empty {
            records: tensors.len(),
        });
    }
    Ok(LoweredRecords {
        leaves: leaves.list(&m),
        memory: m,
        results,
    })
}

#[cfg(test)]
mod tests;
