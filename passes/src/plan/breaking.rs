//! Finds ops whose results would not have the bits of one device if a choice of splits were made.

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::program::{Company, Tensors, subtree};
use tpc_ir::{Group, Inst, InstData, Interval, Op, Value};

use super::choice::Choice;
use super::options::SplitOption;
use crate::factors::{GraphFacts, active_roles};
use crate::place::group_of;

/// Returns the instructions that split a sum in another order than one device, on an executor with these properties.
pub(super) fn breaking_insts(
    facts: GraphFacts<'_>,
    choice: &Choice,
    company: Company,
) -> BTreeSet<Inst> {
    let graph = facts.graph;
    let tensors = Tensors::of(graph);
    let breaks = |(inst, data): &(Inst, &InstData)| {
        let Some(group) = group_of(graph, *inst) else {
            return false;
        };
        let Ok(active) = active_roles(graph, facts.analysis, *inst, choice) else {
            return true;
        };
        let product = data.op.is_product();
        let reduces = active.reduce
            && !(product && keeps_order((facts, choice), (&tensors, company), group, data));
        // One device computes an expert's row, and all others have zeros.
        reduces || active.norm || (active.expert.is_some() && !product)
    };
    graph.insts().filter(breaks).map(|(inst, _)| inst).collect()
}

/// True if each device sums a subtree of a product's sum.
fn keeps_order(
    (facts, choice): (GraphFacts<'_>, &Choice),
    (tensors, company): (&Tensors, Company),
    group: Group,
    data: &InstData,
) -> bool {
    let graph = facts.graph;
    let Some(&weight) = data.operands.first() else {
        return false;
    };
    let most = company.two_term_weights;
    let small = tensors.reads_at_most(graph, (&data.op, &data.operands), most);
    if !company.subtrees || !matches!(graph.def_op(weight), Op::Weight(_)) || small {
        return false;
    }
    let Some(k) = graph.value(weight).ty.dims[0].as_const() else {
        return false;
    };
    let devices = graph.group(group).devices.len() as u64;
    let shares = shares((facts, choice), group, weight);
    shares.is_some_and(|shares| {
        let mut ranks = (0..).zip(&shares);
        shares.len() as u64 == devices
            && ranks.all(|(rank, i)| subtree(k, rank, devices) == Some((i.start, i.end())))
    })
}

/// Returns each device's interval of axis 0 of a weight; `None` if a device has several intervals, or shares one.
fn shares(
    (facts, choice): (GraphFacts<'_>, &Choice),
    group: Group,
    weight: Value,
) -> Option<Vec<Interval>> {
    let [summand] = &facts.analysis.summands[weight.index()][..] else {
        return None;
    };
    let axis = &summand.axes[0];
    let splits = |o: &&SplitOption| o.group == group && axis.starts_with(&o.leaves);
    let option = choice.options.iter().find(splits)?;
    let size = |l: &Var| facts.factors.space.size(*l).as_const();
    let minor = axis[option.leaves.len()..].iter().map(size);
    let minor = minor.product::<Option<u64>>()?;
    let scaled = |i: &Interval| {
        Some(Interval {
            start: i.start.checked_mul(minor)?,
            len: i.len.checked_mul(minor)?,
        })
    };
    option.ranges.iter().map(scaled).collect()
}
