//! What an op makes of parts of its operands, by its rule.
//!
//! The equations of a rule say which index of a result's axis comes from which index of an operand's. From the picks
//! of the operands follow those of the results, or that the parts do not belong together.

use std::collections::HashMap;

use tpc_ir::op::{Expr, FlashAttn, HeadWindow, Inferred, Repeat, Role, Slot, pieces};
use tpc_ir::{DType, Dim, Interval, Op, RANK, TensorType};

use super::pick::{
    Pick, Picks, Related, Unrelated, clipped, common_period, common_unit, from_axes, left_of,
    on_axes,
};
use super::term::Window;

/// An operand that is a part of a whole.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The type of the whole.
    pub(super) ty: TensorType,
    /// What of it.
    pub(super) picks: Picks,
    /// Axes along which the whole is a repetition, with what of that the part repeats: one copy is as good as another,
    /// so which of the whole's copies they are is said by the other operands.
    pub(super) copies: [Option<Copies>; RANK],
    /// The sizes of the part.
    pub(super) dims: [Dim; RANK],
}

/// What a part repeats along an axis of the whole. The axis is that of what is repeated with copies put in: index
/// `lo + unit · (copy + times · hi)` of the whole is index `lo + unit · hi` of what it repeats.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    /// Indices that are repeated together.
    pub(super) unit: Dim,
    /// The copies of the whole.
    pub(super) times: u64,
    /// What the part has of what is repeated.
    pub(super) pick: Option<Pick>,
    /// The copies of the part.
    pub(super) held: u64,
}

impl Copies {
    /// Whether they are what `held` leaves of `whole` indices, in this order, if they are `len` in all.
    fn are(&self, held: Option<&Pick>, whole: &Dim, len: &Dim) -> Related<bool> {
        if *len != held.map_or_else(|| Ok(whole.clone()), |p| p.of(whole))? {
            return Ok(false);
        }
        let own = self.pick.as_ref();
        let mut fine = self.unit.clone();
        for p in [held, own].into_iter().flatten() {
            fine = common_unit(&fine, &p.unit)?;
        }
        let times = Dim::constant(self.times);
        let mut once = self.unit.clone();
        if let Some(p) = own {
            once = common_period(&once, &p.period()?)?;
        }
        let mut period = once.checked_mul(&times).ok_or(Unrelated)?;
        if let Some(p) = held {
            period = common_period(&period, &p.period()?)?;
        }
        once = period.checked_div(&times).ok_or(Unrelated)?;
        let indices = |p: Option<&Pick>, period: &Dim| -> Related<Vec<u64>> {
            let len = units(period, &fine)?;
            let runs = match p {
                Some(p) => p.refined(&fine, period)?,
                None => vec![Interval { start: 0, len }],
            };
            if len > MAX_INDICES {
                return Err(Unrelated);
            }
            Ok(runs.into_iter().flat_map(|r| r.start..r.end()).collect())
        };
        let unit = units(&self.unit, &fine)?;
        let wanted = indices(held, &period)?.into_iter();
        let wanted = wanted.map(|i| i % unit + unit * (i / (unit * self.times)));
        let own = indices(own, &once)?;
        let copied = own.chunk_by(|a, b| a / unit == b / unit);
        let copied = copied.flat_map(|c| (0..self.held).flat_map(move |_| c));
        Ok(wanted.eq(copied.copied()))
    }
}

impl Part {
    /// Whether it is the whole.
    pub(super) fn is_whole(&self) -> bool {
        self.picks.is_empty() && self.copies.iter().all(Option::is_none)
    }
}

/// What an op's results are parts of.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// The op on the whole operands.
    pub(super) op: Op,
    /// Per result, what of the whole.
    pub(super) results: Vec<Picks>,
    /// The indices that are summed over, where not all are: the result is one term of a sum.
    pub(super) summed: Option<Pick>,
    /// The rows or experts that the op answers for, where not for all: other rows are zero.
    pub(super) window: Option<Window>,
}

