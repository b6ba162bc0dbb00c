//! Faults that lowering, a rewrite or a memory planner could make.

use tpc_ir::op::{
    ArgSort, Binary, BinaryKind, Copy, GetRows, Glu, InputKind, Mean, Norm, NormKind, Pad, Reshape,
    Scale, Slice, SortOrder, Sum, Unary, UnaryKind, Weight,
};
use tpc_ir::{DType, Dim, Graph, Interval, Op, Output, Place};

use super::super::random::Rng;
use super::draft::Draft;

/// The faulty lines of the changed programs.
pub(super) type Sites = Vec<usize>;

pub(super) struct Fault {
    pub(super) name: &'static str,
    /// Makes the fault; `None` if the draft has no place for it.
    pub(super) make: fn(&mut Draft, &mut Rng, &Graph) -> Option<Sites>,
}

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "all-reduce dropped",
        make: all_reduce_dropped,
    },
    Fault {
        name: "all-reduce twice",
        make: all_reduce_twice,
    },
    Fault {
        name: "all-reduce of another value",
        make: all_reduce_of_another,
    },
    Fault {
        name: "a device left out of an all-reduce",
        make: device_left_out,
    },
    Fault {
        name: "mean instead of sum",
        make: mean_instead_of_sum,
    },
    Fault {
        name: "copy of another value",
        make: copy_of_another,
    },
    Fault {
        name: "copies to the wrong devices",
        make: copies_swapped,
    },
    Fault {
        name: "copy dropped",
        make: copy_dropped,
    },
    Fault {
        name: "residual or bias on every device",
        make: added_everywhere,
    },
    Fault {
        name: "wrong segment of a weight",
        make: wrong_segment,
    },
    Fault {
        name: "range of a weight shifted",
        make: range_shifted,
    },
    Fault {
        name: "range of a weight resized",
        make: range_resized,
    },
    Fault {
        name: "range ends within a block",
        make: block_misaligned,
    },
    Fault {
        name: "parts of a weight swapped between devices",
        make: parts_swapped,
    },
    Fault {
        name: "parts of a state swapped between devices",
        make: state_parts_swapped,
    },
    Fault {
        name: "state never renewed",
        make: state_stale,
    },
    Fault {
        name: "state read before it is renewed",
        make: state_read_early,
    },
    Fault {
        name: "operands swapped",
        make: operands_swapped,
    },
    Fault {
        name: "another operand",
        make: another_operand,
    },
    Fault {
        name: "op on the wrong device",
        make: wrong_device,
    },
    Fault {
        name: "op left out",
        make: op_left_out,
    },
    Fault {
        name: "another window",
        make: another_window,
    },
    Fault {
        name: "slice shifted",
        make: slice_shifted,
    },
    Fault {
        name: "padding shifted",
        make: padding_shifted,
    },
    Fault {
        name: "another function",
        make: another_function,
    },
    Fault {
        name: "pieces in another order",
        make: pieces_reordered,
    },
    Fault {
        name: "another tensor",
        make: another_tensor,
    },
    Fault {
        name: "zero divided by zero",
        make: |d, rng, _| spoiled(d, rng, |d, at, z| vec![d.result(at, div(), &[z, z])]),
    },
    Fault {
        name: "zero times infinity",
        make: |d, rng, _| {
            spoiled(d, rng, |d, at, z| {
                let kind = UnaryKind::Log;
                let log = d.result(at, Unary { kind }.into(), &[z]);
                vec![log, d.result(at + 1, mul(), &[z, log])]
            })
        },
    },
    Fault {
        name: "zero scaled by infinity",
        make: |d, rng, _| {
            spoiled(d, rng, |d, at, z| {
                let (scale, bias) = (f32::INFINITY, 0.0);
                vec![d.result(at, Scale { scale, bias }.into(), &[z])]
            })
        },
    },
    Fault {
        name: "norm of zeros",
        make: |d, rng, _| {
            spoiled(d, rng, |d, at, z| {
                let (kind, eps) = (NormKind::Rms, 0.0);
                vec![d.result(at, Norm { kind, eps }.into(), &[z])]
            })
        },
    },
    Fault {
        name: "row of a table without rows",
        make: |d, rng, _| spoiled(d, rng, rows_of_none),
    },
    Fault {
        name: "sum divided by zero",
        make: sum_by_zero,
    },
    Fault {
        name: "zero times a mask",
        make: zero_times_mask,
    },
    Fault {
        name: "divided by the device's own summand",
        make: by_own_summand,
    },
];

