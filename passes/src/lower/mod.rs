//! From the sharded graph to the devices' programs: each value on one device with its local sizes, each op with
//! parameters re-based to the part that its device holds.
//!
//! What the laws of shardings leave implicit becomes ops here:
//! - a mirrored operand of a pending sum counts on the first device only;
//! - a contraction over ranges that overlap uses the indices that a device is the primary owner of;
//! - a contraction against shared edge blocks pads the activation with zeros to whole blocks;
//! - heads that meet KV heads (or groups of a scan) in unequal numbers on a device take an op per kind of group;
//! - a split value gathered on the host is put together there, piece by piece.

mod contraction;
mod groups;
mod intervals;
mod transfer;
mod unreduced;

use tpc_ir::op::{Concat, Inferred, LocalCtx, ReduceScatter, Sharded, Slice, Slot, TypeError};
use tpc_ir::{
    Dim, Graph, Inst, InstData, Interval, Op, Output, Place, TensorType, Unreduced, Value,
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

    /// Appends an op with the results that follow from its operands on `place`, named as those of `data`.
    fn push_all(
        &mut self,
        data: &InstData,
        rank: usize,
        op: Op,
        operands: Vec<Value>,
        place: Place,
    ) -> Result<Vec<Value>, LowerError> {
        let types: Vec<&TensorType> = operands.iter().map(|&v| &self.out.value(v).ty).collect();
        let types = match op.infer(&types).map_err(|e| self.error(data, rank, e))? {
            Inferred::Types(t) => t,
            Inferred::Declared => Vec::new(),
        };
        let made = self.out.push(op, operands, types, place, data.layer);
        let made = self.out.inst(made).results.clone();
        for (&v, &new) in data.results.iter().zip(&made) {
            let name = self.from.value(v).name.clone();
            self.out.value_mut(new).name = name;
        }
        Ok(made)
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
                let op = self.collective(data, op)?;
                let types = match op.infer(&types).map_err(|e| self.error(data, 0, e))? {
                    Inferred::Types(t) => t,
                    Inferred::Declared => Vec::new(),
                };
                let made = self.out.push_at(op, operands, types, &places, data.layer);
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

    /// The form of a collective that all devices run: what is scattered says how much each keeps.
    fn collective(&self, data: &InstData, op: &Op) -> Result<Op, LowerError> {
        let Op::ReduceScatter(scatter) = op else {
            return Ok(op.clone());
        };
        let result = self.from.value(data.results[0]);
        let counts = (0..self.from.ranks(result.place))
            .map(|rank| {
                let local = result
                    .sharding
                    .local_type(&result.ty, &self.from.classes, rank);
                let kept = local.and_then(|t| t.dims.get(scatter.axis as usize)?.as_const());
                kept.ok_or_else(|| LowerError::Rebase {
                    op: op.name(),
                    value: self.name(data),
                    rank,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(ReduceScatter {
            axis: scatter.axis,
            counts,
        }
        .into())
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
            && from.value(data.results[0]).sharding.unreduced == Unreduced::Partial
            && from.value(data.operands[0]).sharding.unreduced == Unreduced::None
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
        if let Some(made) = self.by_pieces(data, &ctx, &op, &local, place)? {
            for (&v, new) in data.results.iter().zip(made) {
                self.out.value_mut(new).name.clone_from(&from.value(v).name);
                self.map[v.index()].push(new);
            }
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

    /// The given runs of local indices along `axis`, one after another.
    fn select(
        &mut self,
        data: &InstData,
        rank: usize,
        v: Value,
        axis: usize,
        runs: &[Interval],
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
        let none = [Interval { start: 0, len: 0 }];
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
}
