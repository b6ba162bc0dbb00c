//! From the sharded graph to the devices' programs: each value on one device with its local sizes, each op with
//! parameters re-based to the part that its device holds.
//!
//! What the laws of shardings leave implicit becomes ops here:
//! - a mirrored operand of a pending sum counts on the first device only;
//! - a contraction over ranges that overlap uses the indices that a device is the primary owner of;
//! - a contraction against shared edge blocks pads the activation with zeros to whole blocks;
//! - query heads that meet KV heads in unequal groups on a device take an attention per kind of group;
//! - a split value gathered on the host is put together there, piece by piece.

use tpc_ir::op::{
    Binary, BinaryKind, Concat, Copy, Expr, FlashAttn, Inferred, LocalCtx, Pad, Repeat, Reshape,
    Role, Scale, Sharded, Slice, Slot, TypeError, pieces,
};
use tpc_ir::{
    AxisTree, ClassData, ClassRef, Dim, Graph, Inst, InstData, Op, Output, Pending, Place, RANK,
    Run, Sharding, TensorType, Value,
};

/// Why a sharded graph has no programs. The verifier admits no such graph.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// An op's parameters cannot be re-based to a device's part.
    #[error("`{op}` of `{value}` cannot run on the part that device {rank} holds")]
    Rebase {
        /// The op.
        op: &'static str,
        /// What it defines.
        value: String,
        /// The device's rank.
        rank: usize,
    },
    /// A local op does not take its local operands.
    #[error("`{op}` of `{value}` on device {rank}: {source}")]
    Type {
        /// The op.
        op: &'static str,
        /// What it defines.
        value: String,
        /// The device's rank.
        rank: usize,
        /// Why.
        source: TypeError,
    },
    /// A local op's result is not the part that the sharding promises.
    #[error("`{op}` of `{value}` on device {rank} gives {found}, its sharding says {expected}")]
    Part {
        /// The op.
        op: &'static str,
        /// What it defines.
        value: String,
        /// The device's rank.
        rank: usize,
        /// What the sharding says.
        expected: String,
        /// What the op gives.
        found: String,
    },
}

/// The programs of all devices and of the host, in one graph.
///
/// # Errors
/// When the graph is not one that the verifier admits.
pub fn lower(sharded: &Graph) -> Result<Graph, LowerError> {
    let mut out = Graph::new(sharded.name.clone());
    out.devices.clone_from(&sharded.devices);
    let mut lowering = Lowering {
        from: sharded,
        out,
        map: vec![Vec::new(); sharded.values().len()],
    };
    for (inst, data) in sharded.insts() {
        lowering.inst(inst, data)?;
    }
    for output in &sharded.outputs {
        match output {
            Output::Named(name, v) => {
                lowering
                    .out
                    .outputs
                    .push(Output::Named(name.clone(), lowering.map[v.index()][0]));
            }
            Output::State { state, value } => {
                let pairs: Vec<_> = lowering.map[state.index()]
                    .iter()
                    .copied()
                    .zip(lowering.map[value.index()].iter().copied())
                    .collect();
                for (state, value) in pairs {
                    lowering.out.outputs.push(Output::State { state, value });
                }
            }
        }
    }
    Ok(lowering.out)
}

struct Lowering<'a> {
    from: &'a Graph,
    out: Graph,
    /// Per value of the sharded graph, its parts by rank (one for values on the host or on one device).
    map: Vec<Vec<Value>>,
}