pub(super) fn some(d: &Draft, rng: &mut Rng, fits: impl Fn(usize) -> bool) -> Option<usize> {
    let all: Vec<usize> = (0..d.lines.len()).filter(|&i| fits(i)).collect();
    (!all.is_empty()).then(|| *rng.pick(&all))
}

fn all_reduces(d: &Draft, rng: &mut Rng) -> Option<usize> {
    some(d, rng, |i| {
        matches!(d.lines[i].op, Op::AllReduce(_)) && d.lines[i].operands.len() > 1
    })
}

/// Picks another value of the same type and place, defined before line `at`.
fn another(d: &Draft, rng: &mut Rng, value: usize, at: usize) -> Option<usize> {
    let (ty, place) = (&d.cells[value].ty, d.cells[value].place);
    let found: Vec<usize> = d.lines[..at]
        .iter()
        .flat_map(|l| l.results.iter().copied())
        .filter(|&v| v != value && d.cells[v].ty == *ty && d.cells[v].place == place)
        .collect();
    (!found.is_empty()).then(|| *rng.pick(&found))
}

fn all_reduce_dropped(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = all_reduces(d, rng)?;
    let line = d.lines.remove(at);
    let mut sites = Vec::new();
    for (&result, &operand) in line.results.iter().zip(&line.operands) {
        sites.extend(d.redirect(at, result, operand));
    }
    (!sites.is_empty()).then_some(sites)
}

fn all_reduce_twice(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = all_reduces(d, rng)?;
    let line = d.lines[at].clone();
    let again: Vec<usize> = line.results.iter().map(|&r| d.like(r)).collect();
    for (&r, &a) in line.results.iter().zip(&again) {
        d.redirect(at + 1, r, a);
    }
    d.insert(at + 1, line.op, line.results, again);
    Some(vec![at + 1])
}

fn all_reduce_of_another(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = all_reduces(d, rng)?;
    let rank = (rng.next() % d.lines[at].operands.len() as u64) as usize;
    let own = d.lines[at].operands[rank];
    d.lines[at].operands[rank] = another(d, rng, own, at)?;
    Some(vec![at])
}

fn device_left_out(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = all_reduces(d, rng)?;
    let rank = (rng.next() % d.lines[at].operands.len() as u64) as usize;
    let operand = d.lines[at].operands.remove(rank);
    let result = d.lines[at].results.remove(rank);
    let mut sites = d.redirect(at, result, operand);
    sites.push(at);
    Some(sites)
}

fn mean_instead_of_sum(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        matches!(d.lines[i].op, Op::AllReduce(_) | Op::Sum(Sum { axis: 0 }))
    })?;
    if let Op::Sum(_) = d.lines[at].op {
        let n = d.cells[d.lines[at].operands[0]].ty.dims[0].clone();
        d.lines[at].op = Mean { n }.into();
        return Some(vec![at]);
    }
    let line = d.lines[at].clone();
    let scale = 1.0 / line.operands.len().max(2) as f32;
    let mut sites = vec![at];
    for (k, &r) in line.results.iter().enumerate() {
        let new = d.like(r);
        d.redirect(at + 1 + k, r, new);
        d.insert(
            at + 1 + k,
            Scale { scale, bias: 0.0 }.into(),
            vec![r],
            vec![new],
        );
        sites.push(at + 1 + k);
    }
    Some(sites)
}

fn copy_of_another(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| matches!(d.lines[i].op, Op::Copy(Copy)))?;
    let own = d.lines[at].operands[0];
    d.lines[at].operands[0] = another(d, rng, own, at)?;
    Some(vec![at])
}

fn copies_swapped(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let is_copy = |i: usize| matches!(d.lines[i].op, Op::Copy(Copy));
    let cell = |i: usize| &d.cells[d.lines[i].results[0]];
    let alike = |a: usize, b: usize| {
        is_copy(a)
            && is_copy(b)
            && d.lines[a].operands != d.lines[b].operands
            && cell(a).place != cell(b).place
            && cell(a).ty == cell(b).ty
    };
    // The earlier copy moves down to the later one, so that both sources are defined before it. No line between them
    // may read it.
    let free = |a: usize, b: usize| {
        let result = d.lines[a].results[0];
        d.lines[a..b].iter().all(|l| !l.operands.contains(&result))
    };
    let near = |a: usize| a + 1..d.lines.len().min(a + NEAR);
    let partner = |a: usize| near(a).find(|&b| alike(a, b) && free(a, b));
    let a = some(d, rng, |a| is_copy(a) && partner(a).is_some())?;
    let b = partner(a)?;
    let line = d.lines.remove(a);
    d.lines.insert(b - 1, line);
    let (x, y) = (d.lines[b - 1].operands[0], d.lines[b].operands[0]);
    (d.lines[b - 1].operands[0], d.lines[b].operands[0]) = (y, x);
    Some(vec![b - 1, b])
}

