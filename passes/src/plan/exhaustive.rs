//! Compares the planner with all possible plans of small models.

use std::collections::BTreeMap;
use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::{Group, Interval, Verified, stage, text};

use super::options::{SplitOption, clash, options_for};
use super::problem::is_global;
use super::search::assignments;
use super::*;
use crate::machine::{Link, Topology, Workload};

struct Model {
    layers: usize,
    heads: u64,
    kv: u64,
    width: u64,
    dtype: &'static str,
}

impl Model {
    fn graph(&self) -> Verified<stage::Model> {
        let (h, kv, w, ty) = (self.heads, self.kv, self.width, self.dtype);
        let (e, q, k) = (64, 32 * h, 32 * kv);
        let mut t = format!(
            "tpir 1\ngraph \"m\"\n\
             v0: f32[{e}, n_tokens] @host = input {{name = \"x\"}}\n\
             v1: i64[n_tokens] @host = input {{kind = cache_rows}}\n\
             v2: f32[n_kv, n_tokens] @host = input {{kind = mask}}\n"
        );
        let mut x = 0;
        let mut n = 3;
        let mut states = String::new();
        for l in 0..self.layers {
            let _ = writeln!(t, "layer {l}");
            let mut def = |value: String, op: String| {
                let _ = writeln!(t, "v{n}: {value} @host = {op}");
                n += 1;
                n - 1
            };
            let weight = |name: &str| format!("weight {{tensor = \"{name}.{l}\"}}");
            let project = |def: &mut dyn FnMut(String, String) -> usize, name, rows, from, x| {
                let w = def(format!("{ty}[{from}, {rows}]"), weight(name));
                def(
                    format!("f32[{rows}, n_tokens]"),
                    format!("mul_mat v{w}, v{x}"),
                )
            };
            let xq = project(&mut def, "q", q, e, x);
            let shaped = |v: usize, n: u64| format!("reshape v{v} {{dims = [32, {n}, n_tokens]}}");
            let xq = def(format!("f32[32, {h}, n_tokens]"), shaped(xq, h));
            let turned = |v: usize| format!("permute v{v} {{axes = [0, 2, 1, 3]}}");
            let xq = def(format!("f32[32, n_tokens, {h}]"), turned(xq));
            let mut cached = Vec::new();
            for name in ["k", "v"] {
                let y = project(&mut def, name, k, e, x);
                let y = def(format!("f32[32, {kv}, n_tokens]"), shaped(y, kv));
                let cache = format!("f16[32, {kv}, n_ctx]");
                let s = def(cache.clone(), format!("state {{name = \"{name}.{l}\"}}"));
                let c = def(cache, format!("set_rows v{s}, v{y}, v1 {{axis = 2}}"));
                let _ = writeln!(states, "output state v{s} = v{c}");
                let op = format!("slice v{c} {{axis = 2, start = 0, len = n_kv}}");
                let y = def(format!("f16[32, {kv}, n_kv]"), op);
                cached.push(def(format!("f16[32, n_kv, {kv}]"), turned(y)));
            }
            let op = format!(
                "flash_attn v{xq}, v{}, v{}, v2 {{scale = 0.2}}",
                cached[0], cached[1]
            );
            let o = def(format!("f32[32, {h}, n_tokens]"), op);
            let op = format!("reshape v{o} {{dims = [{q}, n_tokens]}}");
            let o = def(format!("f32[{q}, n_tokens]"), op);
            let y = project(&mut def, "o", e, q, o);
            let row = format!("f32[{e}, n_tokens]");
            let y = def(row.clone(), format!("add v{y}, v{x}"));
            let up = project(&mut def, "up", w, e, y);
            let up = def(format!("f32[{w}, n_tokens]"), format!("silu v{up}"));
            let down = project(&mut def, "down", e, w, up);
            x = def(row, format!("add v{down}, v{y}"));
        }
        let _ = writeln!(t, "layer none\noutput \"y\" = v{x}\n{states}");
        let parsed = text::parse(&t).unwrap_or_else(|e| panic!("{}\n{t}", e[0]));
        Verified::new(parsed.graph).unwrap_or_else(|e| panic!("{e}\n{t}"))
    }
}