type Axes = [Option<Pick>; RANK];

/// Indices of a pattern beyond which copies are not compared.
const MAX_INDICES: u64 = 1 << 14;

/// What `op`, which runs on `parts`, makes.
///
/// `model` is an op of the model: where a slice of the whole is set is not said by the part alone.
pub(super) fn relate(op: &Op, parts: &[Part], model: Option<&Op>) -> Related<Relation> {
    let axes: Vec<Axes> = parts
        .iter()
        .map(|p| on_axes(&p.picks, &p.ty.dims))
        .collect::<Related<_>>()?;
    let (whole, window) = on_wholes(op, parts, &axes, model)?;
    let types: Vec<&TensorType> = parts.iter().map(|p| &p.ty).collect();
    let Ok(Inferred::Types(results)) = whole.infer(&types) else {
        return Err(Unrelated);
    };
    let result_types: Vec<&TensorType> = results.iter().collect();
    let rule = whole.rule(&types, &result_types);
    let mut solver = Solver {
        operands: &types,
        results: &result_types,
        known: HashMap::new(),
    };
    for (o, axes) in axes.iter().enumerate() {
        for (a, pick) in axes.iter().enumerate() {
            if parts[o].copies[a].is_none() {
                let var = Var::Axis(Slot::Operand(o), a);
                solver.known.insert(var, pick.clone());
            }
        }
    }
    // Indices that meet in groups have a condition of their own in place of an equation.
    let mut grouped = Vec::new();
    for g in whole.groupings() {
        let few = g.few[0];
        if [g.many, few]
            .iter()
            .any(|&(o, a)| parts[o].copies[a].is_some())
        {
            return Err(Unrelated);
        }
        if axes[g.many.0][g.many.1].is_some() || axes[few.0][few.1].is_some() {
            meet_in_groups(&axes, parts, g.many, few)?;
            grouped.push((g.many, few));
        }
    }
    let is_grouped = |a: &Expr, b: &Expr| {
        grouped.iter().any(|&(many, few)| {
            is_axis(a, many) && mentions(b, few) || is_axis(b, many) && mentions(a, few)
        })
    };
    let equations: Vec<&(Expr, Expr)> = rule
        .equations
        .iter()
        .filter(|(a, b)| !is_grouped(a, b))
        .collect();
    solver.solve(&equations)?;
    for (o, part) in parts.iter().enumerate() {
        for (a, copies) in part.copies.iter().enumerate() {
            let Some(copies) = copies else { continue };
            let known = solver.known.get(&Var::Axis(Slot::Operand(o), a));
            let held = known.ok_or(Unrelated)?.as_ref();
            if !copies.are(held, &part.ty.dims[a], &part.dims[a])? {
                return Err(Unrelated);
            }
        }
    }

    let mut summed = None;
    for (role, expr) in &rule.roles {
        let Some(Some(pick)) = solver.value(expr)? else {
            continue;
        };
        match role {
            Role::Whole | Role::Norm => return Err(Unrelated),
            Role::Reduce => match &summed {
                None => summed = Some(pick),
                Some(other) if *other == pick => {}
                Some(_) => return Err(Unrelated),
            },
            Role::Gather | Role::Expert => {
                if window.is_none() {
                    return Err(Unrelated);
                }
            }
        }
    }
    // A pick that no equation or role speaks of is none that the op knows how to bear.
    for (o, axes) in axes.iter().enumerate() {
        for (a, pick) in axes.iter().enumerate() {
            let at = (o, a);
            let spoken = rule
                .equations
                .iter()
                .any(|(l, r)| mentions(l, at) || mentions(r, at))
                || rule.roles.iter().any(|(_, e)| mentions(e, at));
            if pick.is_some() && !spoken {
                return Err(Unrelated);
            }
        }
    }
    let mut picks = Vec::new();
    for (r, ty) in results.iter().enumerate() {
        let axes: Axes = std::array::from_fn(|a| {
            let known = solver.known.get(&Var::Axis(Slot::Result(r), a));
            known.cloned().flatten()
        });
        // A block is stored as a whole or not at all.
        let block = ty.dtype.block_len();
        if block > 1
            && let Some(p) = &axes[0]
            && p.unit.checked_div(&block.into()).is_none()
        {
            return Err(Unrelated);
        }
        left_of(&axes, &ty.dims)?;
        picks.push(from_axes(&axes, &ty.dims)?);
    }
    Ok(Relation {
        op: whole,
        results: picks,
        summed,
        window,
    })
}

