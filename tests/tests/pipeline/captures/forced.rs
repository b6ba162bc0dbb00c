//! Forced splits that the planner would not choose: every division of experts and heads, in every capture that has
//! them. All are executed.

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::op::{Binary, BinaryKind, FlashAttn, MulMat, Permute, Reshape, Role};
use tpc_ir::{Group, InstData, Interval, Op, Value};
use tpc_passes::factors::Analysis;
use tpc_passes::plan::{
    ChainCuts, Choice, PlannedGraph, SplitOption, chain, options_for, proportional,
};
use tpc_passes::prove::prove;

use super::{CapturedGraph, DEVICES, Divided, Whole, carry_out, divide, read, stem, text};
use crate::random::{Builder, Fate, d, split_by};

fn clash(analysis: &Analysis, a: &SplitOption, b: &SplitOption) -> bool {
    let together = |x: &Var, y: &Var| x == y || analysis.leaves[x].co_occurring.contains(y);
    a.leaves
        .iter()
        .any(|x| b.leaves.iter().any(|y| together(x, y)))
}

fn numbers_of_experts(p: &PlannedGraph) -> BTreeSet<Var> {
    let roles = p.analysis.insts.iter().flat_map(|i| &i.roles);
    let experts = roles.filter(|r| r.role == Role::Expert);
    experts
        .flat_map(|r| r.summands.iter().flatten().copied())
        .collect()
}

pub(super) fn by_number(whole: &Whole, devices: usize) -> Result<Divided, String> {
    let planned = divide(&whole.graph, devices)?.planned;
    let leaves = numbers_of_experts(&planned);
    let shares = vec![1.0; devices];
    let p = &planned;
    let forced = leaves.iter().flat_map(|&leaf| {
        let group = (Group::new(0), &shares[..]);
        options_for(p.graph_facts(), leaf, group)
    });
    let forced: Vec<SplitOption> = forced.collect();
    if forced.is_empty() {
        return Err(format!("no experts for {devices} devices"));
    }
    let fits = |o: &&SplitOption| !forced.iter().any(|f| clash(&p.analysis, f, o));
    let rest: Vec<SplitOption> = p.choice.options.iter().filter(fits).cloned().collect();
    let choice = Choice::from_options(forced.into_iter().chain(rest));
    let made = carry_out(PlannedGraph { choice, ..planned }, devices)?;
    let stacks = made.sharded.values().filter(|(v, data)| {
        let weight = matches!(made.sharded.def_op(*v), Op::Weight(_));
        weight && !data.ty.dims[2].is_one() && data.sharding.axes[2].is_some()
    });
    if stacks.count() == 0 {
        return Err(format!("{devices} devices: no stack of experts is divided"));
    }
    Ok(made)
}

/// Divides a capture's experts among several numbers of devices, and runs each division.
pub(super) fn experts(captured: CapturedGraph) -> Result<(), String> {
    let whole = Whole::new(captured)?;
    for devices in DEVICES {
        let made = by_number(&whole, devices)?;
        let proved = prove(&whole.graph, &made.programs);
        proved.map_err(|r| format!("{devices} devices: not proved: {r}"))?;
        let compared = whole.compare(&made.programs);
        compared.map_err(|e| format!("{devices} devices: {e}"))?;
    }
    Ok(())
}

