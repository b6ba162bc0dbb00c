//! Executable programs: a proved graph with an address per value and an order of all work.
//!
//! A [`Program`] adds the following to the graph:
//!
//! - *arenas*: the memory of each place, one each for weights, states and the work of a batch;
//! - *buffers*: ranges of arenas, for each [shape](BatchShape) of batches;
//! - *homes*: the buffer and the [layout](Layout) of each value. A view shares the buffer of its operand;
//! - *launches*: kernels and the instructions that each computes;
//! - *phases*: per place a queue of launches and waits. Work that needs tokens after the batch is in a later phase.
//!
//! Sizes that differ between batches stay polynomials. A batch runs with its own sizes at the offsets of a shape that
//! holds it.
//!
//! [`verify()`] checks the invariants in [its module](mod@verify).

mod arena;
mod batch_shape;
mod company;
mod launch;
mod layout;
mod schedule;
mod storage_format;
mod sums;
mod target;
mod tensors;
pub mod text;
pub mod verify;

pub use arena::{ALIGNMENT, ArenaData, ArenaKind, BufferData, Extent};
pub use batch_shape::BatchShape;
pub use company::Company;
pub use launch::{LaunchData, Work};
pub use layout::{BatchLayout, Home, Layout};
pub use schedule::{Phase, Queue, Step};
pub use storage_format::StorageFormat;
pub use sums::{SUM_BLOCK, SUM_CHUNKS, SumOrder, chunk_start, subtree};
pub use target::{FileTarget, FusionContext, Target, WeightPart, WeightStorage};
pub use tensors::Tensors;
pub use verify::verify;

use crate::entity::{Arena, Buffer, Launch, Value};
use crate::verify::{Verified, stage};

/// An executable program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The graph that it computes.
    pub graph: Verified<stage::Programs>,
    /// The shapes of its batches, smallest first.
    pub shapes: Vec<BatchShape>,
    /// The arenas.
    pub arenas: Vec<ArenaData>,
    /// The buffers.
    pub buffers: Vec<BufferData>,
    /// The home of each value; `None` if the value never reaches memory.
    pub homes: Vec<Option<Home>>,
    /// The launches.
    pub launches: Vec<LaunchData>,
    /// The phases of a batch, in order.
    pub phases: Vec<Phase>,
}

impl Program {
    /// Returns an arena.
    pub fn arena(&self, arena: Arena) -> &ArenaData {
        &self.arenas[arena.index()]
    }

    /// Returns a buffer.
    pub fn buffer(&self, buffer: Buffer) -> &BufferData {
        &self.buffers[buffer.index()]
    }

    /// Returns a launch.
    pub fn launch(&self, launch: Launch) -> &LaunchData {
        &self.launches[launch.index()]
    }

    /// Returns the home of a value.
    pub fn home(&self, value: Value) -> Option<&Home> {
        self.homes.get(value.index())?.as_ref()
    }

    /// Returns the smallest shape that holds a batch of these sizes.
    pub fn shape_for(&self, sizes: &crate::Bindings) -> Option<usize> {
        self.shapes.iter().position(|s| s.holds(sizes))
    }

    /// Returns the phase that computes a value; 0 for leaves, the operand's phase for views.
    pub fn phase_of(&self, value: Value) -> usize {
        let mut inst = self.graph.value(value).def.0;
        loop {
            let covers = |step: &Step| match step {
                Step::Launch(l) => self.launch(*l).covered_insts().contains(&inst),
                Step::Wait { .. } => false,
            };
            let found = self
                .phases
                .iter()
                .position(|p| p.queues.iter().any(|q| q.steps.iter().any(covers)));
            match (found, self.graph.inst(inst).operands.first()) {
                (Some(phase), _) => return phase,
                (None, Some(&of)) => inst = self.graph.value(of).def.0,
                (None, None) => return 0,
            }
        }
    }
}
