//! Lowers single instructions to local ops, names and types.

use tpc_ir::op::{
    AllToAll, Concat, InferredTypes, LocalCtx, ReduceScatter, Rule, ShardedTensor, Slice, Slot,
    TypeError,
};
use tpc_ir::{
    Budget, Dim, Graph, Group, Inst, InstData, Interval, Op, OpLocation, Output, Place, Resource,
    TensorType, Value, Verified, stage,
};

use super::LowerError;

const PROGRAMS: &str = "lowering to programs";

/// Returns the programs of all devices and of the host, in one graph.
///
/// # Errors
/// Returns an error if the verifier wrongly admits a graph.
pub fn lower(sharded: &Verified<stage::Sharded>) -> Result<Graph, LowerError> {
    lower_within(sharded, &Budget::default())
}

/// Lowers within a budget.
///
/// # Errors
/// Returns an error if the verifier wrongly admits a graph or the budget is exhausted.
pub fn lower_within(
    sharded: &Verified<stage::Sharded>,
    budget: &Budget,
) -> Result<Graph, LowerError> {
    let mut out = sharded.without_insts();
    out.devices.clone_from(&sharded.devices);
    let mut lowering = Lowering {
        from: sharded,
        out,
        map: vec![Vec::new(); sharded.values().len()],
    };
    let ranks = |&v: &Value| sharded.ranks(sharded.value(v).place);
    let (mut values, mut insts) = (0, 0);
    for (_, data) in sharded.insts() {
        values += data.results.iter().map(ranks).sum::<usize>();
        insts += data.results.first().map_or(0, ranks);
    }
    // Uneven splits need additional instructions that join parts.
    lowering.out.reserve(values + values / 4, insts + insts / 4);
    for (inst, data) in sharded.insts() {
        lowering.spend(inst, budget)?;
        lowering.inst(data)?;
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

pub(super) struct Lowering<'a> {
    pub(super) from: &'a Graph,
    pub(super) out: Graph,
    /// The parts of each value of the sharded graph, by rank; one part on the host or on a single device.
    pub(super) map: Vec<Vec<Value>>,
}

/// An instruction of the sharded graph, as run by one device. Local ops appended here take its layer and name.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) data: &'a InstData,
    /// The rank in the group; 0 on the host and on a single device.
    pub(super) rank: usize,
    pub(super) place: Place,
}

impl<'a> Site<'a> {
    pub(super) const fn on(self, place: Place) -> Site<'a> {
        Site { place, ..self }
    }
}

impl<'a> Lowering<'a> {
    pub(super) fn name(&self, data: &InstData) -> String {
        data.results
            .first()
            .map_or_else(String::new, |&v| self.from.value(v).name.clone())
    }

    pub(super) fn rebase(&self, site: Site<'_>) -> LowerError {
        LowerError::Rebase {
            op: site.data.op.name(),
            value: self.name(site.data),
            rank: site.rank,
        }
    }

    /// Infers the types of an op's results. Returns `None` if the op declares them.
    pub(super) fn infer(
        &self,
        site: Site<'_>,
        op: &Op,
        operands: &[Value],
    ) -> Result<Option<Vec<TensorType>>, LowerError> {
        let types: Vec<&TensorType> = operands.iter().map(|&v| &self.out.value(v).ty).collect();
        match op.infer(&types) {
            Ok(InferredTypes::Types(types)) => Ok(Some(types)),
            Ok(InferredTypes::Declared) => Ok(None),
            Err(source) => Err(self.type_error(site, source)),
        }
    }

    fn type_error(&self, site: Site<'_>, source: TypeError) -> LowerError {
        LowerError::Type {
            op: site.data.op.name(),
            value: self.name(site.data),
            rank: site.rank,
            source,
        }
    }

    pub(super) fn push(
        &mut self,
        site: Site<'_>,
        op: impl Into<Op>,
        operands: Vec<Value>,
    ) -> Result<Value, LowerError> {
        let v = self
            .out
            .push_with_inference(op.into(), operands, site.place, site.data.layer)
            .map_err(|e| self.type_error(site, e))?;
        let name = self.name(site.data);
        self.out.value_mut(v).name = name;
        Ok(v)
    }