/// The op that runs on the whole operands, and the window that it has on the parts. All ops whose parameters change
/// when a device runs them are here: a changed parameter that this does not undo makes another op.
fn on_wholes(
    op: &Op,
    parts: &[Part],
    axes: &[Axes],
    model: Option<&Op>,
) -> Related<(Op, Option<Window>)> {
    let windowed =
        |run: Option<Interval>, operand: usize, axis: usize| -> Related<Option<Window>> {
            let total = parts[operand].ty.dims[axis].clone();
            match (run, &axes[operand][axis]) {
                (None, None) => Ok(None),
                (Some(run), None) if run.start == 0 && total == run.len => Ok(None),
                (Some(run), Some(pick)) => {
                    let total = total.as_const().ok_or(Unrelated)?;
                    let mut held = pick.refined(&Dim::ONE, &total.into())?;
                    held.retain(|r| r.len > 0);
                    let matches = match held.as_slice() {
                        [] => run.len == 0,
                        [one] => *one == run,
                        _ => false,
                    };
                    matches
                        .then_some(Some(Window { run, total }))
                        .ok_or(Unrelated)
                }
                _ => Err(Unrelated),
            }
        };
    let mut whole = op.clone();
    let mut window = None;
    match &mut whole {
        Op::GetRows(o) if parts.len() == 2 => window = windowed(o.window.take(), 0, 1)?,
        Op::MulMatId(o) if parts.len() == 3 => window = windowed(o.window.take(), 0, 2)?,
        Op::AddId(o) if parts.len() == 3 => window = windowed(o.window.take(), 1, 1)?,
        Op::FlashAttn(FlashAttn {
            heads, max_bias, ..
        }) if parts.len() >= 4 => {
            let pick = &axes[0][2];
            match (heads.take(), pick) {
                (None, None) => {}
                (None, Some(_)) if *max_bias <= 0.0 => {}
                (None, Some(_)) => return Err(Unrelated),
                (Some(HeadWindow { heads, total }), pick) => {
                    let whole = &parts[0].ty.dims[2];
                    let all = || {
                        vec![Interval {
                            start: 0,
                            len: total,
                        }]
                    };
                    let held = pick
                        .as_ref()
                        .map_or_else(|| Ok(all()), |p| p.refined(&Dim::ONE, whole))?;
                    if *whole != total || held != heads {
                        return Err(Unrelated);
                    }
                }
            }
        }
        Op::Repeat(Repeat { dims }) if parts.len() == 1 => {
            for ((d, pick), size) in dims.iter_mut().zip(&axes[0]).zip(&parts[0].ty.dims) {
                if let Some(p) = pick {
                    let times = d.checked_div(&p.of(size)?).ok_or(Unrelated)?;
                    *d = times.checked_mul(size).ok_or(Unrelated)?;
                }
            }
        }
        Op::Slice(o) => {
            let axis = usize::try_from(o.axis).map_err(|_| Unrelated)?;
            if axes[0].get(axis).is_none_or(Option::is_some) {
                return Err(Unrelated);
            }
        }
        Op::SetSlice(o) => {
            let axis = usize::try_from(o.axis).map_err(|_| Unrelated)?;
            if let Some(pick) = axes[0].get(axis).ok_or(Unrelated)? {
                // As many indices are picked before the slice as are before it in the part.
                let Some(Op::SetSlice(of_model)) = model else {
                    return Err(Unrelated);
                };
                let (local, start) = (o.start.as_const(), of_model.start.as_const());
                let (Some(local), Some(start)) = (local, start) else {
                    return Err(Unrelated);
                };
                let held = pick.refined(&Dim::ONE, &parts[0].ty.dims[axis])?;
                let before: u64 = clipped(&held, 0, start).iter().map(|r| r.len).sum();
                if before != local || of_model.axis != o.axis {
                    return Err(Unrelated);
                }
                o.start = of_model.start.clone();
            }
        }
        _ => {}
    }
    Ok((whole, window))
}

