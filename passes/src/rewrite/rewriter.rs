//! Drives rewriting. Sections that are equal except for names share a *skeleton*. Each distinct skeleton is rewritten
//! once to a template, which all its sections instantiate.

use rustc_hash::FxHashMap;
use tpc_ir::{Graph, GroupData, Output, Value, Verified, stage};

use super::analysis::Table;
use super::emit::emit;
use super::order;
use super::price::Machine;
use super::report::{Counts, Limits, Outcome, Report};
use super::rules::RewriteRule;
use super::saturate::{SkeletonGraph, saturate};
use super::skeleton::{Skeleton, Step, class_data, sections};
use super::template::{Template, instantiate};

/// A rewritten graph, with its report.
#[derive(Clone, Debug)]
pub struct RewrittenGraph {
    /// The graph.
    pub graph: Graph,
    /// The report.
    pub report: Report,
}

/// Rewrites a sharded graph by `rules`, usually all [`RULES`](super::RULES).
pub fn rewrite(
    sharded: &Verified<stage::Sharded>,
    machine: Machine<'_>,
    limits: Limits,
    rules: &[&'static RewriteRule],
) -> RewrittenGraph {
    let mut table = Table::default();
    let sections = sections(sharded, &mut table);
    let mut known: FxHashMap<&Skeleton, usize> = FxHashMap::default();
    let mut templates: Vec<Template> = Vec::new();
    let mut chosen: Vec<usize> = Vec::with_capacity(sections.len());
    let mut nodes = 0;
    let asks = order::prefers_one_device(limits.sums, sharded);
    let mut report = Report::default();
    let mut out = sharded.without_insts();
    out.devices.clone_from(&sharded.devices);
    out.groups.clone_from(&sharded.groups);
    out.classes.clone_from(&sharded.classes);
    out.reserve(sharded.values().len(), sharded.insts().len());
    let mut map: Vec<Option<Value>> = vec![None; sharded.values().len()];
    for section in &sections {
        let at = *known.entry(&section.skeleton).or_insert_with(|| {
            let left = limits.all_nodes.saturating_sub(nodes);
            let limits = Limits {
                nodes: limits.nodes.min(left),
                ..limits
            };
            let groups = &sharded.groups;
            let source = (&section.skeleton, &table, &groups[..]);
            let template = template(source, machine, (limits, asks), rules);
            nodes += template.outcome.nodes;
            templates.push(template);
            templates.len() - 1
        });
        chosen.push(at);
    }
    let us = |ordered: bool| {
        chosen
            .iter()
            .map(|&at| templates[at].form(ordered).us)
            .sum()
    };
    let ordered = asks && order::accepts_one_device(limits.sums, us(true), us(false));
    for (section, &at) in sections.iter().zip(&chosen) {
        let template = &templates[at];
        let form = template.form(ordered);
        report.count((at, section.layer), &template.outcome, form.transfers);
        instantiate(
            sharded,
            section,
            (&template.table, form),
            &mut out,
            &mut map,
        );
    }
    let at = |v: Value| map[v.index()].expect("invariant: values that are live out are roots");
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
    RewrittenGraph { graph: out, report }
}

fn template(
    (skeleton, shared, groups): (&Skeleton, &Table, &[GroupData]),
    machine: Machine<'_>,
    (limits, ordered): (Limits, bool),
    rules: &[&'static RewriteRule],
) -> Template {
    let mut table = shared.fork();
    table.classes = class_data(skeleton);
    table.groups = groups.to_vec();
    table.leaves = skeleton.leaves.iter().map(|l| l.ty).collect();
    let before = Counts::count_transfers(skeleton.steps.iter().filter_map(|s| match s {
        Step::Leaf(_) => None,
        Step::Apply { op, .. } => Some(shared.op(*op)),
    }));
    let mut graph = SkeletonGraph::new(skeleton, table);
    let mut outcome = Outcome {
        before,
        ..Outcome::default()
    };
    if before.total() > 0 {
        saturate(&mut graph.egraph, limits, rules, &mut outcome);
    }
    outcome.nodes = graph.egraph.total_number_of_nodes();
    outcome.classes = graph.egraph.number_of_classes();
    let (cheapest, ordered) = emit(skeleton, &graph, machine, (limits.seed, ordered));
    Template {
        table: graph.egraph.analysis,
        cheapest,
        ordered,
        outcome,
    }
}