    pub(super) fn push_with_type(
        &mut self,
        site: Site<'_>,
        op: Op,
        operands: Vec<Value>,
        types: Vec<TensorType>,
    ) -> Vec<Value> {
        let new = self
            .out
            .push(op, operands, types, site.place, site.data.layer);
        let new = self.out.inst(new).results.clone();
        self.give_names(site.data, &new);
        new
    }

    fn give_names(&mut self, data: &InstData, new: &[Value]) {
        for (&v, &new) in data.results.iter().zip(new) {
            let name = &self.from.value(v).name;
            self.out.value_mut(new).name.clone_from(name);
        }
    }

    /// Charges one segment per run of indices that a device holds, reads or fetches.
    fn spend(&self, inst: Inst, budget: &Budget) -> Result<(), LowerError> {
        let from = self.from;
        let data = from.inst(inst);
        let (mut segments, mut pairs) = (0_u64, 0_u64);
        for &v in data.operands.iter().chain(&data.results) {
            let value = from.value(v);
            let ranks = from.ranks(value.place) as u64;
            for tree in value.sharding.axes.iter().flatten() {
                let runs = tree.most_runs().saturating_sub(1).saturating_mul(ranks);
                segments = segments.saturating_add(runs);
                pairs = pairs.saturating_add(runs.saturating_mul(runs) / ranks);
            }
        }
        let spot = || Some(OpLocation::of(from, inst));
        budget.spend(Resource::Segments, segments, PROGRAMS, spot)?;
        // Gathered runs are compared with cut runs, pair by pair.
        Ok(budget.spend(Resource::Steps, pairs / 256, PROGRAMS, spot)?)
    }

    fn inst(&mut self, data: &InstData) -> Result<(), LowerError> {
        let result = self.from.value(data.results[0]);
        match (&data.op, result.place) {
            (Op::Copy(_), to) => self.copy(data, to),
            (op, Place::Group(group)) if op.is_collective() => self.collective(data, group),
            (_, Place::Group(group)) => {
                for (rank, &device) in self.from.group(group).devices.iter().enumerate() {
                    let place = Place::Device(device);
                    self.local(Site { data, rank, place })?;
                }
                Ok(())
            }
            (_, place) => self.local(Site {
                data,
                rank: 0,
                place,
            }),
        }
    }

    fn collective(&mut self, data: &InstData, group: Group) -> Result<(), LowerError> {
        let devices = &self.from.group(group).devices;
        let places: Vec<Place> = devices.iter().map(|&d| Place::Device(d)).collect();
        let operands = self.map[data.operands[0].index()].clone();
        let op = self.with_counts(data)?;
        let site = Site {
            data,
            rank: 0,
            place: places[0],
        };
        let types = self.infer(site, &op, &operands)?.unwrap_or_default();
        let new = self.out.push_at(op, operands, types, &places, data.layer);
        let results = self.out.inst(new).results.clone();
        let result = data.results[0];
        for &v in &results {
            let name = &self.from.value(result).name;
            self.out.value_mut(v).name.clone_from(name);
        }
        self.map[result.index()] = results;
        Ok(())
    }