/// Whether the indices of the two axes meet on the device as they do in the whole.
fn meet_in_groups(
    axes: &[Axes],
    parts: &[Part],
    many: (usize, usize),
    few: (usize, usize),
) -> Related<()> {
    let size = |(o, a): (usize, usize)| parts[o].ty.dims[a].as_const().ok_or(Unrelated);
    let (m, f) = (size(many)?, size(few)?);
    let runs = |(o, a): (usize, usize), n: u64| match &axes[o][a] {
        Some(p) => p.refined(&Dim::ONE, &n.into()),
        None => Ok(vec![Interval { start: 0, len: n }]),
    };
    let (held_many, held_few) = (runs(many, m)?, runs(few, f)?);
    let group = m.checked_div(f).ok_or(Unrelated)?;
    if group == 0 || group * f != m {
        return Err(Unrelated);
    }
    let found = pieces(&held_many, &held_few, group).ok_or(Unrelated)?;
    let all: u64 = held_few.iter().map(|r| r.len).sum();
    match found.as_slice() {
        [] => Ok(()),
        [one] if one.few.start == 0 && one.few.len == all => Ok(()),
        _ => Err(Unrelated),
    }
}

fn is_axis(e: &Expr, at: (usize, usize)) -> bool {
    matches!(e, Expr::Axis(Slot::Operand(o), a) if (*o, *a) == at)
}

fn mentions(e: &Expr, at: (usize, usize)) -> bool {
    match e {
        Expr::Axis(..) => is_axis(e, at),
        Expr::Fresh(..) => false,
        Expr::Product(es) | Expr::Sum(es) => es.iter().any(|e| mentions(e, at)),
        Expr::Slice(e, ..) => mentions(e, at),
    }
}

/// An unknown of the equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Var {
    Axis(Slot, usize),
    Fresh(usize),
}

/// Finds the picks of the results' axes. `None` among the known is an axis that is whole.
struct Solver<'a> {
    operands: &'a [&'a TensorType],
    results: &'a [&'a TensorType],
    known: HashMap<Var, Option<Pick>>,
}

