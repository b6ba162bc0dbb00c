//! The batch sizes in several captures of one program.
//!
//! A record may have the tensor's sizes in other graphs of the program, which gives each factor one size per graph. A
//! factor that differs between graphs counts part of the batch. A factor that stays constant while the number of
//! tokens changes does not.

use std::collections::BTreeMap;

use tpc_ir::factor::Var;
use tpc_ir::{Bindings, Graph, RANK, Symbol, Value};
use tpc_passes::factors::Factors;

use super::record::Record;
use super::trace::{RecordResult, Trace};

#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    pub(super) others: usize,
    /// The values, with their sizes in the other graphs.
    values: Vec<(Value, Vec<[u64; RANK]>)>,
}

/// The sizes of a factor: in the capture, and in each other graph.
pub(super) type Sizes = Vec<u64>;

impl Samples {
    /// Returns the sizes in the records for the values that come from them.
    pub(super) fn new(records: &[Record], graph: &Graph, traces: &[Trace]) -> Samples {
        let mut values = Vec::new();
        for trace in traces {
            let (t, RecordResult::Value(v)) = (&records[trace.record], &trace.made) else {
                continue;
            };
            let dims = &graph.value(*v).ty.dims;
            let same = dims
                .iter()
                .zip(t.ne())
                .all(|(d, n)| d.as_const() == Some(n));
            if same && !t.also.is_empty() {
                values.push((*v, t.also.clone()));
            }
        }
        Samples {
            others: records.first().map_or(0, |t| t.also.len()),
            values,
        }
    }

    fn sizes_along(
        &self,
        graph: &Graph,
        (v, also): &(Value, Vec<[u64; RANK]>),
        axis: usize,
    ) -> Sizes {
        let own = graph.value(*v).ty.dims[axis].as_const().unwrap_or(0);
        let others = also.iter().map(|ne| ne[axis]);
        [own].into_iter().chain(others).collect()
    }

    /// Returns the sizes of the factors: of an axis, divided by the axis's other factors.
    pub(super) fn factors(&self, graph: &Graph, factors: &Factors) -> BTreeMap<Var, Sizes> {
        let mut known: BTreeMap<Var, Sizes> = BTreeMap::new();
        // A later round may know the other factors of an axis.
        for _ in 0..4 {
            let before = known.len();
            for value in &self.values {
                for axis in 0..RANK {
                    let all = self.sizes_along(graph, value, axis);
                    let var = factors.space.find(factors.axes[value.0.index()][axis]);
                    learn(factors, &mut known, var, all);
                }
            }
            if known.len() == before {
                break;
            }
        }
        // If the factors of an axis appear in no other axis, only their product is known.
        for value in &self.values {
            for axis in 0..RANK {
                let var = factors.space.find(factors.axes[value.0.index()][axis]);
                let mut leaves = Vec::new();
                factors.space.leaves(var, &mut leaves);
                if !leaves.iter().all(|v| known.contains_key(v)) {
                    let all = self.sizes_along(graph, value, axis);
                    known.entry(var).or_insert(all);
                }
            }
        }
        known
    }

    /// Checks that a graph with symbols has the sizes of each graph. `symbols` has the sizes of every symbol.
    pub(super) fn check(
        &self,
        symbolic: &Graph,
        symbols: &BTreeMap<Symbol, Sizes>,
    ) -> Result<(), String> {
        for graph in 0..self.others {
            let mut bindings = Bindings::default();
            for (&symbol, sizes) in symbols {
                bindings = bindings.with(symbol, sizes[graph + 1]);
            }
            for (v, also) in &self.values {
                let value = symbolic.value(*v);
                for (axis, dim) in value.ty.dims.iter().enumerate() {
                    let (found, expected) = (dim.eval(&bindings), also[graph][axis]);
                    if found != Some(expected) {
                        return Err(format!(
                            "axis {axis} of {} would be {dim}, but another capture has {expected}",
                            value.name
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Derives the sizes of a factor from an axis whose other factors are known.
fn learn(factors: &Factors, known: &mut BTreeMap<Var, Sizes>, var: Var, mut all: Sizes) {
    let mut leaves = Vec::new();
    factors.space.leaves(var, &mut leaves);
    let size = |v: Var| factors.space.size(v).as_const().unwrap_or(0);
    let product: u64 = leaves.iter().map(|&v| size(v)).product();
    if product != size(var) {
        // The axis is a sum of segments.
        return;
    }
    let mut open = leaves.into_iter().filter(|v| {
        let Some(sizes) = known.get(v) else {
            return true;
        };
        for (n, s) in all.iter_mut().zip(sizes) {
            *n = n.checked_div(*s).unwrap_or(0);
        }
        false
    });
    if let (Some(one), None) = (open.next(), open.next()) {
        drop(open);
        known.entry(one).or_insert(all);
    }
}
