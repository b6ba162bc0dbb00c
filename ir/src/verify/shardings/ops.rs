use super::{Faults, ShardingRule, is_unreduced, roles};
use crate::entity::Value;
use crate::factor::{Axes, Space, solve};
use crate::graph::{Graph, InstData};
use crate::op::{ActiveRoles, OperandState, Rule, unreduced_result};
use crate::sharding::Unreduced;
use crate::types::TensorType;

pub(super) fn check(graph: &Graph, data: &InstData, faults: &mut Faults<'_>) {
    let is_split = |v: Value| graph.value(v).sharding.is_split();
    let all = || data.operands.iter().chain(&data.results).copied();
    if !all().any(|v| is_split(v) || is_unreduced(graph, v)) {
        return;
    }
    let types =
        |vs: &[Value]| -> Vec<&TensorType> { vs.iter().map(|&v| &graph.value(v).ty).collect() };
    let rule = data.op.rule(&types(&data.operands), &types(&data.results));
    let mut space = Space::new();
    let operands = labelled_axes(graph, &data.operands, &mut space);
    let results = labelled_axes(graph, &data.results, &mut space);
    let op = data.op.name();
    if all().any(is_split)
        && let Err((i, cut)) = solve(&mut space, &rule, &operands, &results)
    {
        let detail = format!("violates equation {} of the rule of `{op}`: {cut}", i + 1);
        faults.add(ShardingRule::Equation, &detail);
        return;
    }
    let found = roles(&space, &rule, &operands, &results);
    if let Some(tree) = found.whole {
        let detail = format!("is split on {tree}, which `{op}` needs whole");
        faults.add(ShardingRule::Whole, &detail);
    } else if found.active.norm {
        let detail = format!("is the `{op}` over a split axis");
        faults.add(ShardingRule::Norm, &detail);
    } else if let Some(tree) = found.fragmented.or(found.mixed) {
        let detail = format!(
            "is the `{op}` over {tree}, which is not one range of one factor on each device"
        );
        faults.add(ShardingRule::OneRange, &detail);
    } else {
        unreduced(graph, data, (&rule, found.active), faults);
    }
}

fn labelled_axes(graph: &Graph, values: &[Value], space: &mut Space) -> Vec<Axes> {
    let mut axes = |&v: &Value| -> Axes {
        let data = graph.value(v);
        std::array::from_fn(|a| space.import(&data.sharding.tree(a, &data.ty.dims[a])))
    };
    values.iter().map(&mut axes).collect()
}

fn unreduced(
    graph: &Graph,
    data: &InstData,
    (rule, active): (&Rule, ActiveRoles),
    faults: &mut Faults<'_>,
) {
    let op = data.op.name();
    let state = |&v: &Value| {
        let sharding = &graph.value(v).sharding;
        OperandState {
            unreduced: sharding.unreduced,
            split: sharding.is_split(),
        }
    };
    let states: Vec<OperandState> = data.operands.iter().map(state).collect();
    let expected = match unreduced_result(rule, &states, active) {
        Ok(expected) => expected,
        Err(refused) => {
            let refused = refused.iter().map(|&i| data.operands[i].to_string());
            let refused: Vec<String> = refused.collect();
            let detail = format!("is the `{op}` of unreduced {}", refused.join(", "));
            faults.add(ShardingRule::UnreducedOperand, &detail);
            return;
        }
    };
    for &v in &data.results {
        let found = graph.value(v).sharding.unreduced;
        if found != expected {
            let (found, expected) = (describe(found), describe(expected));
            let detail = format!("declares {v} {found}, but `{op}` makes it {expected}");
            faults.add(ShardingRule::UnreducedResult, &detail);
        }
    }
}

fn describe(unreduced: Unreduced) -> String {
    match unreduced {
        Unreduced::None => "reduced".to_owned(),
        Unreduced::Partial => "partial".to_owned(),
        Unreduced::OwnerMasked(c) => format!("owner_masked({c})"),
    }
}