impl Solver<'_> {
    fn solve(&mut self, equations: &[&(Expr, Expr)]) -> Related<()> {
        loop {
            let before = self.known.len();
            let mut open = false;
            for (a, b) in equations {
                match (self.value(a)?, self.value(b)?) {
                    (Some(x), Some(y)) if x == y => {}
                    (Some(_), Some(_)) => return Err(Unrelated),
                    (Some(x), None) => self.assign(b, x)?,
                    (None, Some(y)) => self.assign(a, y)?,
                    (None, None) => open = true,
                }
            }
            if self.known.len() == before {
                // Nothing more follows. Where all operands are known, what is open the op makes itself: all of it.
                let given = |(a, b): &&(Expr, Expr)| self.is_given(a) && self.is_given(b);
                if !open || !equations.iter().all(given) {
                    return if open && self.picked() {
                        Err(Unrelated)
                    } else {
                        Ok(())
                    };
                }
                self.make_whole(equations);
                if self.known.len() == before {
                    return Err(Unrelated);
                }
            }
        }
    }

    /// Whether all operands' axes of a tree are known.
    fn is_given(&self, e: &Expr) -> bool {
        match e {
            Expr::Axis(slot @ Slot::Operand(_), a) => {
                self.known.contains_key(&Var::Axis(*slot, *a))
            }
            Expr::Axis(..) | Expr::Fresh(..) => true,
            Expr::Product(es) | Expr::Sum(es) => es.iter().all(|e| self.is_given(e)),
            Expr::Slice(e, ..) => self.is_given(e),
        }
    }

    /// What an op makes itself is whole where nothing says otherwise.
    fn make_whole(&mut self, equations: &[&(Expr, Expr)]) {
        let mut open: Vec<&Expr> = equations.iter().flat_map(|(a, b)| [a, b]).collect();
        while let Some(e) = open.pop() {
            match e {
                Expr::Fresh(n, _) => {
                    self.known.entry(Var::Fresh(*n)).or_insert(None);
                }
                Expr::Product(es) | Expr::Sum(es) => open.extend(es),
                Expr::Slice(e, ..) => open.push(e),
                Expr::Axis(..) => {}
            }
        }
    }

    fn picked(&self) -> bool {
        self.known.values().any(Option::is_some)
    }

    fn size(&self, e: &Expr) -> Related<Dim> {
        match e {
            Expr::Axis(Slot::Operand(o), a) => self
                .operands
                .get(*o)
                .map(|t| t.dims[*a].clone())
                .ok_or(Unrelated),
            Expr::Axis(Slot::Result(r), a) => self
                .results
                .get(*r)
                .map(|t| t.dims[*a].clone())
                .ok_or(Unrelated),
            Expr::Fresh(_, n) => Ok(n.clone()),
            Expr::Product(es) => {
                let sizes = es
                    .iter()
                    .map(|e| self.size(e))
                    .collect::<Related<Vec<_>>>()?;
                Dim::product(&sizes).ok_or(Unrelated)
            }
            Expr::Sum(es) => {
                let sizes = es
                    .iter()
                    .map(|e| self.size(e))
                    .collect::<Related<Vec<_>>>()?;
                Dim::sum(&sizes).ok_or(Unrelated)
            }
            Expr::Slice(_, _, len) => Ok(len.clone()),
        }
    }

    /// What is picked of a tree, where all of it is known.
    fn value(&self, e: &Expr) -> Related<Option<Option<Pick>>> {
        Ok(match e {
            Expr::Axis(slot, a) => self.known.get(&Var::Axis(*slot, *a)).cloned(),
            Expr::Fresh(n, _) => self.known.get(&Var::Fresh(*n)).cloned(),
            Expr::Product(es) => {
                let mut below = Dim::ONE;
                let mut found: Option<Pick> = None;
                for e in es.iter().rev() {
                    let Some(pick) = self.value(e)? else {
                        return Ok(None);
                    };
                    if let Some(p) = pick
                        && found.replace(p.scaled(&below)?).is_some()
                    {
                        return Err(Unrelated);
                    }
                    below = below.checked_mul(&self.size(e)?).ok_or(Unrelated)?;
                }
                Some(found)
            }
            Expr::Sum(es) => {
                let mut picks = Vec::new();
                for e in es {
                    let Some(pick) = self.value(e)? else {
                        return Ok(None);
                    };
                    picks.push(pick);
                }
                if picks.iter().all(Option::is_none) {
                    return Ok(Some(None));
                }
                let sizes = es
                    .iter()
                    .map(|e| self.size(e))
                    .collect::<Related<Vec<_>>>()?;
                Some(one_after_another(&picks, &sizes)?)
            }
            Expr::Slice(e, start, len) => match self.value(e)? {
                None => None,
                Some(None) => Some(None),
                Some(Some(p)) => {
                    let (Some(start), Some(len)) = (start.as_const(), len.as_const()) else {
                        return Err(Unrelated);
                    };
                    let runs = p.refined(&Dim::ONE, &self.size(e)?)?;
                    Some(Pick::new(&Dim::ONE, len, clipped(&runs, start, len))?)
                }
            },
        })
    }

    /// Makes a tree have a pick.
    fn assign(&mut self, e: &Expr, pick: Option<Pick>) -> Related<()> {
        if let Some(known) = self.value(e)? {
            return if known == pick {
                Ok(())
            } else {
                Err(Unrelated)
            };
        }
        match e {
            Expr::Axis(slot, a) => {
                self.known.insert(Var::Axis(*slot, *a), pick);
                Ok(())
            }
            Expr::Fresh(n, _) => {
                self.known.insert(Var::Fresh(*n), pick);
                Ok(())
            }
            Expr::Product(es) => {
                let sizes = es
                    .iter()
                    .rev()
                    .map(|e| self.size(e))
                    .collect::<Related<Vec<_>>>()?;
                let mut at = None;
                if let Some(p) = &pick {
                    at = Some(super::pick::locate(p, &sizes)?);
                }
                for (i, e) in es.iter().rev().enumerate() {
                    let own = at.as_ref().filter(|(k, _)| *k == i).map(|(_, p)| p.clone());
                    self.assign(e, own)?;
                }
                Ok(())
            }
            Expr::Sum(es) => {
                let sizes = es
                    .iter()
                    .map(|e| self.size(e))
                    .collect::<Related<Vec<_>>>()?;
                let parts = match &pick {
                    None => vec![None; es.len()],
                    Some(p) => segments(p, &sizes)?,
                };
                for (e, p) in es.iter().zip(parts) {
                    self.assign(e, p)?;
                }
                Ok(())
            }
            Expr::Slice(..) if pick.is_none() => Ok(()),
            Expr::Slice(..) => Err(Unrelated),
        }
    }
}

