use std::collections::{BTreeMap, HashMap};
use std::fmt;

use tpc_core::golden::distance;
use tpc_core::shrink::ShrunkModel;
use tpc_ir::{
    Budget, BudgetExceeded, Graph, Interval, Op, Place, RANK, Resource, Sharding, Unreduced, Value,
};
use tpc_runtime::{MemoryWeights, Tensor};

use super::feed::Feed;
use super::need;

const SEARCH: &str = "the search for the first value that differs";

/// The maximum error (NMSE) of outputs that agree. Sums in another order differ by 1e-15 per number, or more if a
/// cached number is rounded differently.
pub const TOLERANCE: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) value: String,
    op: String,
    place: String,
    /// The layer; `None` outside of layers.
    layer: Option<u32>,
    nmse: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            value,
            op,
            place,
            nmse,
            ..
        } = self;
        write!(f, "the first value that differs is `{value}`")?;
        if let Some(l) = self.layer {
            write!(f, " of layer {l}")?;
        }
        write!(f, ", by `{op}` on {place} (NMSE {nmse:.1e})")
    }
}

/// The values of the model, by value and number of earlier computations of the value.
type ModelTensors = HashMap<(Value, usize), Tensor>;

/// Finds the first value that differs; `None` if all values agree.
///
/// Values are matched by name. A value is correct if it equals its place's part of any model value with the same
/// name. The sharded graph assigns parts to places. Terms of unreduced sums are skipped.
pub(super) fn first_difference(
    shrunk: &ShrunkModel,
    feed: &Feed,
    weights: &MemoryWeights,
    budget: &Budget,
) -> Result<Option<Difference>, BudgetExceeded> {
    let ShrunkModel {
        model,
        sharded,
        programs,
        ..
    } = shrunk;
    need::spend_in_turn(&[model, programs], feed, budget)?;
    let mut search = Search {
        shrunk,
        of_model: by_name(model),
        held: by_name(sharded),
        seen: ModelTensors::new(),
        found: None,
        budget,
        over: Ok(()),
    };
    let mut times: HashMap<Value, usize> = HashMap::new();
    let mut keep = |v: Value, t: &Tensor| search.keep(v, turn(&mut times, v), t);
    let ran = feed.run(model, weights, &mut keep);
    search.over.clone()?;
    if ran.is_err() {
        return Ok(None);
    }
    let mut times: HashMap<Value, usize> = HashMap::new();
    let mut judge = |v: Value, t: &Tensor| search.judge(v, turn(&mut times, v), t);
    // Ignore an error: all values before the error have been compared.
    let _ = feed.run(programs, weights, &mut judge);
    search.over.map(|()| search.found)
}

/// Counts a computation of a value. Returns the number of earlier computations.
fn turn(times: &mut HashMap<Value, usize>, v: Value) -> usize {
    let n = times.entry(v).or_default();
    *n += 1;
    *n - 1
}

struct Search<'a> {
    shrunk: &'a ShrunkModel,
    of_model: BTreeMap<&'a str, Vec<Value>>,
    held: BTreeMap<&'a str, Vec<Value>>,
    seen: ModelTensors,
    found: Option<Difference>,
    budget: &'a Budget,
    over: Result<(), BudgetExceeded>,
}