    /// Returns the per-device form of a collective: a reduce-scatter lists each device's indices.
    fn with_counts(&self, data: &InstData) -> Result<Op, LowerError> {
        let axis = match &data.op {
            Op::ReduceScatter(scatter) => scatter.axis,
            Op::AllToAll(exchange) => exchange.cut,
            _ => return Ok(data.op.clone()),
        };
        let result = self.from.value(data.results[0]);
        let counts = (0..self.from.ranks(result.place))
            .map(|rank| {
                let local = result
                    .sharding
                    .local_type(&result.ty, &self.from.classes, rank);
                let kept = local.and_then(|t| t.dims.get(axis as usize)?.as_const());
                kept.ok_or_else(|| {
                    self.rebase(Site {
                        data,
                        rank,
                        place: result.place,
                    })
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(match &data.op {
            Op::AllToAll(exchange) => AllToAll {
                counts,
                ..exchange.clone()
            }
            .into(),
            _ => ReduceScatter { axis, counts }.into(),
        })
    }

    pub(super) fn rule(&self, data: &InstData) -> Rule {
        let types = |vs: &[Value]| -> Vec<&TensorType> {
            vs.iter().map(|&v| &self.from.value(v).ty).collect()
        };
        data.op.rule(&types(&data.operands), &types(&data.results))
    }

    fn local(&mut self, site: Site<'_>) -> Result<(), LowerError> {
        let data = site.data;
        let (operands, results) = (
            self.sharded_tensors(&data.operands),
            self.sharded_tensors(&data.results),
        );
        let ctx = LocalCtx {
            operands: &operands,
            results: &results,
            classes: &self.from.classes,
            rank: site.rank,
        };
        let parts = data.operands.iter().map(|&v| self.part(v, site.rank));
        let mut local: Vec<Value> = parts.collect();
        if let Some(v) = self.count_elsewhere(site, &local)? {
            self.map[data.results[0].index()].push(v);
            return Ok(());
        }
        self.align_contraction(site, &ctx, &mut local)?;
        self.count_once(site, &mut local)?;
        let op = data.op.localise(&ctx).ok_or_else(|| self.rebase(site))?;
        let new = match self.run_by_head_group(site, &ctx, &op, &local)? {
            Some(new) => new,
            None => self.as_sharded(site, &ctx, op, local)?,
        };
        self.give_names(data, &new);
        for (&v, new) in data.results.iter().zip(new) {
            self.map[v.index()].push(new);
        }
        Ok(())
    }

    fn sharded_tensors(&self, values: &[Value]) -> Vec<ShardedTensor<'a>> {
        let from = self.from;
        let sharded = values.iter().map(|&v| {
            let d = from.value(v);
            ShardedTensor {
                ty: &d.ty,
                sharding: &d.sharding,
            }
        });
        sharded.collect()
    }

    fn as_sharded(
        &mut self,
        site: Site<'_>,
        ctx: &LocalCtx<'_>,
        op: Op,
        operands: Vec<Value>,
    ) -> Result<Vec<Value>, LowerError> {
        let expected: Vec<TensorType> = (0..site.data.results.len())
            .map(|i| {
                let part = ctx.local_type(Slot::Result(i));
                part.ok_or_else(|| self.rebase(site))
            })
            .collect::<Result<_, _>>()?;
        if let Some(found) = self.infer(site, &op, &operands)?
            && found != expected
        {
            let show = |t: &[TensorType]| {
                t.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            return Err(LowerError::Part {
                op: site.data.op.name(),
                value: self.name(site.data),
                rank: site.rank,
                expected: show(&expected),
                found: show(&found),
            });
        }
        Ok(self.push_with_type(site, op, operands, expected))
    }

    pub(super) fn part(&self, v: Value, rank: usize) -> Value {
        let parts = &self.map[v.index()];
        parts[rank.min(parts.len() - 1)]
    }

    /// Returns the given local index intervals along `axis`, concatenated.
    pub(super) fn select(
        &mut self,
        site: Site<'_>,
        v: Value,
        axis: usize,
        intervals: &[Interval],
    ) -> Result<Value, LowerError> {
        if let [one] = intervals
            && one.start == 0
            && self.out.value(v).ty.dims[axis] == one.len
        {
            return Ok(v);
        }
        let axis = axis as u64;
        let empty = [Interval::default()];
        let intervals = match intervals {
            [] => &empty,
            some => some,
        };
        let mut slices = Vec::with_capacity(intervals.len());
        for i in intervals {
            let slice = Slice {
                axis,
                start: Dim::constant(i.start),
                len: Dim::constant(i.len),
            };
            slices.push(self.push(site, slice, vec![v])?);
        }
        self.concat(site, axis as usize, slices)
    }

    pub(super) fn concat(
        &mut self,
        site: Site<'_>,
        axis: usize,
        values: Vec<Value>,
    ) -> Result<Value, LowerError> {
        match values.as_slice() {
            [one] => Ok(*one),
            _ => self.push(site, Concat { axis: axis as u64 }, values),
        }
    }
}