/// What is picked of segments that follow one another.
fn one_after_another(picks: &[Option<Pick>], sizes: &[Dim]) -> Related<Option<Pick>> {
    let mut unit = sizes[0].clone();
    for (p, size) in picks.iter().zip(sizes) {
        unit = common_unit(&unit, p.as_ref().map_or(size, |p| &p.unit))?;
    }
    let mut runs = Vec::new();
    let mut at = 0;
    for (p, size) in picks.iter().zip(sizes) {
        let len = units(size, &unit)?;
        let own = match p {
            Some(p) => p.refined(&unit, size)?,
            None => vec![Interval { start: 0, len }],
        };
        runs.extend(own.iter().map(|r| Interval {
            start: at + r.start,
            len: r.len,
        }));
        at += len;
    }
    Pick::new(&unit, at, runs)
}

/// What is picked of each of the segments that make an axis.
fn segments(pick: &Pick, sizes: &[Dim]) -> Related<Vec<Option<Pick>>> {
    let mut unit = pick.unit.clone();
    for s in sizes {
        unit = common_unit(&unit, s)?;
    }
    let whole = Dim::sum(sizes).ok_or(Unrelated)?;
    let runs = pick.refined(&unit, &whole)?;
    let mut at = 0;
    let mut out = Vec::new();
    for s in sizes {
        let len = units(s, &unit)?;
        out.push(Pick::new(&unit, len, clipped(&runs, at, len))?);
        at += len;
    }
    // What is picked must keep the order of the segments.
    if one_after_another(&out, sizes)?.as_ref() == Some(pick) {
        Ok(out)
    } else {
        Err(Unrelated)
    }
}

fn units(size: &Dim, unit: &Dim) -> Related<u64> {
    let n = size.checked_div(unit).and_then(|d| d.as_const());
    n.ok_or(Unrelated)
}

/// Whether elements of this type are stored in blocks that cannot be cut.
pub(super) fn in_blocks(dtype: DType) -> bool {
    dtype.block_len() > 1
}
