//! Captured graphs: reads a program's graph of ggml ops as an IR graph.
//!
//! A capture lists tensors in the order of computation, one JSON object per line: an op, its operands, and its memory
//! location. It has sizes, strides and offsets, but no symbols, values or layers. Reading takes five steps:
//!
//! 1. `record` parses and checks the lines.
//! 2. `leaves` classifies the leaves.
//! 3. `memory` and `ops` follow the program. Ops without an equivalent become [`Opaque`](tpc_ir::op::Opaque) ops.
//! 4. `account` checks that the graph keeps all information of the records.
//! 5. `symbols` turns batch sizes into symbols. `layers` finds the layers.
//!
//! Tensor names do not affect the result.

mod account;
mod append;
mod batch;
mod codes;
mod compose;
mod computed;
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
pub use computed::Computed;
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
    /// The captured size of each symbol.
    pub batch: Vec<(Symbol, u64)>,
    /// The number of layers; 0 if none were found.
    pub n_layer: u32,
    /// The line of each instruction in the capture, from 1.
    pub lines: Vec<usize>,
    /// Notes on ops without a rule, views that are not boxes, and fixed sizes.
    pub notes: Vec<Diagnostic>,
    /// The records.
    pub records: Vec<Record>,
    /// The leaves of the graph.
    pub leaves: Vec<Leaf>,
    /// The record of each named output, in order.
    pub results: Vec<usize>,
}

/// A leaf of a captured graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The name of the weight, input or state.
    pub name: String,
    /// The kind.
    pub role: Role,
    /// The position of the record.
    pub record: usize,
    /// The sizes of the value: the record's, or other sizes with the same elements in the same order.
    pub ne: [u64; RANK],
}

/// Reads a capture as a graph with this name.
///
/// # Errors
/// Returns an error with the line number if the capture is invalid.
pub fn read(text: &str, name: &str) -> Result<CapturedGraph, CaptureError> {
    with_symbols(record::parse(text)?, name, Packed::Apart)
}

/// Reads records as an executable graph with symbolic batch sizes. Each result is a whole tensor and keeps its memory
/// layout.
///
/// # Errors
/// Returns an error if the records are inconsistent.
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

/// Like [`read_sized`], with fixed sizes.
///
/// # Errors
/// Returns an error if the records are inconsistent.
pub fn read_fixed(tensors: &[Record], name: &str) -> Result<CapturedGraph, CaptureError> {
    read_computed(tensors, name).map(|(captured, _)| captured)
}

/// Like [`read_fixed`], with the graph's value of each record.
///
/// # Errors
/// Returns an error if the records are inconsistent.
pub fn read_computed(
    tensors: &[Record],
    name: &str,
) -> Result<(CapturedGraph, Vec<Computed>), CaptureError> {
    // Parse the text again, because the parser checks the content.
    let tensors = record::parse(&write(tensors))?;
    let lowered = lower(&tensors, name, Packed::Whole)?;
    let computed = computed::computed(&lowered.memory.traces);
    let captured = finish(lowered, Vec::new())?;
    let captured = CapturedGraph {
        records: tensors,
        ..captured
    };
    Ok((captured, computed))
}

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

/// The treatment of results that ggml packs into one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packed {
    Apart,
    Whole,
}

struct LoweredRecords<'t> {
    memory: Memory<'t>,
    leaves: Vec<Leaf>,
    results: Vec<usize>,
}

/// Lowers the records to a graph with the captured sizes, without symbols and layers.
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
