//! Assembles proved programs into a runnable [`Program`].

use tpc_ir::program::{BatchShape, LaunchData, Program, Target};
use tpc_ir::{Graph, Verified, stage};

use crate::buffers::{Memory, buffers};
use crate::cover::cover;
use crate::layout::Layouts;
use crate::schedule::{Order, order, queues};

/// Assembles proved programs for one kind of device and the given batch shapes.
///
/// # Errors
/// Returns [`TooLarge`] if a size overflows or `shapes` is empty.
pub fn assemble(
    graph: &Verified<stage::Programs>,
    shapes: &[BatchShape],
    target: &dyn Target,
) -> Result<Program, TooLarge> {
    let shapes = &in_units(graph, shapes);
    let layouts = Layouts::of(graph, target).ok_or(TooLarge)?;
    let addressed = cover_and_address(graph, &layouts, shapes, target);
    let (launches, memory, order) = addressed.ok_or(TooLarge)?;
    let homes = memory.homes(graph, &layouts).ok_or(TooLarge)?;
    let mut program = Program {
        graph: graph.clone(),
        shapes: shapes.to_vec(),
        arenas: memory.arenas,
        buffers: memory.buffers,
        homes,
        launches,
        phases: Vec::new(),
    };
    program.phases = queues(&program, &order);
    Ok(program)
}

/// Returns the memory of [`assemble`]'s program, without queues.
///
/// # Errors
/// Returns the same errors as [`assemble`].
pub fn memory(
    graph: &Verified<stage::Programs>,
    shapes: &[BatchShape],
    target: &dyn Target,
) -> Result<Memory, TooLarge> {
    let shapes = &in_units(graph, shapes);
    let layouts = Layouts::of(graph, target).ok_or(TooLarge)?;
    let addressed = cover_and_address(graph, &layouts, shapes, target);
    let (_, memory, _) = addressed.ok_or(TooLarge)?;
    Ok(memory)
}

/// Returns the shapes in the graph's unit of cells.
pub(crate) fn in_units(graph: &Graph, shapes: &[BatchShape]) -> Vec<BatchShape> {
    let unit = graph.cell_unit.0;
    let shapes = shapes.iter();
    (shapes.map(|s| BatchShape {
        most: s.most.in_units(unit),
    }))
    .collect()
}

fn cover_and_address(
    graph: &Verified<stage::Programs>,
    layouts: &Layouts,
    shapes: &[BatchShape],
    target: &dyn Target,
) -> Option<(Vec<LaunchData>, Memory, Order)> {
    let mut launches = cover(graph, layouts, target);
    let ordered = |launches: &[_]| order(graph, layouts, launches);
    let (memory, order) = buffers(graph, layouts, &mut launches, ordered, shapes, target)?;
    Some((launches, memory, order))
}

/// The error for programs with a size that overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a size in the program overflows")]
pub struct TooLarge;
