use std::collections::BTreeMap;

use tpc_ir::factor::Var;
use tpc_ir::op::InferredTypes;
use tpc_ir::resize::{Sizes, resize};
use tpc_ir::{Class, Dim, Graph, Inst, Interval, RANK, TensorType, Value};

use super::constraints::Constraints;
use super::joint::Joint;
use super::position::position;
use super::units::SmallSize;

#[derive(Clone, Debug)]
pub(super) struct SizeConflict {
    pub(super) inst: Inst,
    pub(super) why: String,
}

pub(super) struct SmallSizes<'a> {
    joint: &'a Joint,
    small: BTreeMap<Var, SmallSize>,
    /// The factor that a class's ranges divide, and the elements per index; `None` if the class keeps its size.
    split: Vec<Option<(Var, u64)>>,
}

impl<'a> SmallSizes<'a> {
    pub(super) fn choose(
        joint: &'a Joint,
        sharded: &Graph,
    ) -> Result<SmallSizes<'a>, SizeConflict> {
        let mut constraints = Constraints::new(joint, sharded);
        loop {
            let sizes = SmallSizes {
                joint,
                small: constraints.small(),
                split: constraints.split.clone(),
            };
            let mut mismatches = sizes.mismatches();
            if mismatches.is_empty() {
                return Ok(sizes);
            }
            let mut changed = false;
            for m in &mismatches {
                let pinned = m.says.is_some_and(|(v, n)| constraints.pin(v, n));
                changed |= pinned || constraints.fix_whole(m.inst);
            }
            // If pinned sizes do not help, all factors of these ops keep their sizes.
            if !changed {
                for m in &mismatches {
                    changed |= constraints.fix_all(m.inst);
                }
            }
            if !changed {
                let Mismatch { inst, why, .. } = mismatches.swap_remove(0);
                return Err(SizeConflict { inst, why });
            }
        }
    }

    /// Lists instructions that reject their operands, or whose results do not have the declared types.
    fn mismatches(&self) -> Vec<Mismatch> {
        let graph = &self.joint.graph;
        let mut out = Vec::new();
        let small = |v: Value| TensorType {
            dtype: graph.value(v).ty.dtype,
            dims: self.dims(v),
        };
        for (inst, data) in graph.insts() {
            let op = resize(graph, data, self);
            let operands: Vec<TensorType> = data.operands.iter().map(|&v| small(v)).collect();
            let operands: Vec<&TensorType> = operands.iter().collect();
            let types = match op.infer(&operands) {
                Ok(InferredTypes::Types(types)) => types,
                Ok(InferredTypes::Declared) => continue,
                Err(e) => {
                    out.push(Mismatch {
                        inst,
                        why: e.to_string(),
                        says: None,
                    });
                    continue;
                }
            };
            for (&v, ty) in data.results.iter().zip(&types) {
                let own = small(v);
                for a in (0..RANK).filter(|&a| own.dims[a] != ty.dims[a]) {
                    let var = self.joint.factors.axes[v.index()][a];
                    out.push(Mismatch {
                        inst,
                        why: format!("{own} instead of {ty}"),
                        says: ty.dims[a].as_const().map(|n| (var, n)),
                    });
                }
            }
        }
        out
    }

    fn of(&self, v: Var) -> Option<Dim> {
        self.small.get(&v).map(|s| Dim::constant(s.size))
    }

    pub(super) fn size(&self, v: Var) -> Option<Dim> {
        let space = &self.joint.factors.space;
        space.resize(v, &|v| self.of(v))
    }

    pub(super) fn class(&self, class: Class, sharded: &Graph) -> (u64, Vec<Interval>) {
        let data = sharded.class(class);
        let found = self.split[class.index()].and_then(|(v, minor)| {
            let small = self.small.get(&v)?;
            let times = small.minor / minor;
            let at = |b: u64| Some(small.bounds.get(&(b * times))? / times);
            let range = |r: &Interval| Some(Interval::from_bounds(at(r.start)?, at(r.end())?));
            let ranges: Option<Vec<Interval>> = data.ranges.iter().map(range).collect();
            Some((at(data.size)?, ranges?))
        });
        found.unwrap_or_else(|| (data.size, data.ranges.clone()))
    }
}

struct Mismatch {
    inst: Inst,
    why: String,
    /// The factor with a conflict, and the size that the operands require.
    says: Option<(Var, u64)>,
}

impl Sizes for SmallSizes<'_> {
    fn dims(&self, v: Value) -> [Dim; RANK] {
        let Joint { graph, factors, .. } = self.joint;
        std::array::from_fn(|axis| {
            let new = self.size(factors.axes[v.index()][axis]);
            new.unwrap_or_else(|| graph.value(v).ty.dims[axis].clone())
        })
    }

    fn start(&self, v: Value, axis: usize, start: &Dim, _: &Dim) -> Dim {
        let var = self.joint.factors.axes[v.index()][axis];
        let found = start
            .as_const()
            .and_then(|at| position(self.joint, &|v| self.of(v), var, at));
        found.map_or_else(|| start.clone(), Dim::constant)
    }
}