/// The maximum number of lines between two swapped copies.
const NEAR: usize = 40;

fn copy_dropped(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| matches!(d.lines[i].op, Op::Copy(Copy)))?;
    let line = d.lines.remove(at);
    let sites = d.redirect(at, line.results[0], line.operands[0]);
    (!sites.is_empty()).then_some(sites)
}

/// Adds a value to the second device's summand that the first device already adds.
fn added_everywhere(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let is_add = |op: &Op| {
        matches!(
            op,
            Op::Binary(Binary {
                kind: BinaryKind::Add
            })
        )
    };
    // The summand must be on the other device under the same name.
    let at = all_reduces(d, rng)?;
    let first = d.def(d.lines[at].operands[0]);
    if !is_add(&d.lines[first].op) {
        return None;
    }
    let other = d.lines[at].operands[1];
    let place = d.cells[other].place;
    let summands = d.lines[first].operands.clone();
    for s in summands {
        let name = d.cells[s].name.clone();
        let twin = d.lines[..at]
            .iter()
            .flat_map(|l| &l.results)
            .copied()
            .find(|&v| {
                d.cells[v].name == name
                    && d.cells[v].place == place
                    && d.cells[v].ty == d.cells[s].ty
            });
        let weight = match (&d.lines[d.def(s)].op, twin) {
            (Op::Weight(_), None) => Some(d.lines[d.def(s)].op.clone()),
            _ => None,
        };
        let Some(summand) = twin.or_else(|| weight.as_ref().map(|_| d.cells.len())) else {
            continue;
        };
        let mut at = at;
        if let Some(op) = weight {
            let new = d.like(s);
            d.cells[new].place = place;
            d.insert(at, op, Vec::new(), vec![new]);
            at += 1;
        }
        let new = d.like(other);
        let op = Binary {
            kind: BinaryKind::Add,
        }
        .into();
        d.insert(at, op, vec![other, summand], vec![new]);
        d.lines[at + 1].operands[1] = new;
        return Some(vec![at]);
    }
    None
}

/// Returns a weight split across devices, its split axis and the whole size.
fn split_weight(d: &Draft, rng: &mut Rng, model: &Graph) -> Option<(usize, usize, u64)> {
    let at = some(d, rng, |i| {
        matches!(&d.lines[i].op, Op::Weight(Weight { parts: Some(_), .. }))
    })?;
    let Op::Weight(w) = &d.lines[at].op else {
        return None;
    };
    let whole = model.insts().find_map(|(_, i)| match &i.op {
        Op::Weight(m) if m.tensor == w.tensor => Some(&model.value(i.results[0]).ty),
        _ => None,
    })?;
    let parts = w.parts.as_ref()?;
    let axis = (0..4).find(|&a| {
        let size = whole.dims[a].as_const();
        let held: u64 = parts[a].iter().map(|r| r.len).sum();
        held > 0 && size.is_some_and(|s| held < s)
    })?;
    Some((at, axis, whole.dims[axis].as_const()?))
}

fn parts_of(op: &mut Op) -> Option<&mut Vec<Vec<Interval>>> {
    match op {
        Op::Weight(w) => w.parts.as_mut(),
        Op::State(s) => s.parts.as_mut(),
        _ => None,
    }
}

fn wrong_segment(d: &mut Draft, rng: &mut Rng, model: &Graph) -> Option<Sites> {
    let (at, axis, size) = split_weight(d, rng, model)?;
    let runs = &mut parts_of(&mut d.lines[at].op)?[axis];
    let k = (rng.next() % runs.len() as u64) as usize;
    // The start of the next interval, or the end of the last interval.
    let free_after = runs.get(k + 1).map_or(size, |r| r.start);
    let len = runs[k].len;
    let start = if runs[k].end() + len <= free_after {
        runs[k].end()
    } else {
        let before = k.checked_sub(1).map_or(0, |j| runs[j].end());
        runs[k].start.checked_sub(len).filter(|&s| s >= before)?
    };
    runs[k].start = start;
    Some(vec![at])
}