struct Space<'a> {
    planned: &'a PlannedGraph,
    pricer: Pricer<'a>,
    options: Vec<SplitOption>,
    spans: BTreeMap<Var, usize>,
}

impl<'a> Space<'a> {
    fn new(
        planned: &'a PlannedGraph,
        request: &'a PlanRequest,
        device_weights: &'a [f64],
    ) -> Space<'a> {
        let mut spans: BTreeMap<Var, usize> = BTreeMap::new();
        for l in planned.layer_groups.iter().flat_map(|r| &r.leaves) {
            *spans.entry(*l).or_insert(0) += 1;
        }
        let group = (Group::new(0), device_weights);
        let of = |&l: &Var| options_for(planned.graph_facts(), l, group);
        let devices = &request.layer_placement.stages[0];
        Space {
            planned,
            options: spans.keys().flat_map(of).collect(),
            spans,
            pricer: Pricer::new(planned.graph_facts(), request, devices, device_weights),
        }
    }

    fn price(&self, set: &[&SplitOption]) -> Option<Price> {
        let mut out = Price::default();
        for r in &self.planned.layer_groups {
            let price = self.pricer.price(r, set)?;
            out.objective += price.objective;
            out.uncapped += price.uncapped;
        }
        Some(out)
    }

    fn global(&self, o: &SplitOption) -> bool {
        o.leaves
            .iter()
            .any(|l| is_global(self.spans[l], self.planned.layer_groups.len()))
    }

    fn sets(&self) -> Vec<Vec<usize>> {
        let all: Vec<usize> = (0..self.options.len()).collect();
        let conflict =
            |a: usize, b: usize| clash(&self.planned.analysis, &self.options[a], &self.options[b]);
        let (sets, complete) = assignments(&all, 100_000, &conflict);
        assert!(complete, "the model is small");
        sets
    }

    /// Returns the price of the cheapest assignment, and the number of assignments. Capped collectives choose the best
    /// assignment for each choice of global factors; uncapped collectives choose among these.
    fn cheapest(&self) -> (f64, usize) {
        let mut best: BTreeMap<Vec<usize>, Price> = BTreeMap::new();
        let sets = self.sets();
        for set in &sets {
            let chosen: Vec<&SplitOption> = set.iter().map(|&i| &self.options[i]).collect();
            let Some(price) = self.price(&chosen) else {
                continue;
            };
            let global = |i: &usize| self.global(&self.options[*i]);
            let key = set.iter().copied().filter(global).collect();
            let known = best.entry(key).or_insert(price);
            if price.objective < known.objective {
                *known = price;
            }
        }
        let least = best.values().map(|p| p.uncapped);
        (least.fold(f64::INFINITY, f64::min), sets.len())
    }
}

fn request(devices: usize, slow: bool) -> PlanRequest {
    let names = (0..devices).map(|d| format!("d{d}")).collect();
    let workload = Workload::new(64, 64, 16, 1);
    let mut out = PlanRequest::new(Topology::default(), workload, names);
    if !slow {
        out.topology.link = Link::new(1e18, 0.0);
    }
    out
}

