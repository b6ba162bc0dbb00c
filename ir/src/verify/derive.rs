//! What an op makes of sharded operands.

use super::shardings::roles;
use crate::factor::{Axes, Label, Space, Var, solve};
use crate::op::{Op, OperandState, Sharded, pending_result};
use crate::sharding::{AxisTree, ClassRef, Pending, Sharding};
use crate::types::TensorType;

/// The shardings of an op's results of these types, given its operands'; `None` where the op cannot run on them. The
/// op is neither a leaf nor a transfer.
///
/// What this gives passes [`verify`](super::verify): both apply the op's rule and the laws of pending sums.
pub fn derive(op: &Op, operands: &[Sharded<'_>], results: &[&TensorType]) -> Option<Vec<Sharding>> {
    let types: Vec<&TensorType> = operands.iter().map(|o| o.ty).collect();
    let rule = op.rule(&types, results);
    let split = operands.iter().any(|o| o.sharding.is_split());
    let mut space = Space::new();
    let of_operands: Vec<Axes> = operands
        .iter()
        .map(|o| std::array::from_fn(|a| space.import(&o.sharding.tree(a, &o.ty.dims[a]))))
        .collect();
    let of_results: Vec<Axes> = results
        .iter()
        .map(|t| std::array::from_fn(|a| space.leaf(t.dims[a].clone())))
        .collect();
    if split {
        solve(&mut space, &rule, &of_operands, &of_results).ok()?;
    }
    let met = roles(&space, &rule, &of_operands, &of_results);
    if met.active.norm || met.whole.or(met.window).or(met.mixed).is_some() {
        return None;
    }
    let states: Vec<OperandState> = operands
        .iter()
        .map(|o| OperandState {
            pending: o.sharding.pending,
            split: o.sharding.is_split(),
        })
        .collect();
    let pending = pending_result(&rule, &states, met.active).ok()?;
    of_results
        .iter()
        .map(|axes| {
            let trees = axes.map(|v| exported(&space, v));
            let [Some(a), Some(b), Some(c), Some(d)] = trees else {
                return None;
            };
            let mut sharding = Sharding::split([a, b, c, d]);
            if pending != Pending::None && sharding.is_split() {
                return None;
            }
            sharding.pending = pending;
            Some(sharding)
        })
        .collect()
}

/// The tree of an axis; `None` where it holds the minor part of a split factor without the major part before it.
fn exported(space: &Space, v: Var) -> Option<AxisTree> {
    let whole = std::cell::Cell::new(true);
    let class = |factors: &[Var]| match space.label(factors[0]) {
        Some(Label::Split(class)) => {
            let mut div = class.div;
            let mut taken = 1;
            for &f in &factors[1..] {
                match space.label(f) {
                    Some(Label::Rest(rest)) if (rest.class, rest.div) == (class.class, div) => {
                        div = div.checked_div(space.size(f).as_const()?)?;
                        taken += 1;
                    }
                    _ => break,
                }
            }
            Some((ClassRef { div, ..class }, taken))
        }
        Some(Label::Rest(_)) => {
            whole.set(false);
            None
        }
        _ => None,
    };
    let tree = space.export(v, &class);
    whole.get().then_some(tree)
}
