//! Ops that concatenate, extend or reorder axes.

use super::{Call, InferredState, StateRule, reject};
use crate::meta::fault::FaultKind;
use crate::meta::states::SplitState;
use crate::op::{GgmlOp, SplitRule};

pub(super) const CONCAT: StateRule = StateRule {
    rule: SplitRule::Concat,
    says: "equal states, or one mirrored and the other split, on an axis that is not the concatenated one → the split state",
    apply: concat,
};

pub(super) const PAD: StateRule = StateRule {
    rule: SplitRule::Pad,
    says: "not along the split axis → the same",
    apply: pad,
};

pub(super) const PERMUTE: StateRule = StateRule {
    rule: SplitRule::Permute,
    says: "the axis moves; several segments must not repeat",
    apply: permute,
};

fn concat(call: &Call<'_>) -> InferredState {
    let (a, b) = (call.source(0)?, call.source(1)?);
    let along = |axis: usize| call.ne[axis] != a.ne[axis];
    let state = match (a.state.seen(), b.state.seen()) {
        (a, b) if a == b => a,
        (SplitState::Mirrored, s) | (s, SplitState::Mirrored) => s,
        _ => {
            return call.refused(
                FaultKind::Concat,
                "expected equal states, or one mirrored source",
            );
        }
    };
    match state.axis() {
        Some(axis) if along(axis) => {
            call.refused(FaultKind::Concat, "the op joins parts of the split axis")
        }
        _ => Ok(state.clone()),
    }
}

fn pad(call: &Call<'_>) -> InferredState {
    let a = call.source(0)?;
    match a.state.seen() {
        SplitState::Split(s) if call.ne[s.axis] != a.ne[s.axis] => {
            call.refused(FaultKind::Concat, "the op pads the split axis")
        }
        state => Ok(state.clone()),
    }
}

fn permute(call: &Call<'_>) -> InferredState {
    let a = call.source(0)?;
    let SplitState::Split(s) = a.state.seen() else {
        return Ok(SplitState::Mirrored);
    };
    if s.segments.len() > 1 && s.segments.iter().any(|g| g.repeat > 1) {
        return call.refused(FaultKind::Shape, "the op moves repeated segments");
    }
    match call.op {
        GgmlOp::Transpose => Ok(s.along([1, 0, 2, 3][s.axis]).into()),
        GgmlOp::Permute(p) => Ok(s.along(p.axes[s.axis]).into()),
        _ => reject(
            FaultKind::Shape,
            format!("{s} is not an axis of the result"),
        ),
    }
}
