//! Rewriting the sharded graph by equality saturation: copies and collectives are merged, delayed and moved to where
//! they cost least.
//!
//! `shard` does every pending sum where it arises. Here, the regions of the graph (`layers.rs`) become terms
//! (`language.rs`) of which type, place and sharding are known (`analysis.rs`); the rules (`rules/`) say which terms are
//! equal; and the cheapest graph by the planner's cost model (`price.rs`) is chosen (`extract.rs`). Regions that are
//! alike up to the names of weights are rewritten once. What comes out is a sharded graph like any other, which the
//! verifier checks again.
//!
//! Nothing here depends on the clock: limits are counts of iterations and terms, and a region that reaches one is
//! reported.

mod analysis;
mod extract;
mod language;
mod layers;
mod price;
mod report;
mod rules;
mod template;

pub use price::Machine;
pub use report::{Counts, Limits, RegionReport, Report, Stop};
pub use rules::{RULES, Rule};

use std::collections::HashMap;

use tpc_ir::{Class, ClassData, Graph, Output, Value};

use analysis::Table;
use layers::{Region, Shape, regions};
use template::{From, Made, Template};

/// A rewritten graph, and how it came about.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The graph.
    pub graph: Graph,
    /// How it came about.
    pub report: Report,
}

/// Rewrites a sharded graph, which must be valid, by `rules` (all of them are [`RULES`]).
pub fn rewrite(
    sharded: &Graph,
    machine: Machine<'_>,
    limits: Limits,
    rules: &[&'static Rule],
) -> Rewritten {
    let mut table = Table::default();
    let regions = regions(sharded, &mut table);
    let mut known: HashMap<&Shape, usize> = HashMap::new();
    let mut templates: Vec<Template> = Vec::new();
    let mut report = Report::default();
    let mut out = Graph::new(sharded.name.clone());
    out.devices.clone_from(&sharded.devices);
    out.groups.clone_from(&sharded.groups);
    out.classes.clone_from(&sharded.classes);
    let mut map: Vec<Option<Value>> = vec![None; sharded.values().len()];
    for region in &regions {
        let at = *known.entry(&region.shape).or_insert_with(|| {
            let groups = &sharded.groups;
            let made = template::rewrite(&region.shape, &table, groups, machine, limits, rules);
            templates.push(made);
            templates.len() - 1
        });
        let template = &templates[at];
        report.count(at, region.layer, &template.outcome);
        instantiate(sharded, region, template, &mut out, &mut map);
    }
    let at = |v: Value| map[v.index()].expect("invariant: what is wanted outside is a root");
    out.outputs = sharded
        .outputs
        .iter()
        .map(|o| match o {
            Output::Named(name, v) => Output::Named(name.clone(), at(*v)),
            Output::State { state, value } => Output::State {
                state: at(*state),
                value: at(*value),
            },
        })
        .collect();
    Rewritten { graph: out, report }
}

/// Appends a region in its rewritten form.
fn instantiate(
    graph: &Graph,
    region: &Region,
    template: &Template,
    out: &mut Graph,
    map: &mut [Option<Value>],
) {
    let mut made: Vec<Vec<Value>> = Vec::with_capacity(template.steps.len());
    let mut layer = region.layer;
    for step in &template.steps {
        match step {
            Made::Leaf(i) => {
                let v = region.leaves[*i as usize];
                let data = graph.value(v);
                let inst = graph.inst(data.def.0);
                let types = vec![data.ty.clone()];
                let new = out.push(inst.op.clone(), Vec::new(), types, data.place, inst.layer);
                let new = out.inst(new).results[0];
                let to = out.value_mut(new);
                to.name.clone_from(&data.name);
                to.sharding.clone_from(&data.sharding);
                map[v.index()] = Some(new);
                made.push(vec![new]);
            }
            Made::Apply {
                op,
                out: outs,
                operands,
                origins,
            } => {
                let outs = template.table.outs(*outs);
                let origin = |i: usize| origins[i].map(|o| region.values[o as usize]);
                if let Some(v) = origin(0) {
                    layer = graph.inst(graph.value(v).def.0).layer;
                }
                let operands = operands
                    .iter()
                    .map(|&from| resolve(region, &made, map, from))
                    .collect();
                let types = outs.iter().map(|o| o.ty.clone()).collect();
                let op = template.table.op(*op).clone();
                let new = out.push(op, operands, types, outs[0].place, layer);
                let results = out.inst(new).results.clone();
                for (i, (&v, o)) in results.iter().zip(outs).enumerate() {
                    let sharding =
                        o.sharding
                            .renamed(&mut |c: Class| match region.classes.get(c.index()) {
                                Some(&own) => own,
                                None => class_of(out, &template.table.classes[c.index()]),
                            });
                    let to = out.value_mut(v);
                    to.sharding = sharding;
                    if let Some(named) = origin(i) {
                        to.name.clone_from(&graph.value(named).name);
                    }
                }
                made.push(results);
            }
        }
    }
    for (&root, &from) in region.shape.roots.iter().zip(&template.roots) {
        let v = region.values[root as usize];
        map[v.index()] = Some(resolve(region, &made, map, from));
    }
}

/// The class of the graph that is this one; a new one where there is none.
fn class_of(graph: &mut Graph, class: &ClassData) -> Class {
    let known = graph.classes.iter().position(|c| c == class);
    Class::new(known.unwrap_or_else(|| {
        graph.classes.push(class.clone());
        graph.classes.len() - 1
    }))
}

fn resolve(region: &Region, made: &[Vec<Value>], map: &[Option<Value>], from: From) -> Value {
    match from {
        From::Leaf(i) => {
            let v = region.leaves[i as usize];
            map[v.index()].expect("invariant: leaves are made before they are used")
        }
        From::Made(step, result) => made[step as usize][result as usize],
    }
}
