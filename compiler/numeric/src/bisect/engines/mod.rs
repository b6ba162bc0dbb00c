//! Runs each op of a captured graph on two engines, and compares the results.
//!
//! 1. `distinct` groups ops with the same parameters, types and sizes. One op of each group runs.
//! 2. `leaves` makes the bytes of the op's operands: random numbers in the operands' types.
//! 3. The engines run the op on these bytes. `reference` is the engine that needs no server.
//! 4. `report` lists the ops whose results differ, and the largest error of each kind of op.
//!
//! Each op runs alone, so an error of one op does not reach the next.

mod distinct;
mod leaves;
mod reference;
mod report;
mod tolerance;

pub use reference::Reference;
pub use report::{EngineComparison, KindErrors, OpDifference, Unrun, UnrunReason};

use std::collections::BTreeMap;

use tpc_core::golden::Distance;
use tpc_ggml::capture::{Record, read_fixed};

use super::BisectError;
use super::content::Contents;
use super::values;
use distinct::Alone;
use report::Outcome;

/// Runs graphs: the reference executor, or a server of ggml's RPC protocol.
pub trait Engine {
    /// Runs a graph. `leaves` has the bytes of each leaf. Returns the memory of the owner of record `wanted` after
    /// the run.
    ///
    /// # Errors
    /// Returns the reason if the engine did not run the graph.
    fn run(
        &mut self,
        graph: &[Record],
        leaves: &BTreeMap<usize, Vec<u8>>,
        wanted: usize,
    ) -> Result<Memory, EngineError>;
}

/// The memory of a tensor after a run.
#[derive(Clone, Debug)]
pub enum Memory {
    /// Bytes in the tensor's type.
    Bytes(Vec<u8>),
    /// One number per element.
    Numbers(Vec<f64>),
}

/// A reason why an engine did not run a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The engine does not know an op or type, or lacks memory.
    Unsupported(String),
    /// The engine failed, but runs other graphs.
    Failed(String),
    /// The engine failed, and runs no other graph.
    Stopped(String),
}

/// Runs each op of a graph alone on two engines, and compares the results. `tolerance` is the largest error (NMSE) of
/// results that agree; `None` selects a tolerance per op.
///
/// # Errors
/// Returns an error if the graph is inconsistent.
pub fn compare_engines(
    records: &[Record],
    engines: [&mut dyn Engine; 2],
    tolerance: Option<f64>,
) -> Result<EngineComparison, BisectError> {
    let graph = read_fixed(records, "graph").map_err(|e| BisectError::Capture(0, e))?;
    let mut out = EngineComparison::default();
    let [a, b] = engines;
    let ops = distinct::ops(records, &graph);
    let mut stopped = false;
    for op in &ops {
        let outcome = match (&op.part, stopped) {
            (None, _) => Outcome::Unrun(UnrunReason::TooLarge.because(None)),
            (_, true) => Outcome::Unrun(UnrunReason::EngineStopped.because(None)),
            (Some(part), false) => match run(part, [&mut *a, &mut *b]) {
                Ok(distance) => Outcome::Ran(distance),
                Err(Failed::Leaves(why)) => {
                    Outcome::Unrun(UnrunReason::NoOperands.because(Some(why)))
                }
                Err(Failed::Engine(_, EngineError::Unsupported(why))) => {
                    Outcome::Unrun(UnrunReason::Unsupported.because(Some(why)))
                }
                Err(Failed::Engine(side, EngineError::Failed(why))) => Outcome::Failed(side, why),
                Err(Failed::Engine(side, EngineError::Stopped(why))) => {
                    stopped = true;
                    Outcome::Failed(side, why)
                }
            },
        };
        let allowed = tolerance.unwrap_or_else(|| tolerance::of(&records[op.record]));
        out.add(records, op, outcome, allowed);
    }
    Ok(out)
}

enum Failed {
    Leaves(String),
    Engine(usize, EngineError),
}

fn run(op: &Alone, engines: [&mut dyn Engine; 2]) -> Result<Distance, Failed> {
    let mut contents = Contents::default();
    contents.read_by(&op.records);
    let leaves = leaves::bytes(&op.records, &contents).map_err(Failed::Leaves)?;
    let mut values = Vec::new();
    for (side, engine) in engines.into_iter().enumerate() {
        let memory = engine.run(&op.records, &leaves, op.wanted);
        let memory = memory.map_err(|e| Failed::Engine(side, e))?;
        let numbers = numbers(&op.records, op.wanted, memory);
        values.push(numbers.map_err(|why| Failed::Engine(side, EngineError::Unsupported(why)))?);
    }
    Ok(values::between(&values[0], &values[1]))
}

/// Returns the elements of a record, or of its owner if the record has another type.
fn numbers(records: &[Record], wanted: usize, memory: Memory) -> Result<Vec<f64>, String> {
    let t = &records[wanted];
    let owner = &records[t.root];
    let all = match memory {
        Memory::Numbers(all) => all,
        Memory::Bytes(bytes) => leaves::decoded(owner.dtype, &bytes)?,
    };
    match values::elements(t, owner, &all) {
        Some(own) => Ok(own),
        None => Ok(all),
    }
}