#[test]
fn no_set_of_options_is_cheaper_than_the_plan() {
    let mut tried = 0;
    for (layers, heads, kv, width, dtype) in [
        (1, 4, 4, 128, "f32"),
        (1, 4, 2, 96, "f32"),
        (1, 6, 2, 160, "q8_0"),
        (1, 4, 1, 64, "q4_0"),
        (1, 8, 2, 256, "q8_0"),
        (2, 4, 2, 64, "f32"),
    ] {
        let model = Model {
            layers,
            heads,
            kv,
            width,
            dtype,
        };
        let graph = model.graph();
        for (devices, slow) in [(2, false), (3, false), (4, false), (2, true), (3, true)] {
            let request = request(devices, slow);
            let planned = plan(&graph, &request).expect("placed graphs verify");
            let device_weights = request.stage_device_weights(0);
            let space = Space::new(&planned, &request, &device_weights);
            let chosen: Vec<&SplitOption> = planned.choice.options.iter().collect();
            let price = space.price(&chosen).expect("a plan is possible");
            let (least, sets) = space.cheapest();
            tried += sets;
            let bound = 1.0 + planned.choice.excess();
            assert!(
                price.uncapped <= least * bound * (1.0 + 1e-9),
                "{heads}/{kv} {width} {dtype} on {devices}: {} instead of {least}, bound {bound}",
                price.uncapped
            );
        }
    }
    assert!(tried > 500, "only {tried} sets were tried");
}

#[test]
fn no_other_ranges_are_cheaper_where_devices_share_evenly() {
    for (heads, kv, width) in [(4, 2, 64), (4, 4, 128)] {
        let model = Model {
            layers: 1,
            heads,
            kv,
            width,
            dtype: "q8_0",
        };
        let graph = model.graph();
        let request = request(2, false);
        let planned = plan(&graph, &request).expect("placed graphs verify");
        let device_weights = request.stage_device_weights(0);
        let space = Space::new(&planned, &request, &device_weights);
        let chosen: Vec<&SplitOption> = planned.choice.options.iter().collect();
        let price = space.price(&chosen).expect("a plan is possible");
        // Try cuts at eighths of each option's size, for every set of up to three options.
        for set in space.sets().iter().filter(|s| s.len() <= 3) {
            let mut cut: Vec<Vec<SplitOption>> = vec![Vec::new()];
            for &i in set {
                let o = &space.options[i];
                let size = o.ranges.iter().map(|r| r.end()).max().unwrap_or(0);
                let step = (size / 8).max(1).next_multiple_of(o.granule.max(1));
                let cuts = (0..=size).step_by(step as usize).map(|c| SplitOption {
                    ranges: vec![Interval::from_bounds(0, c), Interval::from_bounds(c, size)],
                    ..o.clone()
                });
                let cuts: Vec<SplitOption> = cuts.collect();
                cut = cut
                    .iter()
                    .flat_map(|s| {
                        cuts.iter()
                            .map(|c| [s.as_slice(), std::slice::from_ref(c)].concat())
                    })
                    .collect();
            }
            for set in cut {
                let set: Vec<&SplitOption> = set.iter().collect();
                let Some(other) = space.price(&set) else {
                    continue;
                };
                assert!(
                    price.objective <= other.objective * (1.0 + 1e-9),
                    "{} against {}",
                    price.objective,
                    other.objective
                );
            }
        }
    }
}

#[test]
fn no_assignment_costs_less_than_the_lower_bound() {
    let model = Model {
        layers: 1,
        heads: 6,
        kv: 2,
        width: 160,
        dtype: "q8_0",
    };
    let graph = model.graph();
    for devices in [2, 3, 4] {
        let request = request(devices, true);
        let planned = plan(&graph, &request).expect("placed graphs verify");
        let device_weights = request.stage_device_weights(0);
        let space = Space::new(&planned, &request, &device_weights);
        let all: Vec<&SplitOption> = space.options.iter().collect();
        for group in &planned.layer_groups {
            let bound = space.pricer.lower_bound(group, &all);
            assert!(bound > 0.0 || group.insts.len() < 5);
            for set in space.sets() {
                let set: Vec<&SplitOption> = set.iter().map(|&i| all[i]).collect();
                if let Some(price) = space.pricer.price(group, &set) {
                    assert!(bound <= price.objective * (1.0 + 1e-9), "{devices} devices");
                }
            }
        }
    }
}
