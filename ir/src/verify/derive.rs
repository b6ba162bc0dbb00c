//! Derives shardings of results from operands, and of an operand from the result.

use super::shardings::roles;
use crate::factor::{Axes, Label, Space, Var, solve};
use crate::op::{Op, OperandState, Rule, ShardedTensor, unreduced_result};
use crate::sharding::{AxisTree, ClassRef, Sharding, Unreduced};
use crate::types::{RANK, TensorType};

/// Returns the shardings of an op's results, given its operands' shardings; `None` if the op cannot run on them. The
/// op is neither a leaf nor a transfer.
///
/// The results pass [`verify`](super::verify).
pub fn derive(
    op: &Op,
    operands: &[ShardedTensor<'_>],
    results: &[&TensorType],
) -> Option<Vec<Sharding>> {
    let types: Vec<&TensorType> = operands.iter().map(|o| o.ty).collect();
    let rule = op.rule(&types, results);
    let mut space = Space::new();
    let known = sharded_axes(&mut space, operands);
    let free = free_axes(&mut space, results);
    if operands.iter().any(|o| o.sharding.is_split()) {
        solve(&mut space, &rule, &known, &free).ok()?;
    }
    let pending = derive_unreduced(&space, &rule, operands, &known, &free)?;
    free.iter()
        .map(|axes| {
            let mut sharding = export_sharding(&space, axes)?;
            if pending != Unreduced::None && sharding.is_split() {
                return None;
            }
            sharding.unreduced = pending;
            Some(sharding)
        })
        .collect()
}

/// Returns the sharding of an op's only operand that gives `result` its sharding, if one exists.
pub fn derive_operand(
    op: &Op,
    operand: &TensorType,
    result: ShardedTensor<'_>,
) -> Option<Sharding> {
    let rule = op.rule(&[operand], &[result.ty]);
    let mut space = Space::new();
    let known = sharded_axes(&mut space, &[result]);
    let free = free_axes(&mut space, &[operand]);
    solve(&mut space, &rule, &free, &known).ok()?;
    let sharding = export_sharding(&space, &free[0])?;
    let made = derive(
        op,
        &[ShardedTensor {
            ty: operand,
            sharding: &sharding,
        }],
        &[result.ty],
    )?;
    (made[0] == *result.sharding).then_some(sharding)
}

fn sharded_axes(space: &mut Space, tensors: &[ShardedTensor<'_>]) -> Vec<Axes> {
    let mut tree =
        |t: &ShardedTensor<'_>, a: usize| space.import(&t.sharding.tree(a, &t.ty.dims[a]));
    tensors
        .iter()
        .map(|t| std::array::from_fn(|a| tree(t, a)))
        .collect()
}

fn free_axes(space: &mut Space, types: &[&TensorType]) -> Vec<Axes> {
    let mut leaf = |t: &TensorType, a: usize| space.leaf(t.dims[a].clone());
    types
        .iter()
        .map(|t| std::array::from_fn(|a| leaf(t, a)))
        .collect()
}

/// Returns the unreduced state of the results; `None` if a factor that must be whole is split, or the op does not
/// accept an unreduced sum.
fn derive_unreduced(
    space: &Space,
    rule: &Rule,
    operands: &[ShardedTensor<'_>],
    of_operands: &[Axes],
    of_results: &[Axes],
) -> Option<Unreduced> {
    let met = roles(space, rule, of_operands, of_results);
    if met.active.norm || met.whole.or(met.fragmented).or(met.mixed).is_some() {
        return None;
    }
    let states: Vec<OperandState> = operands
        .iter()
        .map(|o| OperandState {
            unreduced: o.sharding.unreduced,
            split: o.sharding.is_split(),
        })
        .collect();
    unreduced_result(rule, &states, met.active).ok()
}

fn export_sharding(space: &Space, axes: &[Var; RANK]) -> Option<Sharding> {
    let [Some(a), Some(b), Some(c), Some(d)] = axes.map(|v| tree(space, v)) else {
        return None;
    };
    Some(Sharding::split([a, b, c, d]))
}

/// Returns the tree of an axis; `None` for a minor part of a split factor without its major part.
fn tree(space: &Space, v: Var) -> Option<AxisTree> {
    let whole = std::cell::Cell::new(true);
    let class = |factors: &[Var]| match space.label(factors[0]) {
        Some(Label::Split(class)) => {
            let mut div = class.div;
            let mut taken = 1;
            for &f in &factors[1..] {
                match space.label(f) {
                    Some(Label::Minor(rest)) if (rest.class, rest.div) == (class.class, div) => {
                        div = div.checked_div(space.size(f).as_const()?)?;
                        taken += 1;
                    }
                    _ => break,
                }
            }
            Some((ClassRef { div, ..class }, taken))
        }
        Some(Label::Minor(_)) => {
            whole.set(false);
            None
        }
        _ => None,
    };
    let tree = space.export(v, &class);
    whole.get().then_some(tree)
}
