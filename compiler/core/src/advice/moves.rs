//! Moves of layers to the host by edits of the user's `-ot` overrides.
//!
//! An edit removes a layer from a pattern that pins feed-forward weights to a device, so that a later host pattern
//! matches. Another edit adds a layer to a host pattern.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::Op;

use super::load::Load;
use crate::pipeline::PlanInput;
use crate::placement::{LayerPattern, Override, Placement, Target, layer_of};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Move {
    pub(super) layer: u64,
    loses: BTreeSet<usize>,
    gains: BTreeSet<usize>,
    /// Overrides whose patterns are repeated for this layer with the host as target.
    repeats: BTreeSet<usize>,
    /// Bytes that leave each device because their override pins them there.
    pub(super) pinned: Vec<f64>,
    /// Bytes of experts and of other weights that leave the devices of the layer.
    experts: f64,
    weights: f64,
}

impl Move {
    /// True if the move frees memory on the devices that run the layer.
    pub(super) fn leaves_layer(&self) -> bool {
        self.experts + self.weights > 0.0
    }

    pub(super) fn apply(&self, load: &mut Load) {
        let pinned: f64 = self.pinned.iter().sum();
        let taken = self.pinned.iter().zip(&mut load.pinned);
        taken.for_each(|(bytes, of)| *of -= bytes);
        load.host += pinned + self.experts + self.weights;
        let unit = usize::try_from(self.layer).unwrap_or(usize::MAX);
        if let Some(unit) = load.units.get_mut(unit.saturating_add(1)) {
            unit.experts -= self.experts;
            unit.weights -= self.weights;
        }
    }
}

#[derive(Default)]
pub(super) struct Moves {
    patterns: Vec<Option<LayerPattern>>,
    /// Moves that relieve the same device are in order of application.
    pub(super) all: Vec<Move>,
    pub(super) experts: bool,
}

struct Weight<'p> {
    name: &'p str,
    layer: u64,
    bytes: f64,
    is_expert: bool,
    /// Index of the first override that matches.
    first: Option<usize>,
}

fn first_match(overrides: &[Override], but: &BTreeSet<usize>, name: &str) -> Option<usize> {
    let matches =
        |(i, o): &(usize, &Override)| !but.contains(i) && o.matches(name).unwrap_or(false);
    overrides.iter().enumerate().find(matches).map(|(i, _)| i)
}

impl Moves {
    pub(super) fn new(prepared: &PlanInput, base: &Placement) -> Moves {
        if base.overrides.is_empty() {
            return Moves::default();
        }
        let weights = weights(prepared, base);
        let n_block = prepared.model.summary.n_block();
        let patterns = patterns(&weights, base, n_block);
        let mut out = Moves {
            patterns,
            all: Vec::new(),
            experts: true,
        };
        let mut of_layer: BTreeMap<u64, Vec<&Weight<'_>>> = BTreeMap::new();
        for w in &weights {
            of_layer.entry(w.layer).or_default().push(w);
        }
        let layers: Vec<u64> = (0..n_block).collect();
        for device in 0..base.devices.len() {
            let pins = |l: &u64| out.pins(base, device, *l);
            let pinned: Vec<u64> = layers
                .iter()
                .copied()
                .filter(|l| !pins(l).is_empty())
                .collect();
            // Layers next to layers on the host move first.
            let is_last = pinned.last() == layers.last();
            let order: Vec<u64> = match is_last {
                true => pinned,
                false => pinned.into_iter().rev().collect(),
            };
            let found = order.into_iter().filter_map(|l| {
                out.unpin(base, device, l, of_layer.get(&l).map_or(&[], Vec::as_slice))
            });
            let found: Vec<Move> = found.collect();
            out.all.extend(found);
        }
        let mut grown: Vec<Move> = layers
            .iter()
            .filter_map(|&l| out.grow(base, l, of_layer.get(&l)?))
            .collect();
        let on_host: BTreeSet<u64> = out.on_host(base);
        let distance = |m: &Move| on_host.iter().map(|l| l.abs_diff(m.layer)).min();
        grown.sort_by_key(distance);
        out.all.extend(grown);
        out.experts = out.all.iter().all(|m| m.weights <= 0.0);
        out
    }

    /// Lists the overrides that pin weights of a layer to a device and can omit the layer.
    fn pins(&self, base: &Placement, device: usize, layer: u64) -> BTreeSet<usize> {
        let pins = |(i, o): &(usize, &Override)| {
            let pattern = self.patterns.get(*i).and_then(Option::as_ref);
            o.target == Target::Device(device)
                && pattern.is_some_and(|p| p.layers().contains(&layer))
        };
        let all = base.overrides.iter().enumerate();
        all.filter(pins).map(|(i, _)| i).collect()
    }

    fn on_host(&self, base: &Placement) -> BTreeSet<u64> {
        let all = base.overrides.iter().zip(&self.patterns);
        let host = all.filter(|(o, _)| o.target == Target::Host);
        host.filter_map(|(_, p)| p.as_ref())
            .flat_map(|p| p.layers().iter().copied())
            .collect()
    }