fn range_shifted(d: &mut Draft, rng: &mut Rng, model: &Graph) -> Option<Sites> {
    let (at, axis, size) = split_weight(d, rng, model)?;
    let block = if axis == 0 {
        d.cells[d.lines[at].results[0]].ty.dtype.block_len()
    } else {
        1
    };
    let runs = &mut parts_of(&mut d.lines[at].op)?[axis];
    let last = runs.last_mut()?;
    if last.end() + block <= size {
        last.start += block;
    } else {
        let first = runs.first_mut()?;
        first.start = first.start.checked_sub(block)?;
    }
    Some(vec![at])
}

fn range_resized(d: &mut Draft, rng: &mut Rng, model: &Graph) -> Option<Sites> {
    let (at, axis, _) = split_weight(d, rng, model)?;
    let value = d.lines[at].results[0];
    let block = if axis == 0 {
        d.cells[value].ty.dtype.block_len()
    } else {
        1
    };
    let runs = &mut parts_of(&mut d.lines[at].op)?[axis];
    let last = runs.last_mut()?;
    last.len = last.len.checked_sub(block).filter(|&n| n > 0)?;
    let held = runs.iter().map(|r| r.len).sum();
    d.cells[value].ty.dims[axis] = Dim::constant(held);
    Some(vec![at])
}

fn block_misaligned(d: &mut Draft, rng: &mut Rng, model: &Graph) -> Option<Sites> {
    let (at, axis, size) = split_weight(d, rng, model)?;
    let block = d.cells[d.lines[at].results[0]].ty.dtype.block_len();
    if axis != 0 || block == 1 {
        return None;
    }
    let runs = &mut parts_of(&mut d.lines[at].op)?[0];
    let last = runs.last_mut()?;
    if last.end() < size {
        last.start += 1;
    } else {
        last.start = last.start.checked_sub(1)?;
    }
    Some(vec![at])
}

fn swapped(d: &mut Draft, rng: &mut Rng, is_leaf: impl Fn(&Op) -> Option<String>) -> Option<Sites> {
    let a = some(d, rng, |i| is_leaf(&d.lines[i].op).is_some())?;
    let name = is_leaf(&d.lines[a].op);
    let b = some(d, rng, |i| {
        let ty = |i: usize| &d.cells[d.lines[i].results[0]].ty;
        i != a && is_leaf(&d.lines[i].op) == name && ty(i) == ty(a)
    })?;
    let (x, y) = (d.lines[a].op.clone(), d.lines[b].op.clone());
    if x == y {
        return None;
    }
    d.lines[a].op = y;
    d.lines[b].op = x;
    Some(vec![a, b])
}

fn parts_swapped(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    swapped(d, rng, |op| match op {
        Op::Weight(w) if w.parts.is_some() => Some(w.tensor.clone()),
        _ => None,
    })
}

fn state_parts_swapped(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    swapped(d, rng, |op| match op {
        Op::State(s) if s.parts.is_some() => Some(s.name.clone()),
        _ => None,
    })
}

fn state_stale(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let states: Vec<usize> = (0..d.outputs.len())
        .filter(|&k| matches!(d.outputs[k].0, Output::State { .. }))
        .collect();
    if states.is_empty() {
        return None;
    }
    let k = *rng.pick(&states);
    let Output::State { state, .. } = d.outputs[k].0 else {
        return None;
    };
    let renewed = d.def(d.outputs[k].1);
    d.outputs[k].1 = state.index();
    Some(vec![d.def(state.index()), renewed])
}

fn state_read_early(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        let l = &d.lines[i];
        let written = |&o: &usize| matches!(d.lines[d.def(o)].op, Op::SetRows(_) | Op::SetSlice(_));
        matches!(l.op, Op::Slice(_)) && l.operands.iter().any(written)
    })?;
    let write = d.def(d.lines[at].operands[0]);
    d.lines[at].operands[0] = d.lines[write].operands[0];
    Some(vec![at])
}

