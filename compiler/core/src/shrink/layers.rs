//! Removes layers that equal other layers.
//!
//! Two layers have the same *kind* if their instructions differ only in names, in both the model and the sharded graph:
//! ops, types, places, shardings, and operands within the layer are equal. The following layers are removed:
//!
//! - The second of two adjacent runs of the same kinds. Later layers then read the values of the first run.
//! - The second of two layers of a kind, and all layers between, if their kinds remain elsewhere and no later layer
//!   reads them. Later layers then read the first layer.
//!
//! Every kind remains, most next to the same neighbours.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tpc_ir::{Class, Graph, Output, Sharding, Unreduced, Value};

use super::kinds::{Kind, kind_of};
use tpc_passes::layers::{insts_by_layer, live_out};

#[derive(Clone, Debug)]
pub(super) struct Layers {
    /// Kept layers in order, each with all layers that it represents, including itself.
    pub(super) kept: Vec<(u32, Vec<u32>)>,
    instead: BTreeMap<u32, u32>,
    /// Removed layers that no kept layer reads.
    passed: BTreeSet<u32>,
}

impl Layers {
    fn stays(&self, layer: u32) -> bool {
        !self.instead.contains_key(&layer) && !self.passed.contains(&layer)
    }
}

/// Chooses the layers to keep: at least two of several, so that one layer reads another's result.
pub(super) fn choose(graphs: [&Graph; 2]) -> Layers {
    let mut in_graphs: BTreeMap<u32, Vec<Kind>> = BTreeMap::new();
    for graph in graphs {
        let live_out = live_out(graph);
        for (layer, insts) in insts_by_layer(graph) {
            let (kind, _) = kind_of(graph, &insts, &live_out);
            in_graphs.entry(layer).or_default().push(kind);
        }
    }
    let mut distinct: Vec<&Vec<Kind>> = Vec::new();
    let mut kinds: BTreeMap<u32, usize> = BTreeMap::new();
    for (&layer, kind) in &in_graphs {
        let known = distinct.iter().position(|&k| k == kind);
        let number = known.unwrap_or_else(|| {
            distinct.push(kind);
            distinct.len() - 1
        });
        kinds.insert(layer, number);
    }
    let mut kept: Vec<(usize, u32)> = kinds.iter().map(|(&layer, &kind)| (kind, layer)).collect();
    let mut instead: BTreeMap<u32, u32> = BTreeMap::new();
    let mut passed: BTreeSet<u32> = BTreeSet::new();
    while let Some((start, period)) = repetition(&kept) {
        let second = start + period..start + 2 * period;
        let gone: Vec<_> = kept.drain(second).collect();
        for ((_, from), (_, to)) in gone.into_iter().zip(&kept[start..]) {
            instead.insert(from, *to);
        }
    }
    let far = last_readers(graphs);
    while let Some((first, second)) = detour(&kept, &far) {
        instead.insert(kept[second].1, kept[first].1);
        passed.extend(kept[first + 1..second].iter().map(|k| k.1));
        kept.drain(first + 1..=second);
    }
    let ends: Vec<u32> = instead.keys().copied().collect();
    for from in ends {
        let mut to = from;
        while let Some(&next) = instead.get(&to) {
            to = next;
        }
        if passed.contains(&to) {
            instead.remove(&from);
            passed.insert(from);
        } else {
            instead.insert(from, to);
        }
    }
    let all = |&(kind, layer): &(usize, u32)| {
        let alike = kinds.iter().filter(|(_, k)| **k == kind);
        let of_kind = kept.iter().filter(|(k, _)| *k == kind).map(|(_, l)| *l);
        // The last kept layer of this kind up to `l`, or else the first kept layer.
        let stand_in = |l: u32| {
            let mut before = of_kind.clone().filter(|&k| k <= l);
            before.next_back().or_else(|| of_kind.clone().next())
        };
        let own = alike
            .map(|(&l, _)| l)
            .filter(|&l| stand_in(l) == Some(layer));
        (layer, own.collect())
    };
    Layers {
        kept: kept.iter().map(all).collect(),
        instead,
        passed,
    }
}

/// Finds the first of the shortest runs that precede a run of the same kinds.
fn repetition(kinds: &[(usize, u32)]) -> Option<(usize, usize)> {
    let n = kinds.len();
    let same = |a: usize, b: usize| kinds[a].0 == kinds[b].0;
    let periods = 1..=(n / 2).min(n.saturating_sub(2));
    periods
        .flat_map(|p| (0..=n - 2 * p).map(move |i| (i, p)))
        .find(|&(i, p)| (i..i + p).all(|j| same(j, j + p)))
}

