//! Rewriting: every rule is sound and needed, and no collective is needless.

mod collectives;
mod order;
mod witness;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::op::{Binary, BinaryKind, Concat, InputKind, MulMat, Norm, NormKind, Unary, UnaryKind};
use tpc_ir::program::SumOrder;
use tpc_ir::{Bindings, DType, Graph, Op, Symbol, TensorType, Value, Verified, stage};
use tpc_passes::lower::lower;
use tpc_passes::machine::{Link, Topology, Workload};
use tpc_passes::plan::{PlanRequest, roofline};
use tpc_passes::rewrite::{Limits, Machine, RULES, Report, RewriteRule, RewrittenGraph, rewrite};
use tpc_runtime::{Gelu, Interpreter, MemoryWeights, Options, Tensor};

use super::random::{Builder, Rng, d, rewrite_and_run};
use super::rules::{CASES, Case};
use super::support::verified;
use witness::{OF_FAST_LINKS, WITNESSES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    Default,
    Free,
}

impl Links {
    fn of_witness(rule: &str) -> Links {
        if OF_FAST_LINKS.contains(&rule) {
            Links::Free
        } else {
            Links::Default
        }
    }
}

fn request(devices: usize, links: Links) -> PlanRequest {
    let names = (0..devices).map(|d| format!("d{d}")).collect();
    let mut topology = Topology::default();
    if links == Links::Free {
        topology.link = Link::new(1e18, 0.0);
    }
    PlanRequest::new(topology, Workload::new(64, 64, 16, 1), names)
}

struct Found {
    graph: Verified<stage::Sharded>,
    report: Report,
}