impl Lowering<'_> {
    fn name(&self, data: &InstData) -> String {
        data.results
            .first()
            .map_or_else(String::new, |&v| self.from.value(v).name.clone())
    }

    fn error(&self, data: &InstData, rank: usize, source: TypeError) -> LowerError {
        LowerError::Type {
            op: data.op.name(),
            value: self.name(data),
            rank,
            source,
        }
    }

    /// Appends an op with one result on `place`.
    fn push(
        &mut self,
        data: &InstData,
        rank: usize,
        op: Op,
        operands: Vec<Value>,
        place: Place,
    ) -> Result<Value, LowerError> {
        let v = self
            .out
            .push_inferred(op, operands, place, data.layer)
            .map_err(|e| self.error(data, rank, e))?;
        let name = self.name(data);
        self.out.value_mut(v).name = name;
        Ok(v)
    }

    fn inst(&mut self, inst: Inst, data: &InstData) -> Result<(), LowerError> {
        let result = self.from.value(data.results[0]);
        match (&data.op, result.place) {
            (Op::Copy(_), to) => self.copy(data, to),
            (op, Place::Group(group)) if op.is_collective() => {
                let places: Vec<Place> = self
                    .from
                    .group(group)
                    .devices
                    .iter()
                    .map(|&d| Place::Device(d))
                    .collect();
                let operands = self.map[data.operands[0].index()].clone();
                let types: Vec<&TensorType> =
                    operands.iter().map(|&v| &self.out.value(v).ty).collect();
                let types = match data.op.infer(&types).map_err(|e| self.error(data, 0, e))? {
                    Inferred::Types(t) => t,
                    Inferred::Declared => Vec::new(),
                };
                let made = self
                    .out
                    .push_at(data.op.clone(), operands, types, &places, data.layer);
                let results = self.out.inst(made).results.clone();
                for &v in &results {
                    self.out.value_mut(v).name.clone_from(&result.name);
                }
                self.map[data.results[0].index()] = results;
                Ok(())
            }
            (_, Place::Group(group)) => {
                for (rank, &device) in self.from.group(group).devices.iter().enumerate() {
                    self.local(inst, data, rank, Place::Device(device))?;
                }
                Ok(())
            }
            (_, place) => self.local(inst, data, 0, place),
        }
    }

    /// One device's form of an instruction.
    fn local(
        &mut self,
        inst: Inst,
        data: &InstData,
        rank: usize,
        place: Place,
    ) -> Result<(), LowerError> {
        let from = self.from;
        let sharded = |vs: &[Value]| -> Vec<Sharded<'_>> {
            vs.iter()
                .map(|&v| {
                    let d = from.value(v);
                    Sharded {
                        ty: &d.ty,
                        sharding: &d.sharding,
                    }
                })
                .collect()
        };
        let (operands, results) = (sharded(&data.operands), sharded(&data.results));
        let ctx = LocalCtx {
            operands: &operands,
            results: &results,
            classes: &from.classes,
            rank,
        };
        let mut local: Vec<Value> = data.operands.iter().map(|v| self.part(*v, rank)).collect();
        if let Some(v) = self.counted_elsewhere(data, &local, rank, place)? {
            self.map[data.results[0].index()].push(v);
            return Ok(());
        }
        self.align_contraction(inst, data, &ctx, &mut local, place)?;
        if rank > 0
            && matches!(data.op, Op::AddId(_))
            && from.value(data.results[0]).sharding.pending == Pending::Partial
            && from.value(data.operands[0]).sharding.pending == Pending::None
        {
            local[0] = self.zeros_like(data, rank, local[0], place)?;
        }
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: data.op.name(),
            value: name.clone(),
            rank,
        };
        let op = data.op.localise(&ctx).ok_or_else(rebase)?;
        if let Some(v) = self.by_pieces(data, &ctx, &op, &local, place)? {
            self.map[data.results[0].index()].push(v);
            return Ok(());
        }
        let expected: Vec<TensorType> = (0..data.results.len())
            .map(|i| ctx.local_type(Slot::Result(i)).ok_or_else(rebase))
            .collect::<Result<_, _>>()?;
        let types: Vec<&TensorType> = local.iter().map(|&v| &self.out.value(v).ty).collect();
        if let Inferred::Types(found) = op.infer(&types).map_err(|e| self.error(data, rank, e))?
            && found != expected
        {
            let show = |t: &[TensorType]| {
                t.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (expected, found) = (show(&expected), show(&found));
            return Err(LowerError::Part {
                op: data.op.name(),
                value: self.name(data),
                rank,
                expected,
                found,
            });
        }
        let made = self.out.push(op, local, expected, place, data.layer);
        let made = self.out.inst(made).results.clone();
        for (&v, new) in data.results.iter().zip(made) {
            self.out.value_mut(new).name.clone_from(&from.value(v).name);
            self.map[v.index()].push(new);
        }
        Ok(())
    }

    /// The part of a value that the device of rank `rank` holds.
    fn part(&self, v: Value, rank: usize) -> Value {
        let parts = &self.map[v.index()];
        parts[rank.min(parts.len() - 1)]
    }

    /// On all devices but the first, a sum with a mirrored operand is its pending operand alone.
    fn counted_elsewhere(
        &mut self,
        data: &InstData,
        local: &[Value],
        rank: usize,
        place: Place,
    ) -> Result<Option<Value>, LowerError> {
        let pending = |v: Value| self.from.value(v).sharding.pending != Pending::None;
        if rank == 0 || !pending(data.results[0]) {
            return Ok(None);
        }
        let subtract = match &data.op {
            Op::Binary(Binary {
                kind: BinaryKind::Add,
            }) => false,
            Op::Binary(Binary {
                kind: BinaryKind::Sub,
            }) => true,
            // The bias counts once, unless each device adds the rows of its own experts.
            Op::AddId(_) if !self.from.value(data.operands[1]).sharding.is_split() => {
                return Ok(Some(local[0]));
            }
            _ => return Ok(None),
        };
        match (pending(data.operands[0]), pending(data.operands[1])) {
            (true, false) => Ok(Some(local[0])),
            (false, true) => {
                let dims = self.from.value(data.results[0]).ty.dims.clone();
                let mut v = local[1];
                if self.out.value(v).ty.dims != dims {
                    v = self.push(data, rank, Repeat { dims }.into(), vec![v], place)?;
                }
                if subtract {
                    v = self.push(
                        data,
                        rank,
                        Scale {
                            scale: -1.0,
                            bias: 0.0,
                        }
                        .into(),
                        vec![v],
                        place,
                    )?;
                }
                Ok(Some(v))
            }
            _ => Ok(None),
        }
    }

    /// An op whose indices meet in groups that are not alike on this device runs once per kind of group.
    fn by_pieces(
        &mut self,
        data: &InstData,
        ctx: &LocalCtx<'_>,
        op: &Op,
        local: &[Value],
        place: Place,
    ) -> Result<Option<Value>, LowerError> {
        let rank = ctx.rank;
        let rebase = || LowerError::Rebase {
            op: op.name(),
            value: String::new(),
            rank,
        };
        let is_split = |(o, a): (usize, usize)| ctx.operands[o].sharding.axes[a].is_some();
        let found = op
            .groupings()
            .iter()
            .find(|g| is_split(g.many) || is_split(g.few[0]));
        let Some(grouping) = found else {
            return Ok(None);
        };
        let size = |(o, a): (usize, usize)| ctx.operands[o].ty.dims[a].as_const();
        let runs = |(o, a): (usize, usize)| ctx.runs(Slot::Operand(o), a);
        // Axes whose sizes are known at run time only are never grouped.
        let (Some(many), Some(few)) = (size(grouping.many), size(grouping.few[0])) else {
            return Ok(None);
        };
        let (Some(m), Some(f)) = (runs(grouping.many), runs(grouping.few[0])) else {
            return Ok(None);
        };
        let group = if few == 0 { 1 } else { many / few };
        let parts = pieces(&m, &f, group.max(1)).ok_or_else(rebase)?;
        let held = tpc_ir::sharding::runs_len(&f);
        match parts.as_slice() {
            [] => return Ok(None),
            [one] if one.few.len == held => return Ok(None),
            _ => {}
        }
        let mut results = Vec::new();
        for piece in parts {
            let mut operands = local.to_vec();
            let wanted = [(grouping.many, piece.many)]
                .into_iter()
                .chain(grouping.few.iter().map(|&at| (at, piece.few)))
                .chain(grouping.along.iter().map(|&at| (at, piece.many)));
            for ((o, a), run) in wanted {
                if o < operands.len() {
                    operands[o] = self.select(data, rank, operands[o], a, &[run], place)?;
                }
            }
            let mut op = op.clone();
            if let Op::FlashAttn(FlashAttn { heads: Some(w), .. }) = &mut op {
                w.heads = nth(&w.heads, piece.many);
            }
            results.push(self.push(data, rank, op, operands, place)?);
        }
        match results.as_slice() {
            [one] => Ok(Some(*one)),
            _ => {
                let axis = grouping.result as u64;
                self.push(data, rank, Concat { axis }.into(), results, place)
                    .map(Some)
            }
        }
    }

    /// Zeros in the shape of `v`, whose axis 0 is constant.
    fn zeros_like(
        &mut self,
        data: &InstData,
        rank: usize,
        v: Value,
        place: Place,
    ) -> Result<Value, LowerError> {
        let n = self.out.value(v).ty.dims[0].as_const();
        let after = n.ok_or_else(|| LowerError::Rebase {
            op: data.op.name(),
            value: self.name(data),
            rank,
        })?;
        let none = Slice {
            axis: 0,
            start: Dim::ZERO,
            len: Dim::ZERO,
        };
        let empty = self.push(data, rank, none.into(), vec![v], place)?;
        self.push(
            data,
            rank,
            Pad {
                axis: 0,
                before: 0,
                after,
            }
            .into(),
            vec![empty],
            place,
        )
    }

    /// Makes the operands of a contraction meet index by index, each index on one device only.
    fn align_contraction(
        &mut self,
        inst: Inst,
        data: &InstData,
        ctx: &LocalCtx<'_>,
        local: &mut [Value],
        place: Place,
    ) -> Result<(), LowerError> {
        let types = |vs: &[Value]| {
            vs.iter()
                .map(|&v| &self.from.value(v).ty)
                .collect::<Vec<_>>()
        };
        if !data
            .operands
            .iter()
            .any(|&v| self.from.value(v).sharding.is_split())
        {
            return Ok(());
        }
        let rule = data.op.rule(&types(&data.operands), &types(&data.results));
        let product = matches!(data.op, Op::MulMat(_) | Op::MulMatId(_));
        let rank = ctx.rank;
        let rebase = || LowerError::Rebase {
            op: data.op.name(),
            value: format!("{inst}"),
            rank,
        };
        for (role, expr) in &rule.roles {
            let (
                Role::Reduce | Role::Gather | Role::Expert,
                Expr::Axis(Slot::Operand(first), axis),
            ) = (role, expr)
            else {
                continue;
            };
            // A product contracts the same axis of both its operands.
            let slots = if product && *role == Role::Reduce {
                0..2
            } else {
                *first..*first + 1
            };
            for slot in slots {
                let operand = ctx.operands[slot];
                let Some(tree) = &operand.sharding.axes[*axis] else {
                    continue;
                };
                if overlaps(tree, ctx.classes) {
                    let runs = tree.runs(ctx.classes, rank).ok_or_else(rebase)?;
                    let owned = tree.owned_runs(ctx.classes, rank).ok_or_else(rebase)?;
                    local[slot] = self.select(
                        data,
                        rank,
                        local[slot],
                        *axis,
                        &within(&runs, &owned),
                        place,
                    )?;
                } else if slot == 1 && ctx.operands[0].sharding.cover > 1 {
                    let cover = ctx.operands[0].sharding.cover;
                    let runs = tree.runs(ctx.classes, rank).ok_or_else(rebase)?;
                    let blocks = tpc_ir::sharding::cover_runs(&runs, cover);
                    if let ([run], [block]) = (runs.as_slice(), blocks.as_slice()) {
                        let (before, after) = (run.start - block.start, block.end() - run.end());
                        if before + after > 0 {
                            let pad = Pad {
                                axis: *axis as u64,
                                before,
                                after,
                            };
                            local[slot] =
                                self.push(data, rank, pad.into(), vec![local[slot]], place)?;
                        }
                    } else if !runs.is_empty() {
                        return Err(rebase());
                    }
                }
            }
        }
        Ok(())
    }

    /// The given runs of local indices along `axis`, one after another.
    fn select(
        &mut self,
        data: &InstData,
        rank: usize,
        v: Value,
        axis: usize,
        runs: &[Run],
        place: Place,
    ) -> Result<Value, LowerError> {
        if let [one] = runs
            && one.start == 0
            && self.out.value(v).ty.dims[axis] == one.len
        {
            return Ok(v);
        }
        let axis = axis as u64;
        let mut pieces = Vec::new();
        let none = [Run { start: 0, len: 0 }];
        for r in if runs.is_empty() {
            none.as_slice()
        } else {
            runs
        } {
            let slice = Slice {
                axis,
                start: Dim::constant(r.start),
                len: Dim::constant(r.len),
            };
            pieces.push(self.push(data, rank, slice.into(), vec![v], place)?);
        }
        match pieces.as_slice() {
            [one] => Ok(*one),
            _ => self.push(data, rank, Concat { axis }.into(), pieces, place),
        }
    }

    fn copy(&mut self, data: &InstData, to: Place) -> Result<(), LowerError> {
        let (source, result) = (data.operands[0], data.results[0]);
        let from = self.from;
        let (src, dst) = (from.value(source), from.value(result));
        let rebase = |rank| LowerError::Rebase {
            op: "copy",
            value: dst.name.clone(),
            rank,
        };
        let mut parts = Vec::new();
        match (src.place, to) {
            (Place::Group(_), Place::Group(_)) => return Err(rebase(0)),
            (Place::Group(_), _) => parts.push(self.gather(data, &src.sharding, &src.ty, to)?),
            (_, Place::Group(group)) => {
                for (rank, &device) in from.group(group).devices.iter().enumerate() {
                    let v = self.part(source, 0);
                    let v = self.cut(data, rank, v, &dst.sharding, &dst.ty, src.place)?;
                    parts.push(self.push(
                        data,
                        rank,
                        Copy.into(),
                        vec![v],
                        Place::Device(device),
                    )?);
                }
            }
            _ => {
                let v = self.part(source, 0);
                parts.push(self.push(data, 0, Copy.into(), vec![v], to)?);
            }
        }
        self.map[result.index()] = parts;
        Ok(())
    }

    /// Cuts the part of rank `rank` out of a whole value on `place`.
    fn cut(
        &mut self,
        data: &InstData,
        rank: usize,
        mut v: Value,
        sharding: &Sharding,
        ty: &TensorType,
        place: Place,
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: data.op.name(),
            value: name.clone(),
            rank,
        };
        if let Some(at) = Isolated::of(sharding, ty) {
            let range = classes[at.class.class.index()]
                .range(rank, at.class.div)
                .ok_or_else(rebase)?;
            let local = sharding.local_type(ty, classes, rank).ok_or_else(rebase)?;
            v = self.push(
                data,
                rank,
                Reshape {
                    dims: at.dims(at.size.clone()),
                }
                .into(),
                vec![v],
                place,
            )?;
            v = self.select(data, rank, v, 1, &[range], place)?;
            return self.push(
                data,
                rank,
                Reshape { dims: local.dims }.into(),
                vec![v],
                place,
            );
        }
        for axis in 0..RANK {
            if sharding.axes[axis].is_some() {
                let runs = sharding
                    .runs(axis, &ty.dims[axis], classes, rank)
                    .ok_or_else(rebase)?;
                v = self.select(data, rank, v, axis, &runs, place)?;
            }
        }
        Ok(v)
    }

    /// Brings a group's value together on `to`: each device sends the indices that it is the primary owner of.
    fn gather(
        &mut self,
        data: &InstData,
        sharding: &Sharding,
        ty: &TensorType,
        to: Place,
    ) -> Result<Value, LowerError> {
        let from = self.from;
        let source = data.operands[0];
        let split: Vec<usize> = (0..RANK).filter(|&a| sharding.axes[a].is_some()).collect();
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: "copy",
            value: name.clone(),
            rank: 0,
        };
        let axis = match split.as_slice() {
            [] => {
                let v = self.part(source, 0);
                return self.push(data, 0, Copy.into(), vec![v], to);
            }
            [one] => *one,
            _ => return Err(rebase()),
        };
        let isolated = Isolated::of(sharding, ty);
        let tree = sharding.tree(axis, &ty.dims[axis]);
        let (axis, tree) = match &isolated {
            Some(at) => (
                1,
                AxisTree::Leaf {
                    size: at.size.clone(),
                    split: Some(at.class),
                },
            ),
            None => (axis, tree),
        };
        let mut pieces: Vec<(Run, Value)> = Vec::new();
        for rank in 0..self.map[source.index()].len() {
            let runs = tree.runs(&from.classes, rank).ok_or_else(rebase)?;
            // Segments that are not split come from the first device.
            let sent: Vec<Run> = pieces.iter().map(|(r, _)| *r).collect();
            let owned = without(
                &tree.owned_runs(&from.classes, rank).ok_or_else(rebase)?,
                &sent,
            );
            if owned.is_empty() {
                continue;
            }
            let mut part = self.part(source, rank);
            let place = self.out.value(part).place;
            if let Some(at) = &isolated {
                let local = Dim::constant(tpc_ir::sharding::runs_len(&runs));
                part = self.push(
                    data,
                    rank,
                    Reshape {
                        dims: at.dims(local),
                    }
                    .into(),
                    vec![part],
                    place,
                )?;
            }
            let sent = self.select(data, rank, part, axis, &within(&runs, &owned), place)?;
            let arrived = self.push(data, rank, Copy.into(), vec![sent], to)?;
            let mut at = 0;
            for run in &owned {
                let local = [Run {
                    start: at,
                    len: run.len,
                }];
                pieces.push((*run, self.select(data, rank, arrived, axis, &local, to)?));
                at += run.len;
            }
        }
        // The pieces are put in order.
        pieces.sort_by_key(|(r, _)| r.start);
        let whole = match pieces.as_slice() {
            [(_, one)] => *one,
            _ => {
                let pieces = pieces.into_iter().map(|(_, v)| v).collect();
                self.push(data, 0, Concat { axis: axis as u64 }.into(), pieces, to)?
            }
        };
        if isolated.is_some() {
            return self.push(
                data,
                0,
                Reshape {
                    dims: ty.dims.clone(),
                }
                .into(),
                vec![whole],
                to,
            );
        }
        Ok(whole)
    }
}

