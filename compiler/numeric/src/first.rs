//! The first value of the devices' programs that is not what the model has.

use std::collections::{BTreeMap, HashMap};

use tpc_ir::{Graph, Interval, Place, RANK, Sharding, Unreduced, Value};
use tpc_runtime::{MemoryWeights, Tensor};

use super::run::Feed;
use tpc_core::golden::distance;

/// A value that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its name in the model.
    pub value: String,
    /// The op that makes it.
    pub op: &'static str,
    /// The place that it is on.
    pub place: String,
    /// The layer; `None` outside of layers.
    pub layer: Option<u32>,
    /// How far it is from the model's.
    pub nmse: f64,
}

/// What the model's values were, by value and how often it had been made before.
type Seen = HashMap<(Value, usize), Tensor>;

/// Compares what every place holds of the model's values, as far as names tell which these are. A value is right if it is
/// the part of any of the model's values of its name that the sharded graph has there; terms of sums that are still to
/// be done are passed over.
pub(super) fn difference(
    model: &Graph,
    sharded: &Graph,
    programs: &Graph,
    feed: &Feed,
    weights: &MemoryWeights,
    tolerance: f64,
) -> Option<Difference> {
    let (of_model, held) = (by_name(model), by_name(sharded));
    let mut seen = Seen::new();
    let mut times: HashMap<Value, usize> = HashMap::new();
    let mut store = |v: Value, t: &Tensor| {
        let n = times.entry(v).or_default();
        seen.insert((v, *n), t.clone());
        *n += 1;
    };
    feed.run(model, weights, &mut store).ok()?;
    let mut found: Option<Difference> = None;
    let mut times: HashMap<Value, usize> = HashMap::new();
    let mut judge = |v: Value, t: &Tensor| {
        let n = times.entry(v).or_default();
        let turn = *n;
        *n += 1;
        let data = programs.value(v);
        let name = data.name.as_str();
        let (None, Some(known), Some(forms)) = (&found, of_model.get(name), held.get(name)) else {
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
                // It may be a term of a sum.
                return;
            }
            for whole in known.iter().filter_map(|&of| seen.get(&(of, turn))) {
                if let Some(part) = part(whole, sharding, sharded, rank)
                    && part.len() == own.len()
                {
                    let d = apart(&part, &own);
                    best = Some(best.map_or(d, |b| b.min(d)));
                }
            }
        }
        if let Some(nmse) = best.filter(|&d| d > tolerance) {
            found = Some(Difference {
                value: data.name.clone(),
                op: inst.op.name(),
                place: device(programs, data.place),
                layer: inst.layer,
                nmse,
            });
        }
    };
    // Where the programs stop, what they made before counts.
    let _ = feed.run(programs, weights, &mut judge);
    found
}

/// The values of each name.
fn by_name(graph: &Graph) -> BTreeMap<&str, Vec<Value>> {
    let mut out: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (v, data) in graph.values().filter(|(_, d)| !d.name.is_empty()) {
        out.entry(&data.name).or_default().push(v);
    }
    out
}

/// The error (NMSE) of numbers that may be infinite, as masks have them.
fn apart(want: &[f64], got: &[f64]) -> f64 {
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

/// The rank of a single place in a place that may be a group.
fn rank(graph: &Graph, of: Place, place: Place) -> Option<usize> {
    match (of, place) {
        (Place::Group(g), Place::Device(d)) => graph.group(g).devices.iter().position(|&x| x == d),
        _ => (of == place).then_some(0),
    }
}

/// What the device of this rank should hold of a whole tensor.
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