fn operands_swapped(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        let l = &d.lines[i];
        let ty = |k: usize| &d.cells[l.operands[k]].ty;
        match &l.op {
            Op::Binary(b) => matches!(b.kind, BinaryKind::Sub | BinaryKind::Div) && ty(0) == ty(1),
            Op::Glu(_) => l.operands.len() == 2 && ty(0) == ty(1),
            Op::MulMat(_) => ty(0) == ty(1),
            Op::FlashAttn(_) => ty(1) == ty(2),
            Op::Concat(_) => l.operands.len() > 1 && ty(0) == ty(1),
            _ => false,
        }
    })?;
    let first = usize::from(matches!(d.lines[at].op, Op::FlashAttn(_)));
    d.lines[at].operands.swap(first, first + 1);
    Some(vec![at])
}

fn another_operand(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        !d.lines[i].operands.is_empty() && !d.lines[i].op.is_transfer()
    })?;
    let k = (rng.next() % d.lines[at].operands.len() as u64) as usize;
    let own = d.lines[at].operands[k];
    d.lines[at].operands[k] = another(d, rng, own, at)?;
    Some(vec![at])
}

fn wrong_device(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        let l = &d.lines[i];
        !l.operands.is_empty()
            && !l.op.is_transfer()
            && matches!(d.cells[l.results[0]].place, Place::Device(_))
    })?;
    let places: Vec<Place> = d.cells.iter().map(|c| c.place).collect();
    for k in 0..d.lines[at].results.len() {
        let r = d.lines[at].results[k];
        let own = d.cells[r].place;
        let other = places
            .iter()
            .find(|&&p| p != own && matches!(p, Place::Device(_)));
        d.cells[r].place = *other?;
    }
    Some(vec![at])
}

fn op_left_out(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        let l = &d.lines[i];
        let same = |&o: &usize| d.cells[o].ty == d.cells[l.results[0]].ty;
        !l.op.is_transfer() && l.results.len() == 1 && l.operands.first().is_some_and(same)
    })?;
    let line = d.lines.remove(at);
    let sites = d.redirect(at, line.results[0], line.operands[0]);
    (!sites.is_empty()).then_some(sites)
}

fn another_window(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let window = |op: &Op| match op {
        Op::GetRows(o) => o.window,
        Op::MulMatId(o) => o.window,
        Op::AddId(o) => o.window,
        _ => None,
    };
    let at = some(d, rng, |i| {
        let heads = matches!(&d.lines[i].op, Op::FlashAttn(f) if f.heads.is_some());
        heads || window(&d.lines[i].op).is_some_and(|w| w.len > 0)
    })?;
    let moved = |w: &mut Interval| w.start = if w.start > 0 { w.start - 1 } else { 1 };
    match &mut d.lines[at].op {
        Op::GetRows(o) => o.window.as_mut().map(moved),
        Op::MulMatId(o) => o.window.as_mut().map(moved),
        Op::AddId(o) => o.window.as_mut().map(moved),
        Op::FlashAttn(o) => o
            .heads
            .as_mut()
            .and_then(|h| h.heads.first_mut())
            .map(moved),
        _ => None,
    }?;
    Some(vec![at])
}

fn slice_shifted(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let room = |i: usize| match &d.lines[i].op {
        Op::Slice(Slice { axis, start, len }) => {
            let size = d.cells[d.lines[i].operands[0]].ty.dims[*axis as usize].as_const();
            let (start, len) = (start.as_const(), len.as_const());
            match (size, start, len) {
                (Some(n), Some(s), Some(l)) if l > 0 && s + l < n => Some(s + 1),
                (Some(_), Some(s), Some(l)) if l > 0 && s > 0 => Some(s - 1),
                _ => None,
            }
        }
        _ => None,
    };
    let at = some(d, rng, |i| room(i).is_some())?;
    let moved = room(at)?;
    if let Op::Slice(s) = &mut d.lines[at].op {
        s.start = Dim::constant(moved);
    }
    Some(vec![at])
}

fn padding_shifted(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let fits = |i: usize| {
        let x = d.lines[i].operands.first().map(|&o| &d.cells[o].ty);
        matches!(&d.lines[i].op, Op::Pad(_))
            && x.is_some_and(|t| t.dims.iter().all(|d| !d.is_zero()))
    };
    let at = some(d, rng, fits)?;
    let Op::Pad(Pad { before, after, .. }) = &mut d.lines[at].op else {
        return None;
    };
    if *after > 0 {
        (*before, *after) = (*before + 1, *after - 1);
    } else if *before > 0 {
        (*before, *after) = (*before - 1, *after + 1);
    } else {
        return None;
    }
    Some(vec![at])
}