/// A split factor of a value as an axis of its own: the value's elements as `[inner, factor, outer]`, whatever the
/// sizes around it, symbolic ones included.
struct Isolated {
    class: ClassRef,
    size: Dim,
    inner: Dim,
    outer: Dim,
}

impl Isolated {
    /// The one split leaf of a value that is no sum and is not the whole of an axis.
    fn of(sharding: &Sharding, ty: &TensorType) -> Option<Isolated> {
        let mut out: Option<Isolated> = None;
        let mut inner = Dim::ONE;
        for axis in 0..RANK {
            let tree = sharding.tree(axis, &ty.dims[axis]);
            let factors = match &tree {
                AxisTree::Leaf { .. } => std::slice::from_ref(&tree),
                AxisTree::Product(k) => k.as_slice(),
                AxisTree::Sum(_) => return None,
            };
            for f in factors.iter().rev() {
                let AxisTree::Leaf { size, split } = f else {
                    return None;
                };
                match (split, &mut out) {
                    (Some(_), Some(_)) => return None,
                    (Some(class), None) => {
                        out = Some(Isolated {
                            class: *class,
                            size: size.clone(),
                            inner: inner.clone(),
                            outer: Dim::ONE,
                        });
                    }
                    (None, Some(at)) => at.outer = at.outer.checked_mul(size)?,
                    (None, None) => inner = inner.checked_mul(size)?,
                }
            }
        }
        out.filter(|_| {
            !sharding
                .axes
                .iter()
                .flatten()
                .all(|t| matches!(**t, AxisTree::Leaf { .. }))
        })
    }

