use super::{Call, InferredState, StateRule};
use crate::meta::fault::FaultKind;
use crate::meta::states::SplitState;
use crate::op::SplitRule;

pub(super) const WHOLE: StateRule = StateRule {
    rule: SplitRule::Mirrored,
    says: "all sources mirrored → mirrored",
    apply: whole,
};

fn whole(call: &Call<'_>) -> InferredState {
    match call.whole_from(0) {
        true => Ok(SplitState::Mirrored),
        false => call.refused(FaultKind::Whole, "expected mirrored sources"),
    }
}
