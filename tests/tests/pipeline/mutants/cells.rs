//! Faults in caches divided by cells.

use tpc_ir::op::{FlashAttn, MergeAttn, Slice, Sum};
use tpc_ir::{CellParts, Dim, Graph, Op};

use super::super::random::Rng;
use super::draft::Draft;
use super::faults::{Fault, Sites, some};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "cells: rows written by another owner",
        make: another_owner,
    },
    Fault {
        name: "cells: rows written by every device",
        make: written_everywhere,
    },
    Fault {
        name: "cells: a state of other parts",
        make: another_state,
    },
    Fault {
        name: "cells: attention with the mask of another part",
        make: another_mask,
    },
    Fault {
        name: "cells: values of another part",
        make: another_values,
    },
    Fault {
        name: "cells: a sink in every part",
        make: sink_in_parts,
    },
    Fault {
        name: "cells: parts added without weights",
        make: no_weights,
    },
    Fault {
        name: "cells: a part left out",
        make: part_left_out,
    },
];

/// Returns parts of the next device.
fn next(cells: CellParts) -> CellParts {
    CellParts {
        first: (cells.first + cells.count) % cells.of,
        ..cells
    }
}

fn another_owner(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(
        d,
        rng,
        |i| matches!(&d.lines[i].op, Op::SetRows(s) if s.cells.is_some()),
    )?;
    if let Op::SetRows(s) = &mut d.lines[at].op {
        s.cells = s.cells.map(next);
    }
    Some(vec![at])
}

fn written_everywhere(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(
        d,
        rng,
        |i| matches!(&d.lines[i].op, Op::SetRows(s) if s.cells.is_some()),
    )?;
    if let Op::SetRows(s) = &mut d.lines[at].op {
        s.cells = s.cells.map(|c| CellParts::all(c.count));
    }
    Some(vec![at])
}

fn another_state(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(
        d,
        rng,
        |i| matches!(&d.lines[i].op, Op::State(s) if s.cells.is_some()),
    )?;
    if let Op::State(s) = &mut d.lines[at].op {
        s.cells = s.cells.map(next);
    }
    // The update writes other cells than the state has.
    let state = d.lines[at].results[0];
    let update = d
        .lines
        .iter()
        .position(|l| l.operands.first() == Some(&state))?;
    Some(vec![at, update])
}

fn in_parts(d: &Draft, i: usize) -> bool {
    matches!(&d.lines[i].op, Op::FlashAttn(f) if f.lse)
}

/// Replaces an operand of attention by the same operand of attention on the next device.
fn another(d: &mut Draft, rng: &mut Rng, operand: usize) -> Option<Sites> {
    let at = some(d, rng, |i| in_parts(d, i))?;
    let other = (at + 1..d.lines.len()).find(|&i| in_parts(d, i))?;
    let (own, value) = (
        d.lines[at].operands[operand],
        d.lines[other].operands[operand],
    );
    let copied = d.def(value).max(d.def(own));
    if copied > at || d.cells[own].ty != d.cells[value].ty || own == value {
        return None;
    }
    let place = d.cells[own].place;
    let there = d.result(at, tpc_ir::op::Copy.into(), &[value]);
    d.cells[there].place = place;
    d.lines[at + 1].operands[operand] = there;
    Some(vec![at, at + 1])
}

fn another_mask(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    another(d, rng, 3)
}

fn another_values(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    another(d, rng, 2)
}

fn sink_in_parts(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        in_parts(d, i) && matches!(&d.lines[i].op, Op::FlashAttn(FlashAttn { .. }))
    })?;
    let heads = d.cells[d.lines[at].operands[0]].ty.dims[2].clone();
    let place = d.cells[d.lines[at].results[0]].place;
    let sinks = d.lines.iter().position(|l| {
        let cell = &d.cells[l.results[0]];
        matches!(l.op, Op::Weight(_))
            && cell.place == place
            && cell.ty.dims[0] == heads
            && cell.ty.dims[1].is_one()
    })?;
    let sinks = d.lines[sinks].results[0];
    d.lines[at].operands.push(sinks);
    Some(vec![at])
}

fn merges(d: &Draft, i: usize) -> bool {
    matches!(&d.lines[i].op, Op::MergeAttn(MergeAttn))
}

fn no_weights(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| merges(d, i))?;
    let parts = d.lines[at].operands[0];
    let width = d.cells[d.lines[at].results[0]].ty.dims[0].clone();
    let slice = Slice {
        axis: 0,
        start: Dim::ZERO,
        len: width.clone(),
    };
    let values = d.result(at, slice.into(), &[parts]);
    d.cells[values].ty.dims[0] = width;
    d.lines[at + 1].op = Sum { axis: 3 }.into();
    d.lines[at + 1].operands = vec![values];
    Some(vec![at + 1])
}

fn part_left_out(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| merges(d, i))?;
    let parts = d.lines[at].operands[0];
    let count = d.cells[parts].ty.dims[3].as_const()?;
    let slice = Slice {
        axis: 3,
        start: Dim::ZERO,
        len: (count - 1).into(),
    };
    let fewer = d.result(at, slice.into(), &[parts]);
    d.cells[fewer].ty.dims[3] = (count - 1).into();
    d.lines[at + 1].operands[0] = fewer;
    Some(vec![at + 1])
}
