//! Constraints on factor sizes from quantisation blocks, device ranges and ops.
//!
//! A factor keeps its size if it follows another factor in a divided axis, because units must stay the same. It also
//! keeps its size if an op's attribute depends on it.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::factor::{Axes, Var};
use tpc_ir::op::{Role, Rule, SetRows, axis_index};
use tpc_ir::{Class, Dim, Graph, Inst, Op, Value};
use tpc_passes::gcd;

use super::joint::{Joint, TreeLeaf};
use super::position::position;
use super::units::{Constraint, SmallSize};

/// Number of indices that an unsplit factor keeps, if units allow this.
const WHOLE: u64 = 16;
/// Number of indices per part, if devices split the factor or other factors follow it.
const BEFORE_OTHERS: u64 = 2;

pub(super) struct Constraints<'a> {
    pub(super) joint: &'a Joint,
    pub(super) of: BTreeMap<Var, Constraint>,
    pub(super) split: Vec<Option<(Var, u64)>>,
}

impl<'a> Constraints<'a> {
    pub(super) fn new(joint: &'a Joint, sharded: &Graph) -> Constraints<'a> {
        let mut out = Constraints {
            joint,
            of: BTreeMap::new(),
            split: vec![None; sharded.classes.len()],
        };
        out.collect(sharded);
        out
    }

    fn leaves(&self, v: Var) -> Vec<Var> {
        let mut out = Vec::new();
        self.joint.factors.space.leaves(v, &mut out);
        out
    }

    fn fix(&mut self, v: Var) -> bool {
        let mut changed = false;
        for leaf in self.leaves(v) {
            if let Some(d) = self.of.get_mut(&leaf) {
                changed |= !std::mem::replace(&mut d.fixed, true);
            }
        }
        changed
    }

    /// Fixes the factors that an instruction needs whole, because its attributes may depend on them.
    pub(super) fn fix_whole(&mut self, inst: Inst) -> bool {
        let Joint { graph, factors, .. } = self.joint;
        let data = graph.inst(inst);
        let axes =
            |vs: &[Value]| -> Vec<Axes> { vs.iter().map(|v| factors.axes[v.index()]).collect() };
        let (operands, results) = (axes(&data.operands), axes(&data.results));
        let mut changed = false;
        for (role, expr) in &factors.rules[inst.index()].roles {
            if *role == Role::Whole
                && let Some(v) = Rule::role_var(expr, &operands, &results)
            {
                changed |= self.fix(v);
            }
        }
        changed
    }

    /// Fixes the factors of an instruction's operands and results. Returns true if any was not fixed before.
    pub(super) fn fix_all(&mut self, inst: Inst) -> bool {
        let data = self.joint.graph.inst(inst);
        let mut changed = false;
        for v in data.operands.iter().chain(&data.results) {
            for axis in self.joint.factors.axes[v.index()] {
                changed |= self.fix(axis);
            }
        }
        changed
    }

    fn product(&self, vars: &[Var]) -> Option<u64> {
        let sizes = vars.iter().map(|&v| self.joint.factors.space.size(v));
        Dim::product(sizes)?.as_const()
    }

    fn blocks(&mut self, v: Var, minor: u64, block: u64) {
        let space = &self.joint.factors.space;
        let factors = space.factors(&[v]);
        let Some((&major, rest)) = factors.split_first() else {
            return;
        };
        rest.iter().for_each(|&r| {
            self.fix(r);
        });
        let Some(minor) = self.product(rest).and_then(|n| n.checked_mul(minor)) else {
            self.fix(major);
            return;
        };
        if let Some(segments) = space.segments(major) {
            segments.iter().for_each(|&s| self.blocks(s, minor, block));
        } else if let Some(d) = self.of.get_mut(&major) {
            let unit = block / gcd(block, minor);
            d.unit = d.unit / gcd(d.unit, unit) * unit;
        }
    }

    /// Constrains the factors that a sharding class splits into ranges. `refs` are the references to the class.
    fn split(&mut self, class: Class, sharded: &Graph, refs: &[TreeLeaf]) {
        let space = &self.joint.factors.space;
        let data = sharded.class(class);
        let mut majors = BTreeSet::new();
        for r in refs {
            if let Some((&major, rest)) = space.factors(&[r.var]).split_first() {
                majors.insert(major);
                rest.iter().for_each(|&v| {
                    self.fix(v);
                });
            }
        }
        let one = majors.first().filter(|_| majors.len() == 1);
        let major = one.filter(|m| self.of.contains_key(*m)).copied();
        let minor = major.and_then(|m| Some(data.size / space.size(m).as_const()?));
        if let (Some(major), Some(minor)) = (major, minor)
            && let Some(d) = self.of.get_mut(&major)
            && (d.minor.is_multiple_of(minor) || minor.is_multiple_of(d.minor))
        {
            if minor > d.minor {
                let times = minor / d.minor;
                d.bounds = d.bounds.iter().map(|b| b * times).collect();
                d.minor = minor;
            }
            let times = d.minor / minor;
            let ends = data.ranges.iter().flat_map(|r| [r.start, r.end()]);
            d.bounds.extend(ends.map(|b| b * times));
            d.wanted = d.wanted.min(BEFORE_OTHERS);
            self.split[class.index()] = Some((major, minor));
            return;
        }
        for m in majors {
            self.fix(m);
        }
    }

    fn collect(&mut self, sharded: &Graph) {
        let Joint {
            graph,
            factors,
            trees,
            opaque,
            unmatched,
            ..
        } = self.joint;
        let space = &factors.space;
        for &v in factors.axes.iter().flatten() {
            for leaf in self.leaves(v) {
                let Some(size) = space.size(leaf).as_const() else {
                    continue;
                };
                self.of.entry(leaf).or_insert_with(|| Constraint {
                    size,
                    unit: 1,
                    minor: 1,
                    bounds: BTreeSet::from([0, size]),
                    least: 1,
                    wanted: WHOLE,
                    pinned: None,
                    fixed: false,
                });
            }
        }
        opaque.iter().for_each(|&inst| {
            self.fix_all(inst);
        });
        unmatched.iter().for_each(|&v| {
            self.fix(v);
        });
        // Blocks of divided caches have a fixed number of cells, and each device has one part.
        for (_, data) in graph.insts() {
            if let Op::SetRows(SetRows {
                axis,
                cells: Some(_),
            }) = &data.op
                && let Ok(axis) = axis_index(*axis)
            {
                self.fix(factors.axes[data.operands[0].index()][axis]);
            }
        }
        let mut refs: BTreeMap<Class, Vec<TreeLeaf>> = BTreeMap::new();
        for leaf in trees.iter().flatten().flatten() {
            if let Some(c) = leaf.class {
                refs.entry(c.class).or_default().push(*leaf);
            }
        }
        for (class, refs) in refs {
            self.split(class, sharded, &refs);
        }
        for (_, data) in graph.insts() {
            if data.op.is_stored() {
                let v = data.results[0];
                let block = graph.value(v).ty.dtype.block_len();
                if block > 1 {
                    self.blocks(factors.axes[v.index()][0], 1, block);
                }
                for axis in factors.axes[v.index()] {
                    let factors = space.factors(&[axis]);
                    for before in factors.iter().rev().skip(1) {
                        if let Some(d) = self.of.get_mut(before) {
                            d.wanted = d.wanted.min(BEFORE_OTHERS);
                        }
                    }
                }
            }
        }
        self.cuts(graph);
        self.selections(graph);
        self.counts();
    }

    /// Constrains the factors of an index that counts a product. The selected axis has the product of the factors as
    /// size. If devices divide the axis, the last factor's size follows from the axis.
    fn counts(&mut self) {
        for &(whole, product) in &self.joint.counted {
            let leaves = self.leaves(product);
            let Some((last, rest)) = leaves.split_last() else {
                continue;
            };
            if self.is_split(whole) {
                rest.iter().for_each(|&v| {
                    self.fix(v);
                });
                let least = self.of.get(last).map_or(1, |d| d.least);
                let times = self.product(rest);
                if let (Some(d), Some(times)) = (self.of.get_mut(&whole), times) {
                    d.unit = d.unit / gcd(d.unit, times) * times;
                    d.least = d.least.max(least.saturating_mul(times));
                }
                continue;
            }
            let sizes = leaves.iter().filter_map(|v| {
                let d = self.of.get_mut(v)?;
                d.pinned = Some(d.small().size);
                d.pinned
            });
            let size = sizes.fold(1, u64::saturating_mul);
            if let Some(d) = self.of.get_mut(&whole) {
                d.pinned = Some(size);
            }
        }
    }

    fn is_split(&self, v: Var) -> bool {
        self.split.iter().flatten().any(|&(major, _)| major == v)
    }

    fn cuts(&mut self, graph: &Graph) {
        for (_, data) in graph.insts() {
            let (along, start, len) = match &data.op {
                Op::Slice(s) => (axis_index(s.axis).unwrap_or(0), &s.start, &s.len),
                Op::SetSlice(s) => {
                    let along = axis_index(s.axis).unwrap_or(0);
                    let ty = &graph.value(data.operands[1]).ty;
                    (along, &s.start, &ty.dims[along])
                }
                _ => continue,
            };
            let var = self.joint.factors.axes[data.operands[0].index()][along];
            let (Some(start), Some(len)) = (start.as_const(), len.as_const()) else {
                continue;
            };
            let same = |_: Var| None;
            let found = |at| position(self.joint, &same, var, at);
            if found(start).is_none() || found(start + len).is_none() {
                self.fix(var);
            }
        }
    }

    /// Keeps selections meaningful: a top-k axis stays longer than `k`, and a table keeps several rows.
    fn selections(&mut self, graph: &Graph) {
        let mut products = Vec::new();
        for (_, data) in graph.insts() {
            if let Op::GetRows(_) = &data.op
                && let Op::Weight(_) = graph.def_op(data.operands[0])
            {
                let table = self.joint.factors.axes[data.operands[0].index()][1];
                let rows = hashed_rows(graph, data.operands[1]).max(WHOLE);
                for leaf in self.leaves(table) {
                    if let Some(d) = self.of.get_mut(&leaf) {
                        d.least = d.least.max(rows);
                    }
                }
            }
            let Op::TopK(top) = &data.op else { continue };
            let leaves = self.leaves(self.joint.factors.axes[data.operands[0].index()][0]);
            match leaves.as_slice() {
                [one] => {
                    if let Some(d) = self.of.get_mut(one) {
                        d.least = d.least.max(top.k + 1);
                    }
                }
                _ => products.push((leaves, top.k + 1)),
            }
        }
        for leaf in products.iter().flat_map(|(leaves, _)| leaves) {
            if let Some(d) = self.of.get_mut(leaf) {
                d.wanted = d.wanted.min(BEFORE_OTHERS);
            }
        }
        for (leaves, k) in products {
            let Some((last, rest)) = leaves.split_last() else {
                continue;
            };
            let known = |l: &Var| self.of.get(l).map_or(1, |d| d.least.min(d.size));
            let others: u64 = rest.iter().map(known).product();
            if let Some(d) = self.of.get_mut(last) {
                d.least = d.least.max(k.div_ceil(others));
            }
        }
    }

    /// Sets a size that an op requires; returns true if the size was not set before.
    pub(super) fn pin(&mut self, v: Var, size: u64) -> bool {
        let one = self.leaves(v);
        match one.as_slice() {
            [leaf] if !self.is_split(*leaf) => match self.of.get_mut(leaf) {
                Some(d) if d.pinned.is_none() && !d.fixed => {
                    d.pinned = Some(size);
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn small(&self) -> BTreeMap<Var, SmallSize> {
        let mut out: BTreeMap<Var, SmallSize> =
            self.of.iter().map(|(&v, d)| (v, d.small())).collect();
        for &(whole, product) in &self.joint.counted {
            let leaves = self.leaves(product);
            let Some((last, rest)) = leaves.split_last() else {
                continue;
            };
            if !self.is_split(whole) {
                continue;
            }
            if let (Some(n), Some(times)) = (out.get(&whole).map(|s| s.size), self.product(rest))
                && let Some(small) = out.get_mut(last)
            {
                small.size = n / times;
            }
        }
        out
    }
}

/// Returns the number of rows of the small table that hashes select from; 0 for other indices.
fn hashed_rows(graph: &Graph, mut index: Value) -> u64 {
    while graph.def_op(index).is_layout() {
        index = graph.inst(graph.value(index).def.0).operands[0];
    }
    match graph.def_op(index) {
        Op::NgramRows(op) => 2 * op.tables.len() as u64,
        _ => 0,
    }
}