    /// The sizes of the value, with `size` indices of the factor.
    fn dims(&self, size: Dim) -> [Dim; RANK] {
        [self.inner.clone(), size, self.outer.clone(), Dim::ONE]
    }
}

fn overlaps(tree: &AxisTree, classes: &[ClassData]) -> bool {
    let mut refs = Vec::new();
    tree.classes(&mut refs);
    refs.iter()
        .any(|c| classes[c.class.index()].overlaps(c.div))
}

/// The indices of `runs` that are not among `taken`.
fn without(runs: &[Run], taken: &[Run]) -> Vec<Run> {
    let mut left = runs.to_vec();
    for t in taken {
        left = left
            .iter()
            .flat_map(|r| {
                let before = Run::from_bounds(r.start, r.end().min(t.start));
                let after = Run::from_bounds(r.start.max(t.end()), r.end());
                if t.end() <= r.start || t.start >= r.end() {
                    [*r, Run::default()]
                } else {
                    [before, after]
                }
            })
            .filter(|r| r.len > 0)
            .collect();
    }
    left
}

/// The indices at these positions of the list that `runs` make.
fn nth(runs: &[Run], positions: Run) -> Vec<Run> {
    let mut out = Vec::new();
    let mut at = 0;
    for r in runs {
        let from = positions.start.clamp(at, at + r.len);
        let to = positions.end().clamp(at, at + r.len);
        if from < to {
            out.push(Run {
                start: r.start + from - at,
                len: to - from,
            });
        }
        at += r.len;
    }
    out
}

/// Where the indices `inner` stand among the packed indices `outer`, which hold them all.
fn within(outer: &[Run], inner: &[Run]) -> Vec<Run> {
    let mut out = Vec::new();
    let mut at = 0;
    for o in outer {
        for i in inner
            .iter()
            .filter(|i| i.start >= o.start && i.end() <= o.end() && i.len > 0)
        {
            out.push(Run {
                start: at + i.start - o.start,
                len: i.len,
            });
        }
        at += o.len;
    }
    out
}
