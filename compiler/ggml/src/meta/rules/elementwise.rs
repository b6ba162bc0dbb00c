//! Ops on the elements of one or two tensors.

use super::{Call, InferredState, StateRule, reject};
use crate::meta::fault::FaultKind;
use crate::meta::states::{Split, SplitState};
use crate::op::{GgmlOp, OpKind, SplitRule};

pub(super) const BINARY: StateRule = StateRule {
    rule: SplitRule::Binary,
    says: "equal states → that state; a split first source, and a mirrored second one of size 1 on that axis → the first's; \
           products with mirrored values and sums of two partial sums stay partial",
    apply: binary,
};

pub(super) const ADD_ID: StateRule = StateRule {
    rule: SplitRule::AddId,
    says: "as ADD, with mirrored indices of experts; a partial sum and a partial bias → partial",
    apply: add_id,
};

pub(super) const SAME: StateRule = StateRule {
    rule: SplitRule::SameState,
    says: "all sources in one state → that state",
    apply: same,
};

pub(super) const GATED: StateRule = StateRule {
    rule: SplitRule::Gated,
    says: "all sources in one state → that state, halved if one source holds both halves",
    apply: gated,
};

fn binary(call: &Call<'_>) -> InferredState {
    let (a, b) = (call.source(0)?, call.source(1)?);
    let multiplies = matches!(call.op, GgmlOp::Mul | GgmlOp::Div);
    match (a.state, b.state) {
        (SplitState::Partial, SplitState::Partial) if !multiplies => Ok(SplitState::Partial),
        (SplitState::Partial, SplitState::Mirrored) if multiplies => Ok(SplitState::Partial),
        (SplitState::Mirrored, SplitState::Partial) if call.op.is(OpKind::Mul) => {
            Ok(SplitState::Partial)
        }
        _ => beside(call),
    }
}

fn beside(call: &Call<'_>) -> InferredState {
    let b = call.source(1)?;
    match (call.seen(0).split(), call.seen(1).split()) {
        (None, None) => Ok(SplitState::Mirrored),
        (Some(s), None) if b.ne[s.axis] == 1 => Ok(s.clone().into()),
        (Some(s), Some(t)) if s == t => Ok(s.clone().into()),
        (Some(s), Some(t)) if s.axis == t.axis && s.len() == t.len() => {
            reject(FaultKind::Sizes, format!("{s} and {t} are different parts"))
        }
        _ => call.refused(
            FaultKind::Elementwise,
            "expected equal states, or a split first source and a mirrored second source of size 1 on that axis",
        ),
    }
}

fn add_id(call: &Call<'_>) -> InferredState {
    if !call.seen(2).is_whole() {
        return call.refused(FaultKind::States, "the indices of experts are not mirrored");
    }
    let (a, b) = (call.source(0)?, call.source(1)?);
    match (a.state, b.state) {
        (SplitState::Partial, SplitState::Partial) => Ok(SplitState::Partial),
        // The bias has a row per expert, split like the experts' results.
        (SplitState::Split(s), SplitState::Split(t)) if s.axis == 0 && s == t => {
            Ok(s.clone().into())
        }
        (SplitState::Mirrored | SplitState::Partial, SplitState::Mirrored) => {
            Ok(SplitState::Mirrored)
        }
        _ => call.refused(
            FaultKind::Elementwise,
            "expected a bias in the first source's state",
        ),
    }
}

fn same(call: &Call<'_>) -> InferredState {
    let first = call.seen(0);
    if (1..call.src.len()).any(|i| call.src[i].is_some() && call.seen(i) != first) {
        return call.refused(FaultKind::Elementwise, "expected sources in one state");
    }
    match first.split() {
        None => Ok(SplitState::Mirrored),
        Some(s) => match s.scaled(call.ne[s.axis], s.len().max(1)) {
            Some(s) => Ok(s.into()),
            None => reject(FaultKind::Sizes, format!("{s} does not divide the result")),
        },
    }
}

fn gated(call: &Call<'_>) -> InferredState {
    let state = same_split(call)?;
    let Some(s) = state.split() else {
        return Ok(state);
    };
    if call.src.iter().flatten().count() > 1 || s.axis != 0 {
        return Ok(state);
    }
    // Two equal segments are the two halves; the result has the parts of one.
    if let [gate, up] = s.segments.as_slice()
        && gate == up
    {
        return Ok(Split {
            axis: 0,
            segments: vec![gate.clone()],
        }
        .into());
    }
    match s.shared(0, call.ne[0]) {
        Some(s) => Ok(s.into()),
        None => reject(FaultKind::Sizes, format!("{s} does not split into halves")),
    }
}

fn same_split(call: &Call<'_>) -> InferredState {
    let first = call.seen(0);
    if (1..call.src.len()).any(|i| call.src[i].is_some() && call.seen(i) != first) {
        return call.refused(FaultKind::Elementwise, "expected sources in one state");
    }
    Ok(first.clone())
}