fn another_function(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        matches!(
            &d.lines[i].op,
            Op::Norm(_)
                | Op::NormApply(_)
                | Op::Rope(_)
                | Op::FlashAttn(_)
                | Op::Scale(_)
                | Op::Glu(_)
                | Op::Binary(_)
        )
    })?;
    match &mut d.lines[at].op {
        Op::Norm(n) => n.eps += 0.5,
        Op::NormApply(n) => n.n += 1,
        Op::Rope(r) => r.freq_base *= 2.0,
        Op::FlashAttn(f) => f.scale *= 2.0,
        Op::Scale(s) => s.scale *= 2.0,
        Op::Glu(g) => {
            let other = if g.kind == tpc_ir::op::GluKind::Reglu {
                tpc_ir::op::GluKind::Geglu
            } else {
                tpc_ir::op::GluKind::Reglu
            };
            *g = Glu::new(other);
        }
        Op::Binary(b) => {
            b.kind = match b.kind {
                BinaryKind::Add => BinaryKind::Sub,
                BinaryKind::Sub => BinaryKind::Add,
                BinaryKind::Mul => BinaryKind::Add,
                BinaryKind::Div => BinaryKind::Mul,
            }
        }
        _ => return None,
    }
    Some(vec![at])
}

fn pieces_reordered(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let at = some(d, rng, |i| {
        let l = &d.lines[i];
        let alike = |w: &[usize]| d.cells[w[0]].ty == d.cells[w[1]].ty;
        matches!(l.op, Op::AllGather(_) | Op::AllToAll(_) | Op::Concat(_))
            && l.operands.windows(2).any(alike)
            && !l.op.is_collective()
    })?;
    d.lines[at].operands.reverse();
    Some(vec![at])
}

fn another_tensor(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let is_weight = |i: usize| matches!(d.lines[i].op, Op::Weight(_));
    let a = some(d, rng, is_weight)?;
    let b = some(d, rng, |i| {
        let ty = |i: usize| &d.cells[d.lines[i].results[0]].ty;
        is_weight(i) && ty(i) == ty(a) && d.lines[i].op != d.lines[a].op
    })?;
    d.lines[a].op = d.lines[b].op.clone();
    Some(vec![a])
}

fn div() -> Op {
    let kind = BinaryKind::Div;
    Binary { kind }.into()
}

fn mul() -> Op {
    let kind = BinaryKind::Mul;
    Binary { kind }.into()
}

fn add() -> Op {
    let kind = BinaryKind::Add;
    Binary { kind }.into()
}

/// Picks an all-reduce, and the rank of a summand with rows of constant length.
fn summand(d: &Draft, rng: &mut Rng) -> Option<(usize, usize)> {
    let at = all_reduces(d, rng)?;
    let rank = (rng.next() % d.lines[at].operands.len() as u64) as usize;
    let ty = &d.cells[d.lines[at].operands[rank]].ty;
    ty.dims[0].as_const()?;
    Some((at, rank))
}

/// Inserts two lines before line `at` that make zeros of a value's type from an empty slice of the value, as on a
/// device without a share.
fn zeros(d: &mut Draft, at: usize, like: usize) -> Option<usize> {
    let after = d.cells[like].ty.dims[0].as_const()?;
    let none = d.like(like);
    d.cells[none].ty.dims[0] = Dim::ZERO;
    let slice = Slice {
        axis: 0,
        start: Dim::ZERO,
        len: Dim::ZERO,
    };
    d.insert(at, slice.into(), vec![like], vec![none]);
    let all = d.like(like);
    let pad = Pad {
        axis: 0,
        before: 0,
        after,
    };
    d.insert(at + 1, pad.into(), vec![none], vec![all]);
    Some(all)
}

/// Adds NaNs to one device's summand; `make` computes them from zeros.
fn spoiled(
    d: &mut Draft,
    rng: &mut Rng,
    make: fn(&mut Draft, usize, usize) -> Vec<usize>,
) -> Option<Sites> {
    let (at, rank) = summand(d, rng)?;
    let own = d.lines[at].operands[rank];
    let z = zeros(d, at, own)?;
    let made = make(d, at + 2, z);
    let first = at + 2;
    let end = first + made.len();
    let sum = d.result(end, add(), &[own, *made.last()?]);
    d.lines[end + 1].operands[rank] = sum;
    Some((first..=end).collect())
}

