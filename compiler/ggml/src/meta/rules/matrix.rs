//! Matrix products: [k, m] · [k, n] → [m, n].

use super::{Call, InferredState, Rejection, Source, StateRule, reject};
use crate::meta::fault::FaultKind;
use crate::meta::states::{Split, SplitState};
use crate::op::SplitRule;

const TAKES: &str = "expected rows of the weight, rows of the activations, matching parts of the contracted axis, or \
                     matching batches";

pub(super) const PRODUCT: StateRule = StateRule {
    rule: SplitRule::Product,
    says: "mirrored · mirrored → mirrored; axis 1 · mirrored → axis 0; mirrored · axis 1, 2 or 3 → that axis; axis 0 · \
           axis 0 of equal parts → partial; axis 2 or 3 on both → that axis; axis 2 or 3 · mirrored → that axis",
    apply: product,
};

pub(super) const EXPERTS: StateRule = StateRule {
    rule: SplitRule::ExpertProduct,
    says: "as MUL_MAT, with mirrored indices of experts",
    apply: experts,
};

fn experts(call: &Call<'_>) -> InferredState {
    if call.seen(2).is_whole() {
        product(call)
    } else {
        call.refused(FaultKind::States, "the indices of experts are not mirrored")
    }
}

fn product(call: &Call<'_>) -> InferredState {
    let (a, b) = (call.source(0)?, call.source(1)?);
    match (a.state.seen().split(), b.state.seen().split()) {
        (None, None) => Ok(SplitState::Mirrored),
        (Some(s), None) if s.axis == 1 => Ok(s.along(0).into()),
        (Some(s), None) if s.axis > 1 => batch(call, s, a),
        (None, Some(s)) if s.axis > 0 => Ok(s.clone().into()),
        (Some(s), Some(t)) if s.axis == 0 && t.axis == 0 => {
            match s.per_device() == t.per_device() {
                true => Ok(SplitState::Partial),
                false => reject(
                    FaultKind::Sizes,
                    format!("{s} and {t} are different parts of the contracted axis"),
                ),
            }
        }
        (Some(s), Some(t)) if s.axis == t.axis && s.axis > 1 => {
            // Several batches of the second source share a batch of the first.
            let shared = s.shared(s.axis, t.len());
            if shared.is_some_and(|shared| shared.per_device() == t.per_device()) {
                Ok(t.clone().into())
            } else {
                reject(
                    FaultKind::Sizes,
                    format!("{s} and {t} are different batches"),
                )
            }
        }
        _ => call.refused(FaultKind::Product, TAKES),
    }
}

/// Returns the split of the result along a batch axis. The result may have more batches than the first source.
fn batch(call: &Call<'_>, s: &Split, a: Source<'_>) -> Result<SplitState, Rejection> {
    match s.scaled(call.ne[s.axis], a.ne[s.axis].max(1)) {
        Some(s) => Ok(s.into()),
        None => reject(
            FaultKind::Sizes,
            format!("{s} does not divide the batches of the result"),
        ),
    }
}