impl Search<'_> {
    /// Copies a value of the model, if the sharded graph has it too.
    fn keep(&mut self, v: Value, turn: usize, t: &Tensor) {
        let name = self.shrunk.model.value(v).name.as_str();
        if self.over.is_ok() && self.held.contains_key(name) {
            let bytes = need::bytes(t);
            self.over = self.budget.spend(Resource::Bytes, bytes, SEARCH, || None);
            if self.over.is_ok() {
                self.seen.insert((v, turn), t.clone());
            }
        }
    }

    /// Compares a value of the programs with the model's value, unless an earlier value differs.
    fn judge(&mut self, v: Value, turn: usize, t: &Tensor) {
        let ShrunkModel {
            sharded, programs, ..
        } = self.shrunk;
        let data = programs.value(v);
        let name = data.name.as_str();
        if self.found.is_some() || self.over.is_err() {
            return;
        }
        let (Some(known), Some(forms)) = (self.of_model.get(name), self.held.get(name)) else {
            return;
        };
        let Ok(own) = t.reals() else { return };
        let inst = programs.inst(data.def.0);
        let mut best: Option<f64> = None;
        for &form in forms {
            let (place, sharding) = (sharded.value(form).place, &sharded.value(form).sharding);
            let Some(rank) = rank(sharded, place, data.place) else {
                continue;
            };
            if sharding.unreduced != Unreduced::None {
                if inst.op.is_transfer() {
                    continue;
                }
                // The value may be a term of an unreduced sum.
                return;
            }
            for whole in known.iter().filter_map(|&of| self.seen.get(&(of, turn))) {
                let steps = need::comparison(&own);
                self.over = self.budget.spend(Resource::Steps, steps, SEARCH, || None);
                if self.over.is_err() {
                    return;
                }
                if let Some(part) = part(whole, sharding, sharded, rank)
                    && part.len() == own.len()
                {
                    let d = nmse(&part, &own);
                    best = Some(best.map_or(d, |b| b.min(d)));
                }
            }
        }
        if let Some(nmse) = best.filter(|&d| d > TOLERANCE) {
            self.found = Some(Difference {
                value: data.name.clone(),
                op: match &inst.op {
                    Op::Opaque(op) => op.name.clone(),
                    op => op.name().to_owned(),
                },
                place: device(programs, data.place),
                layer: inst.layer,
                nmse,
            });
        }
    }
}

fn by_name(graph: &Graph) -> BTreeMap<&str, Vec<Value>> {
    let mut out: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (v, data) in graph.values().filter(|(_, d)| !d.name.is_empty()) {
        out.entry(&data.name).or_default().push(v);
    }
    out
}

/// Returns the NMSE. Equal infinite numbers, as in masks, are ignored.
fn nmse(want: &[f64], got: &[f64]) -> f64 {
    let differ = |&(a, b): &(f64, f64)| a.is_finite() || a != b;
    let pairs = want.iter().copied().zip(got.iter().copied());
    let pairs: Vec<(f64, f64)> = pairs.filter(differ).collect();
    distance(pairs.iter().map(|p| p.0), pairs.iter().map(|p| p.1)).nmse
}

fn device(graph: &Graph, place: Place) -> String {
    match place {
        Place::Device(d) => graph.device(d).name.clone(),
        Place::Host | Place::Group(_) => "host".to_owned(),
    }
}

/// Returns the rank of `place` in `of`, which may be a group; `None` if `place` is not in `of`.
fn rank(graph: &Graph, of: Place, place: Place) -> Option<usize> {
    match (of, place) {
        (Place::Group(g), Place::Device(d)) => graph.group(g).devices.iter().position(|&x| x == d),
        _ => (of == place).then_some(0),
    }
}

/// Returns the part of a whole tensor that the rank should hold; `None` if ranges or sizes are inconsistent.
fn part(whole: &Tensor, sharding: &Sharding, graph: &Graph, rank: usize) -> Option<Vec<f64>> {
    let dims = whole.dims();
    let values = whole.reals().ok()?;
    let mut runs: [Vec<Interval>; RANK] = Default::default();
    for (axis, runs) in runs.iter_mut().enumerate() {
        *runs = match &sharding.axes[axis] {
            Some(tree) => tree.intervals(&graph.classes, rank)?,
            None => vec![Interval {
                start: 0,
                len: dims[axis] as u64,
            }],
        };
    }
    let indices = |axis: usize| {
        let runs = runs[axis].iter();
        runs.flat_map(|r| r.start as usize..r.end() as usize)
    };
    let mut out = Vec::new();
    for i3 in indices(3) {
        for i2 in indices(2) {
            for i1 in indices(1) {
                let row = ((i3 * dims[2] + i2) * dims[1] + i1) * dims[0];
                for i0 in indices(0) {
                    out.push(*values.get(row + i0)?);
                }
            }
        }
    }
    Some(out)
}