fn rewritten(
    graph: &Verified<stage::Sharded>,
    limits: Limits,
    rules: &[&'static RewriteRule],
    links: Links,
) -> Found {
    let request = request(graph.devices.len(), links);
    let machine = Machine {
        topology: &request.topology,
        workload: &request.workload,
    };
    let RewrittenGraph { graph, report } = rewrite(graph, machine, limits, rules);
    let graph = verified(graph);
    Found { graph, report }
}

/// Returns the time of a sharded graph in microseconds, with the planner's weights for batches.
fn cost(graph: &Graph, links: Links) -> f64 {
    let request = request(graph.devices.len(), links);
    let us = |batch: &Bindings| -> f64 {
        let events = roofline(graph, &request, batch);
        events
            .iter()
            .map(|e| e.us.iter().copied().fold(0.0, f64::max))
            .sum()
    };
    let Workload { decode, prefill } = &request.workload;
    us(decode) + Workload::PROMPT_WEIGHT / request.workload.ubatch() * us(prefill)
}

fn run(graph: &Verified<stage::Sharded>, rng: &Rng, tokens: u64) -> Vec<f64> {
    let programs = lower(graph).unwrap_or_else(|e| panic!("{e}\n{graph}"));
    let programs: Verified<stage::Programs> = verified(programs);
    let mut weights = MemoryWeights::new();
    let mut names = BTreeSet::new();
    for (_, data) in graph.insts() {
        let Op::Weight(w) = &data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        let dims = ty.dims.clone().map(|d| d.as_const().expect("constant"));
        if names.insert(w.tensor.clone()) {
            let mut rng = named(rng, &w.tensor);
            let n = dims.iter().product();
            let values: Vec<f32> = (0..n).map(|_| rng.real() as f32).collect();
            weights.insert_f32(w.tensor.clone(), dims, &values);
        }
    }
    let bindings = Bindings::default().with(Symbol::NTokens, tokens);
    let options = Options {
        gelu: Gelu::Exact,
        ..Options::default()
    };
    let mut interpreter =
        Interpreter::new(&programs, &weights, options).unwrap_or_else(|e| panic!("{e}"));
    let mut inputs = |kind: &InputKind, ty: &TensorType| {
        let InputKind::Other(name) = kind else {
            panic!("unexpected input {kind:?}");
        };
        let mut rng = named(rng, name);
        let dims: [usize; 4] =
            std::array::from_fn(|i| ty.dims[i].eval(&bindings).expect("small") as usize);
        let n: usize = dims.iter().product();
        // Integers are experts.
        let tensor = match ty.dtype {
            DType::I32 => Tensor::ints_of(dims, (0..n).map(|_| rng.range(0, 3) as i64).collect()),
            _ => Tensor::reals_of(dims, (0..n).map(|_| rng.real()).collect()),
        };
        Ok(tensor.expect("sizes agree"))
    };
    let out = interpreter.run(&bindings, &mut inputs);
    let out = out.unwrap_or_else(|e| panic!("{e}\n{programs}"));
    let reals = |t: &Tensor| t.reals().map(Cow::into_owned).expect("real");
    out.values().flat_map(reals).collect()
}

fn named(rng: &Rng, name: &str) -> Rng {
    let hash = name.bytes().fold(7, |h: u64, b| h * 31 + u64::from(b));
    Rng::new(rng.clone().next() ^ hash)
}

#[test]
fn every_rule_has_one_name_and_one_witness() {
    let rules: Vec<&str> = RULES.iter().map(|r| r.name).collect();
    let witnesses: Vec<&str> = WITNESSES.iter().map(|w| w.0).collect();
    assert_eq!(rules, witnesses);
    let different: BTreeSet<&&str> = rules.iter().collect();
    assert_eq!(different.len(), rules.len());
}

#[test]
fn without_a_rule_its_witness_costs_more() {
    for (rule, make) in WITNESSES {
        let graph = verified(make(2));
        let others: Vec<&'static RewriteRule> =
            RULES.iter().copied().filter(|r| r.name != *rule).collect();
        let links = Links::of_witness(rule);
        let limits = Limits {
            sums: SumOrder::Cheapest,
            ..Limits::default()
        };
        let with = rewritten(&graph, limits, RULES, links);
        let without = rewritten(&graph, limits, &others, links);
        assert!(with.report.is_saturated(), "{rule}: {:?}", with.report);
        let (a, b) = (cost(&with.graph, links), cost(&without.graph, links));
        // A rule is also needed if the search does not saturate without it.
        assert!(
            a < b * (1.0 - 1e-6) || !without.report.is_saturated(),
            "{rule}: {a} with it, {b} without\n{}\n{}",
            with.graph,
            without.graph
        );
    }
}

#[test]
fn witnesses_give_the_same_numbers_rewritten() {
    for (rule, make) in WITNESSES {
        for seed in 0..24 {
            let mut rng = Rng::new(seed);
            let devices = rng.range(2, 4) as usize;
            let tokens = rng.range(1, 3);
            let graph = verified(make(devices));
            let limits = Limits {
                seed: (seed > 0).then_some(seed),
                ..Limits::default()
            };
            let found = rewritten(&graph, limits, RULES, Links::of_witness(rule));
            assert!(found.report.matches().contains_key(rule), "{rule}");
            let (want, got) = (run(&graph, &rng, tokens), run(&found.graph, &rng, tokens));
            assert_eq!(want.len(), got.len(), "{rule}");
            let apart = tpc_core::golden::distance(want, got);
            assert!(
                apart.nmse <= 1e-20,
                "{rule}, seed {seed}: NMSE {:e}\n{graph}\n{}",
                apart.nmse,
                found.graph
            );
        }
    }
}

/// Returns a rule, and the rule that must apply before it, if any.
fn with_what_it_needs(rule: &'static RewriteRule) -> Vec<&'static RewriteRule> {
    let needed = match rule.name {
        "parts-of-rows" | "norm-of-parts" => "scattered-sum",
        // In random graphs, biases are between the product and the function.
        "zero-rows" => "expert-bias",
        name => name,
    };
    let named = |r: &&RewriteRule| r.name == rule.name || r.name == needed;
    RULES.iter().copied().filter(named).collect()
}

#[test]
fn every_rule_of_rewriting_holds_when_executed() {
    // Random graphs of every op, split at random: apply each rule alone, and run one of the equal graphs.
    const WANTED: usize = 25;
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    let own: [Case; 4] = [two_norms, chain, joined, product];
    let cases = || CASES.iter().map(|(_, c)| *c).chain(own);
    for seed in 0..150 {
        for case in cases() {
            for rule in RULES {
                if ran.get(rule.name).is_some_and(|&n| n >= WANTED) {
                    continue;
                }
                let mut b = Builder::new(seed);
                let out = case(&mut b);
                let fired = rewrite_and_run(b, out, &with_what_it_needs(rule), rule.name);
                *ran.entry(rule.name).or_insert(0) += usize::from(fired);
            }
        }
    }
    crate::random::unproved_at_most(60);
    // Random graphs do not copy there and back, and slice inputs at the inputs' place. The witnesses test both rules.
    for rule in ["copy-of-copy", "slice-then-copy"] {
        ran.insert(rule, WANTED);
    }
    let rare: Vec<_> = ran.iter().filter(|(_, n)| **n < WANTED).collect();
    assert!(rare.is_empty(), "fired too rarely: {rare:?}");
}

/// Builds norms over all rows of a product, and of a function of it.
fn two_norms(b: &mut Builder) -> Value {
    let [x] = products(b);
    let kind = NormKind::Rms;
    let y = b.push(
        Unary {
            kind: UnaryKind::Silu,
        },
        vec![x],
    );
    let y = b.push(Norm { kind, eps: 1e-5 }, vec![y]);
    b.also.push(y);
    b.push(Norm { kind, eps: 1e-5 }, vec![x])
}

/// Builds unreduced products of one value with several matrices.
fn products<const N: usize>(b: &mut Builder) -> [Value; N] {
    let (k, m) = (d(b.rng.range(2, 8)), d(b.rng.range(1, 4)));
    let t = b.t();
    let x = b.plain([k.clone(), t, d(1), d(1)]);
    std::array::from_fn(|_| {
        let w = b.plain([k.clone(), m.clone(), d(1), d(1)]);
        b.push(MulMat, vec![w, x])
    })
}

fn chain(b: &mut Builder) -> Value {
    let [first, rest @ ..] = products::<4>(b);
    let kind = BinaryKind::Add;
    rest.into_iter()
        .fold(first, |y, x| b.push(Binary { kind }, vec![y, x]))
}

/// Joins several joined products.
fn joined(b: &mut Builder) -> Value {
    let all: [Value; 3] = products(b);
    let axis = b.rng.range(0, 1);
    b.push(Concat { axis }, all.to_vec())
}

/// Builds the product of two matrix products, and subtracts a third.
fn product(b: &mut Builder) -> Value {
    let [x, y, z] = products(b);
    let y = b.push(
        Binary {
            kind: BinaryKind::Mul,
        },
        vec![x, y],
    );
    let kind = BinaryKind::Sub;
    b.push(Binary { kind }, vec![y, z])
}
