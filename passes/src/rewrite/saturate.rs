use std::time::Duration;

use egg::{Id, Runner, SimpleScheduler};

use super::analysis::{EGraph, Table, insert};
use super::language::{Head, Node};
use super::report::{Limits, Outcome, StopReason};
use super::rules::{RewriteRule, RuleApplier};
use super::skeleton::{Arg, Skeleton, Step};

pub(super) struct SkeletonGraph {
    pub(super) egraph: EGraph,
    pub(super) steps: Vec<Option<Id>>,
    pub(super) values: Vec<Id>,
}

impl SkeletonGraph {
    pub(super) fn new(skeleton: &Skeleton, table: Table) -> SkeletonGraph {
        let mut egraph = EGraph::new(table);
        let mut values: Vec<Id> = Vec::new();
        let leaf = |egraph: &mut EGraph, i: u32| {
            let head = Head::Leaf(i);
            let operands = Vec::new();
            egraph.add(Node { head, operands })
        };
        let mut steps = Vec::new();
        for step in &skeleton.steps {
            let Step::Apply {
                op,
                types,
                operands,
            } = step
            else {
                steps.push(None);
                continue;
            };
            let arg = |a: &Arg| match *a {
                Arg::Leaf(i) => leaf(&mut egraph, i),
                Arg::Value(i) => values[i as usize],
            };
            let operands = operands.iter().map(arg).collect();
            let head = Head::Op(*op, *types);
            let results = egraph.analysis.types(*types).len();
            let first = u32::try_from(values.len()).ok();
            let id = match results {
                1 => insert(&mut egraph, Node { head, operands }, first),
                _ => egraph.add(Node { head, operands }),
            };
            steps.push(Some(id));
            if results == 1 {
                values.push(id);
                continue;
            }
            for i in 0..results {
                let head = Head::Result(i as u32);
                let operands = vec![id];
                let origin = first.map(|f| f + i as u32);
                values.push(insert(&mut egraph, Node { head, operands }, origin));
            }
        }
        SkeletonGraph {
            egraph,
            steps,
            values,
        }
    }
}

/// Applies the rules until they find no new term or a limit is reached.
pub(super) fn saturate(
    egraph: &mut EGraph,
    limits: Limits,
    rules: &[&'static RewriteRule],
    outcome: &mut Outcome,
) {
    let rewrites: Vec<egg::Rewrite<Node, Table>> = rules
        .iter()
        .map(|&r| {
            egg::Rewrite::new(r.name, RuleApplier(r), RuleApplier(r))
                .expect("invariant: rules bind no variables")
        })
        .collect();
    let all = std::mem::replace(egraph, EGraph::new(Table::default()));
    let runner = Runner::<Node, Table>::new(Table::default())
        .with_egraph(all)
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(limits.iterations)
        .with_node_limit(limits.nodes)
        .with_time_limit(Duration::MAX)
        .run(&rewrites);
    for iteration in &runner.iterations {
        for rule in rules {
            let name = egg::Symbol::from(rule.name);
            let found = iteration.applied.get(&name).copied().unwrap_or(0);
            if found > 0 {
                *outcome.matches.entry(rule.name).or_insert(0) += found;
            }
        }
    }
    outcome.iterations = runner.iterations.len();
    outcome.stop = match runner.stop_reason {
        Some(egg::StopReason::NodeLimit(_)) => StopReason::Nodes,
        Some(egg::StopReason::IterationLimit(_)) => StopReason::Iterations,
        _ => StopReason::Saturated,
    };
    *egraph = runner.egraph;
}