/// Finds the longest stretch between layers of one kind that can be removed without losing a kind.
fn detour(kinds: &[(usize, u32)], far: &BTreeMap<u32, u32>) -> Option<(usize, usize)> {
    let n = kinds.len();
    let found_elsewhere = |i: usize, j: usize| {
        let mut outside = kinds[..=i].iter().chain(&kinds[j + 1..]).map(|k| k.0);
        let outside: HashSet<usize> = outside.by_ref().collect();
        kinds[i + 1..=j].iter().all(|k| outside.contains(&k.0))
    };
    let unread = |i: usize, j: usize| {
        let within = kinds[i + 1..j].iter().map(|k| k.1);
        within
            .filter_map(|l| far.get(&l))
            .all(|&reader| reader <= kinds[j].1)
    };
    (1..n.saturating_sub(1)).rev().find_map(|length| {
        (0..n - length)
            .map(|i| (i, i + length))
            .find(|&(i, j)| kinds[i].0 == kinds[j].0 && found_elsewhere(i, j) && unread(i, j))
    })
}

/// Maps each layer to the last layer that reads its results; `u32::MAX` for a reader outside layers.
fn last_readers(graphs: [&Graph; 2]) -> BTreeMap<u32, u32> {
    let mut out: BTreeMap<u32, u32> = BTreeMap::new();
    for graph in graphs {
        let layer = |v: Value| graph.inst(graph.value(v).def.0).layer;
        let mut read = |v: Value, by: u32| {
            if let Some(of) = layer(v) {
                let last = out.entry(of).or_default();
                *last = (*last).max(by);
            }
        };
        for (_, data) in graph.insts() {
            for &v in &data.operands {
                read(v, data.layer.unwrap_or(u32::MAX));
            }
        }
        for o in &graph.outputs {
            match o {
                Output::Named(_, v) => read(*v, u32::MAX),
                Output::State { state, value } => {
                    read(*value, layer(*state).unwrap_or(u32::MAX));
                }
            }
        }
    }
    out
}

pub(super) fn keep(graph: &Graph, layers: &Layers) -> Graph {
    let insts = insts_by_layer(graph);
    let live_out = live_out(graph);
    let mut out = graph.without_insts();
    out.devices.clone_from(&graph.devices);
    out.groups.clone_from(&graph.groups);
    out.classes.clone_from(&graph.classes);
    // Replace a removed layer's value by the kept layer's value at the same position.
    let mut stand_in: HashMap<Value, Value> = HashMap::new();
    let mut class_of: HashMap<Class, Class> = HashMap::new();
    for (gone, kept) in &layers.instead {
        let (Some(own), Some(others)) = (insts.get(kept), insts.get(gone)) else {
            continue;
        };
        for (&a, &b) in own.iter().zip(others) {
            let (a, b) = (graph.inst(a), graph.inst(b));
            stand_in.extend(b.results.iter().copied().zip(a.results.iter().copied()));
        }
        let classes = |insts| kind_of(graph, insts, &live_out).1;
        class_of.extend(classes(others).into_iter().zip(classes(own)));
    }
    for (_, data) in graph.insts() {
        if data.layer.is_none_or(|l| layers.stays(l)) {
            for &v in &data.results {
                classes_of(&graph.value(v).sharding, &mut |c| {
                    class_of.remove(&c);
                });
            }
        }
    }
    let mut map: HashMap<Value, Value> = HashMap::new();
    let find = |map: &HashMap<Value, Value>, v: Value| {
        let v = stand_in.get(&v).copied().unwrap_or(v);
        map.get(&v).copied()
    };
    for (_, data) in graph.insts() {
        if data.layer.is_some_and(|l| !layers.stays(l)) {
            continue;
        }
        let operands = data.operands.iter().filter_map(|&v| find(&map, v));
        let types = data.results.iter().map(|&v| graph.value(v).ty.clone());
        let places: Vec<_> = data.results.iter().map(|&v| graph.value(v).place).collect();
        let made = out.push_at(
            data.op.clone(),
            operands.collect(),
            types.collect(),
            &places,
            data.layer,
        );
        let made = out.inst(made).results.clone();
        for (&old, new) in data.results.iter().zip(made) {
            let from = graph.value(old);
            let to = out.value_mut(new);
            to.name.clone_from(&from.name);
            to.sharding = from
                .sharding
                .rename_classes(&mut |c| class_of.get(&c).copied().unwrap_or(c));
            map.insert(old, new);
        }
    }
    out.outputs = graph
        .outputs
        .iter()
        .filter_map(|o| match o {
            Output::Named(name, v) => Some(Output::Named(name.clone(), find(&map, *v)?)),
            Output::State { state, .. } if !map.contains_key(state) => None,
            Output::State { state, value } => Some(Output::State {
                state: find(&map, *state)?,
                value: find(&map, *value)?,
            }),
        })
        .collect();
    out
}

fn classes_of(sharding: &Sharding, see: &mut dyn FnMut(Class)) {
    let mut refs = Vec::new();
    for tree in sharding.axes.iter().flatten() {
        tree.classes(&mut refs);
    }
    refs.iter().for_each(|r| see(r.class));
    if let Unreduced::OwnerMasked(c) = sharding.unreduced {
        see(c);
    }
}