#[test]
fn experts_of_every_capture_are_divided() {
    let mut found = 0;
    for path in tpc_tests::captures() {
        let name = stem(&path);
        let captured = read(&text(&path), &name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let routed = |(_, data): (_, &InstData)| matches!(data.op, Op::MulMatId(_));
        if captured.graph.insts().any(routed) {
            experts(captured).unwrap_or_else(|e| panic!("{name}: {e}"));
            found += 1;
        }
    }
    assert!(found >= 2, "the repository has two captures with experts");
}

/// Builds attention over a batch with `kv` key heads and `kv·g` query heads. Returns the result, and the weights of
/// queries and keys.
fn attention(b: &mut Builder, kv: u64, g: u64) -> (Value, Value, Value) {
    let (n, e, t) = (5, 2, b.t());
    let x = b.plain([d(n), t.clone(), d(1), d(1)]);
    let heads = |b: &mut Builder, h: u64| {
        let w = b.weight([n, e * h, 1, 1]);
        let y = b.push(MulMat, vec![w, x]);
        let dims = [d(e), d(h), t.clone(), d(1)];
        let y = b.push(Reshape { dims }, vec![y]);
        (w, b.push(Permute { axes: [0, 2, 1, 3] }, vec![y]))
    };
    let ((wq, q), (wk, k), (_, v)) = (heads(b, kv * g), heads(b, kv), heads(b, kv));
    let mask = b.plain([t.clone(), t.clone(), d(1), d(1)]);
    let op = FlashAttn {
        scale: 0.7,
        max_bias: if b.rng.one_in(2) { 8.0 } else { 0.0 },
        softcap: 0.0,
        heads: None,
        lse: false,
    };
    let mut operands = vec![q, k, v, mask];
    if b.rng.one_in(2) {
        operands.push(b.weight([kv * g, 1, 1, 1]));
    }
    let y = b.push(op, operands);
    let dims = [d(e * kv * g), t, d(1), d(1)];
    let y = b.push(Reshape { dims }, vec![y]);
    let wo = b.weight([e * kv * g, n, 1, 1]);
    let y = b.push(MulMat, vec![wo, y]);
    let kind = BinaryKind::Add;
    (b.push(Binary { kind }, vec![y, x]), wq, wk)
}

/// Returns the split and the devices' ranges for `kv` key heads with `g` queries each.
type Way = fn(kv: u64, g: u64, shares: &[f64]) -> Option<(Form, Vec<Interval>)>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Keys,
    Groups,
    Chain,
}

const WAYS: [Way; 4] = [
    |kv, _, shares| Some((Form::Keys, proportional(kv, 1, shares))),
    |_, g, shares| Some((Form::Groups, proportional(g, 1, shares))),
    |kv, g, shares| Some((Form::Chain, chain(kv, g, 1, ChainCuts::Uniform, shares)?)),
    |kv, g, shares| Some((Form::Chain, chain(kv, g, 1, ChainCuts::Free, shares)?)),
];

/// Divides attention heads and runs the result; `None` if there is only one head or group.
fn split_heads(
    seed: u64,
    devices: usize,
    (kv, g): (u64, u64),
    way: Way,
    even: bool,
) -> Option<Fate> {
    let mut builder = Builder::new(seed);
    let (out, wq, wk) = attention(&mut builder, kv, g);
    let shares: Vec<f64> = (0..devices)
        .map(|i| if even { 1.0 } else { (i % 3) as f64 + 0.5 })
        .collect();
    let (form, ranges) = way(kv, g, &shares)?;
    let single = |n| n < 2;
    if (form != Form::Groups && single(kv)) || (form != Form::Keys && single(g)) {
        return None;
    }
    Some(split_by(
        builder,
        out,
        devices,
        |_, (graph, placed), _, analysis| {
            let of = |v: Value| {
                let name = &graph.value(v).name;
                let mut values = placed.values();
                let (v, _) = values.find(|(_, data)| data.name == *name).expect("placed");
                analysis.summands[v.index()][0].axes[1].clone()
            };
            let (queries, keys) = (of(wq), of(wk));
            let minor = || *queries.iter().find(|l| !keys.contains(l)).expect("groups");
            let leaves = match form {
                Form::Keys => vec![keys[0]],
                Form::Groups => vec![minor()],
                Form::Chain => vec![keys[0], minor()],
            };
            Choice::from_options([SplitOption {
                group: Group::new(0),
                leaves,
                ranges,
                granule: 1,
                shares_blocks: false,
                kind: "forced",
                required: false,
            }])
        },
    ))
}

#[test]
fn heads_are_divided_in_every_way() {
    let mut ran = 0;
    for kv in 1..=8 {
        for g in [1, 2, 3, 4, 5, 7, 8] {
            for devices in 2..=8 {
                for (i, way) in WAYS.into_iter().enumerate() {
                    for even in [true, false] {
                        let seed = 1000 * kv + 10 * g + devices as u64;
                        let Some(fate) = split_heads(seed, devices, (kv, g), way, even) else {
                            continue;
                        };
                        let what = format!("{g} × {kv} heads on {devices}, way {i}");
                        assert!(matches!(fate, Fate::Ran), "{what}: {fate:?}");
                        ran += 1;
                    }
                }
            }
        }
    }
    assert!(ran > 2000, "only {ran} of the ways");
}
