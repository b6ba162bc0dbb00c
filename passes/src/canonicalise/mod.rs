//! Removes dead, duplicate and redundant work from programs.
//!
//! Lowering may slice a value just after concatenating it, or compute a value twice for two parts on a device. This
//! pass runs before the proof, which thus covers the final programs.
//!
//! - A slice of a slice, or a concatenation of adjacent slices, becomes one slice.
//! - A slice of a concatenation or of a padded value reads the operand that contains it.
//! - Equal instructions of a layer at one place become one.
//! - Instructions that no output needs are dropped, except leaves.
//!
//! Other views and pads by 0 elements stay: they are cheap, and the proof follows the model op by op.

mod dead;
mod simplify;

use std::collections::HashMap;
use std::mem::discriminant;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tpc_ir::{Graph, InstData, Op, Output, Place, Value};

use simplify::Simplification;

/// Removes dead, duplicate and redundant work; keeps the outputs.
///
/// The programs may be unverified but must define values before their use.
pub fn canonicalise(mut programs: Graph) -> Graph {
    dead::drop_dead(&mut programs);
    if is_canonical(&programs) {
        return programs;
    }
    let mut out = simplify_all(&programs);
    // Simplification may have removed the last reader of a value.
    dead::drop_dead(&mut out);
    out
}

/// The maximum number of instructions compared pairwise; a hash table compares more.
const MOST_ALIKE: usize = 64;

/// True if the programs are already canonical, which is common. The check is cheaper than a rebuild.
fn is_canonical(programs: &Graph) -> bool {
    // Instructions grouped by cheap properties; only instructions in one group can be equal.
    let mut alike: FxHashMap<_, SmallVec<[&InstData; 1]>> = FxHashMap::default();
    let merged = || programs.insts().filter(|(_, data)| is_merged(&data.op));
    alike.reserve(merged().count());
    let place = |d: &InstData, n: usize| d.results.get(n).map(|&v| programs.value(v).place);
    merged().all(|(_, data)| {
        let kind = (discriminant(&data.op), data.operands.first(), data.layer);
        let others = alike.entry((kind, place(data, 0))).or_default();
        let double = others.iter().any(|other| {
            let results = other.results.len().max(data.results.len());
            other.operands == data.operands
                && other.op == data.op
                && (0..results).all(|n| place(other, n) == place(data, n))
        });
        let few = others.len() < MOST_ALIKE;
        others.push(data);
        few && !double && !simplify::has_simpler_form(programs, &data.op, &data.operands)
    })
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    operands: Vec<Value>,
    places: Vec<Place>,
    layer: Option<u32>,
}

fn simplify_all(from: &Graph) -> Graph {
    let mut out = empty_like(from);
    out.reserve(from.values().len(), from.insts().len());
    let mut map: Vec<Value> = Vec::with_capacity(from.values().len());
    let mut seen: HashMap<Key, Vec<Value>> = HashMap::new();
    for (_, data) in from.insts() {
        let operands: Vec<Value> = data.operands.iter().map(|v| map[v.index()]).collect();
        let (op, operands) = match simplify::simplify(&out, &data.op, operands) {
            Simplification::Value(v) => {
                map.push(v);
                continue;
            }
            Simplification::Op(op, operands) => (op, operands),
        };
        let places: Vec<Place> = data.results.iter().map(|&v| from.value(v).place).collect();
        let key = Key {
            op,
            operands,
            places,
            layer: data.layer,
        };
        if let Some(results) = seen.get(&key).filter(|_| is_merged(&key.op)) {
            map.extend(results);
            continue;
        }
        let results = append(&mut out, from, &data.results, &key);
        map.extend(&results);
        seen.insert(key, results);
    }
    out.outputs = map_outputs(&from.outputs, |v| map[v.index()]);
    out
}

/// True if equal instructions with this op are merged.
const fn is_merged(op: &Op) -> bool {
    !matches!(
        op,
        Op::Input(_) | Op::State(_) | Op::Weight(_) | Op::Opaque(_)
    )
}

fn empty_like(from: &Graph) -> Graph {
    let mut out = from.without_insts();
    out.devices.clone_from(&from.devices);
    out.groups.clone_from(&from.groups);
    out.classes.clone_from(&from.classes);
    out
}

fn append(out: &mut Graph, from: &Graph, results: &[Value], key: &Key) -> Vec<Value> {
    let types = results.iter().map(|&v| from.value(v).ty.clone()).collect();
    let (op, operands) = (key.op.clone(), key.operands.clone());
    let inst = out.push_at(op, operands, types, &key.places, key.layer);
    let made = out.inst(inst).results.clone();
    for (&new, &old) in made.iter().zip(results) {
        out.value_mut(new).name.clone_from(&from.value(old).name);
        let sharding = from.value(old).sharding.clone();
        out.value_mut(new).sharding = sharding;
    }
    made
}

fn map_outputs(outputs: &[Output], map: impl Fn(Value) -> Value) -> Vec<Output> {
    let one = |output: &Output| match output {
        Output::Named(name, v) => Output::Named(name.clone(), map(*v)),
        Output::State { state, value } => Output::State {
            state: map(*state),
            value: map(*value),
        },
    };
    outputs.iter().map(one).collect()
}
