//! Ops on whole rows, and ops that gather or scatter rows by index.

use super::{Call, InferredState, StateRule};
use crate::meta::fault::FaultKind;
use crate::meta::states::SplitState;
use crate::op::SplitRule;

pub(super) const WHOLE_ROWS: StateRule = StateRule {
    rule: SplitRule::WholeRows,
    says: "anything but axis 0 → the same",
    apply: whole_rows,
};

pub(super) const ROPE: StateRule = StateRule {
    rule: SplitRule::Rope,
    says: "mirrored positions and factors → the first source's state",
    apply: rope,
};

pub(super) const GET: StateRule = StateRule {
    rule: SplitRule::GetRows,
    says: "axis 0 with mirrored indices → axis 0; else all mirrored",
    apply: get,
};

pub(super) const SET: StateRule = StateRule {
    rule: SplitRule::SetRows,
    says: "rows in the destination's state, which is not axis 1, and mirrored indices → the destination's state",
    apply: set,
};

fn whole_rows(call: &Call<'_>) -> InferredState {
    match call.seen(0) {
        SplitState::Split(s) if s.axis == 0 => call.refused(FaultKind::Rows, "the rows are split"),
        state => Ok(state.clone()),
    }
}

fn rope(call: &Call<'_>) -> InferredState {
    match call.whole_from(1) {
        true => Ok(call.seen(0).clone()),
        false => call.refused(FaultKind::States, "positions or factors are not mirrored"),
    }
}

fn get(call: &Call<'_>) -> InferredState {
    match (call.seen(0), call.seen(1).is_whole()) {
        (SplitState::Mirrored, true) => Ok(SplitState::Mirrored),
        (SplitState::Split(s), true) if s.axis == 0 => Ok(s.clone().into()),
        _ => call.refused(
            FaultKind::States,
            "expected a source that is mirrored or split along axis 0, and mirrored indices",
        ),
    }
}

fn set(call: &Call<'_>) -> InferredState {
    let to = call.seen(2);
    if !call.seen(1).is_whole() || to.axis() == Some(1) || call.seen(0).axis() != to.axis() {
        return call.refused(
            FaultKind::Write,
            "expected rows in the destination's state, no split along axis 1, and mirrored indices",
        );
    }
    let parts = |s: &SplitState| s.split().map(super::Split::per_device);
    if parts(call.seen(0)) != parts(to) {
        return call.refused(
            FaultKind::Sizes,
            "the rows have other parts than the destination",
        );
    }
    Ok(to.clone())
}