    /// Finds the host override that would match a weight if its pattern named the weight's layer.
    fn host_pattern(&self, base: &Placement, weight: &Weight<'_>) -> Option<usize> {
        let rest = weight.name.split_once('.')?.1.split_once('.')?.1;
        let would_match = |(o, p): (&Override, &Option<LayerPattern>)| {
            let named = p.as_ref()?.layers().first()?;
            let is_host = o.target == Target::Host;
            let name = format!("blk.{named}.{rest}");
            (is_host && o.matches(&name).ok()?).then_some(())
        };
        let all = base.overrides.iter().zip(&self.patterns);
        all.map(would_match).position(|found| found.is_some())
    }

    fn unpin(
        &self,
        base: &Placement,
        device: usize,
        layer: u64,
        weights: &[&Weight<'_>],
    ) -> Option<Move> {
        let loses = self.pins(base, device, layer);
        let mut out = Move {
            layer,
            pinned: vec![0.0; base.devices.len()],
            ..Move::default()
        };
        for w in weights {
            let Some(own) = w.first.filter(|i| loses.contains(i)) else {
                continue;
            };
            match first_match(&base.overrides, &loses, w.name).map(|i| base.overrides[i].target) {
                Some(Target::Host) => {}
                // Another device pattern matches, so the tensor would not move to the host.
                Some(Target::Device(_) | Target::Mirrored) => return None,
                None if w.is_expert && base.host_experts.contains(layer) => {}
                None => match self.host_pattern(base, w) {
                    Some(h) => {
                        out.gains.insert(h);
                    }
                    None => {
                        out.repeats.insert(own);
                    }
                },
            }
            *out.pinned.get_mut(device)? += w.bytes;
        }
        out.loses = loses;
        (out.pinned.iter().sum::<f64>() > 0.0).then_some(out)
    }

    /// Computes the move of a layer without an override, by adding the layer to host patterns.
    fn grow(&self, base: &Placement, layer: u64, weights: &[&Weight<'_>]) -> Option<Move> {
        let mut out = Move {
            layer,
            pinned: vec![0.0; base.devices.len()],
            ..Move::default()
        };
        for w in weights {
            let is_there = w.is_expert && base.host_experts.contains(layer);
            if w.first.is_some() || is_there {
                continue;
            }
            let Some(h) = self.host_pattern(base, w) else {
                continue;
            };
            out.gains.insert(h);
            match w.is_expert {
                true => out.experts += w.bytes,
                false => out.weights += w.bytes,
            }
        }
        out.leaves_layer().then_some(out)
    }

    /// Returns the overrides after these moves; `None` if a pattern cannot be written.
    pub(super) fn edit(&self, base: &Placement, moves: &[&Move]) -> Option<Vec<Override>> {
        let mut out = Vec::new();
        for (i, o) in base.overrides.iter().enumerate() {
            let of = |set: fn(&Move) -> &BTreeSet<usize>| -> BTreeSet<u64> {
                let moved = moves.iter().filter(|m| set(m).contains(&i));
                moved.map(|m| m.layer).collect()
            };
            let (lost, gained) = (of(|m| &m.loses), of(|m| &m.gains));
            let repeated = of(|m| &m.repeats);
            if lost.is_empty() && gained.is_empty() {
                out.push(o.clone());
                continue;
            }
            let pattern = self.patterns.get(i)?.as_ref()?;
            let mut layers: BTreeSet<u64> = pattern.layers() | &gained;
            layers.retain(|l| !lost.contains(l));
            if let Some(text) = pattern.with(&layers) {
                out.push(o.edited(&text, o.target)?);
            }
            if let Some(text) = pattern.with(&repeated) {
                out.push(o.edited(&text, Target::Host)?);
            }
        }
        Some(out)
    }
}

fn weights<'p>(prepared: &'p PlanInput, base: &Placement) -> Vec<Weight<'p>> {
    let graph = &prepared.model.graph;
    let experts = prepared.experts();
    let batch = prepared.memory_batch(base);
    let weight = |data: &'p tpc_ir::InstData| {
        let Op::Weight(w) = &data.op else { return None };
        let name = w.tensor.as_str();
        let bytes = graph.value(*data.results.first()?).ty.bytes(&batch)?;
        Some(Weight {
            name,
            layer: layer_of(name)?,
            bytes: bytes as f64,
            is_expert: experts.contains(name),
            first: first_match(&base.overrides, &BTreeSet::new(), name),
        })
    };
    graph.insts().filter_map(|(_, d)| weight(d)).collect()
}

/// Parses the patterns that name layers and match only feed-forward weights; `None` for others.
fn patterns(weights: &[Weight<'_>], base: &Placement, n_block: u64) -> Vec<Option<LayerPattern>> {
    let pattern = |(i, o): (usize, &Override)| {
        let mut own = weights.iter().filter(|w| w.first == Some(i));
        let is_plain = own.all(|w| w.name.contains(".ffn_"));
        let names = weights.iter().map(|w| w.name);
        LayerPattern::parse(o, n_block, names).filter(|_| is_plain)
    };
    base.overrides.iter().enumerate().map(pattern).collect()
}