/// Selects no rows of an empty `z`. Values without elements count as zeros, but these lack rows as well.
fn rows_of_none(d: &mut Draft, at: usize, z: usize) -> Vec<usize> {
    let [_, a, b, c] = d.cells[z].ty.dims.clone();
    let slice = |axis: u64, len: u64| Slice {
        axis,
        start: Dim::ZERO,
        len: len.into(),
    };
    let table = d.result(at, slice(1, 0).into(), &[z]);
    d.cells[table].ty.dims[1] = Dim::ZERO;
    let order = SortOrder::Ascending;
    let sorted = d.result(at + 1, ArgSort { order }.into(), &[z]);
    d.cells[sorted].ty.dtype = DType::I32;
    let first = d.result(at + 2, slice(0, 1).into(), &[sorted]);
    d.cells[first].ty.dims[0] = Dim::ONE;
    let dims = [a, b, c, Dim::ONE];
    let ids = d.result(at + 3, Reshape { dims: dims.clone() }.into(), &[first]);
    d.cells[ids].ty.dims = dims;
    let rows = d.like(z);
    let get = GetRows { window: None };
    d.insert(at + 4, get.into(), vec![table, ids], vec![rows]);
    vec![table, sorted, first, ids, rows]
}

fn sum_by_zero(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let (at, rank) = summand(d, rng)?;
    let own = d.lines[at].operands[rank];
    let z = zeros(d, at, own)?;
    let quotient = d.result(at + 2, div(), &[own, z]);
    d.lines[at + 3].operands[rank] = quotient;
    Some(vec![at + 2])
}

/// Adds the sum of an attention mask, times zeros, to a summand.
fn zero_times_mask(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let (at, rank) = summand(d, rng)?;
    let own = d.lines[at].operands[rank];
    let place = d.cells[own].place;
    let is_mask = |v: usize| match &d.lines[d.def(v)].op {
        Op::Input(i) => matches!(
            i.kind,
            InputKind::Mask
                | InputKind::MaskSwa
                | InputKind::MaskBatch
                | InputKind::MaskBatchNear(_)
        ),
        _ => false,
    };
    let mask = d.lines[..at].iter().find_map(|l| {
        let here = matches!(l.op, Op::Copy(_)) && d.cells[l.results[0]].place == place;
        (here && is_mask(l.operands[0])).then_some(l.results[0])
    })?;
    // The mask must have one row per row of the summand.
    if d.cells[mask].ty.dims[1..] != d.cells[own].ty.dims[1..] {
        return None;
    }
    let z = zeros(d, at, own)?;
    let total = d.like(mask);
    d.cells[total].ty.dims[0] = Dim::ONE;
    d.insert(at + 2, Sum { axis: 0 }.into(), vec![mask], vec![total]);
    let product = d.result(at + 3, mul(), &[z, total]);
    let sum = d.result(at + 4, add(), &[own, product]);
    d.lines[at + 5].operands[rank] = sum;
    // The mask's sum is also faulty, because the model does not have it.
    Some(vec![at + 2, at + 3, at + 4])
}

fn by_own_summand(d: &mut Draft, rng: &mut Rng, _: &Graph) -> Option<Sites> {
    let own = |d: &Draft, at: usize| {
        let line = &d.lines[at];
        let divides = matches!(&line.op, Op::Binary(b) if b.kind == BinaryKind::Div);
        let divisor = *line.operands.get(1).filter(|_| divides)?;
        let of = &d.lines[d.def(divisor)];
        let rank = of.results.iter().position(|&r| r == divisor)?;
        matches!(of.op, Op::AllReduce(_)).then(|| of.operands[rank])
    };
    let with_sum = some(d, rng, |i| own(d, i).is_some());
    if let Some(at) = with_sum {
        let summand = own(d, at)?;
        d.lines[at].operands[1] = summand;
        return Some(vec![at]);
    }
    // If no divisor is a sum over devices, make one device divide by zeros.
    let at = some(d, rng, |i| {
        let l = &d.lines[i];
        matches!(&l.op, Op::Binary(b) if b.kind == BinaryKind::Div)
            && d.cells[l.operands[1]].ty.dims[0]
                .as_const()
                .is_some_and(|n| n > 0)
    })?;
    let divisor = d.lines[at].operands[1];
    let z = zeros(d, at, divisor)?;
    d.lines[at + 2].operands[1] = z;
    Some(vec![at + 2])
}
