//! Ops that keep the elements but change sizes or strides.

use tpc_ir::{DType, RANK};

use super::{Call, InferredState, Rejection, Source, StateRule, reject};
use crate::capture::packed;
use crate::meta::fault::FaultKind;
use crate::meta::states::{Split, SplitState};
use crate::op::SplitRule;

pub(super) const RESHAPE: StateRule = StateRule {
    rule: SplitRule::Reshape,
    says: "a split axis, with all below, must be a product of leading sizes of the result too; all segments must divide",
    apply: reshape,
};

pub(super) const VIEW: StateRule = StateRule {
    rule: SplitRule::View,
    says: "without gaps as RESHAPE; with the strides of its source → the same axis; else, of a source that is not permuted, \
           the axis below the stride that stood above the split one; of a partial sum → partial",
    apply: view,
};

pub(super) const COPY: StateRule = StateRule {
    rule: SplitRule::Copy,
    says: "as RESHAPE, and the result must have the destination's state",
    apply: copy,
};

/// Converts a split of sizes `ne` to sizes `to`, which have the same number of elements.
fn reshape_split(s: &Split, ne: [u64; RANK], to: [u64; RANK]) -> InferredState {
    let product: u64 = ne[..=s.axis].iter().product();
    let below: u64 = ne[..s.axis].iter().product();
    let mut inner = 1;
    for (axis, &n) in to.iter().enumerate() {
        if inner * n == product {
            return match s.scaled(below, inner.max(1)) {
                Some(s) => Ok(s.along(axis).into()),
                None => reject(
                    FaultKind::Shape,
                    format!("shape mismatch: {s} of {ne:?} does not divide {to:?}"),
                ),
            };
        }
        inner *= n;
    }
    reject(
        FaultKind::Shape,
        format!("shape mismatch: {s} of {ne:?} is inside an axis of {to:?}"),
    )
}

fn reshape(call: &Call<'_>) -> InferredState {
    let a = call.source(0)?;
    match a.state.seen() {
        SplitState::Split(s) if a.ne != call.ne => reshape_split(s, a.ne, call.ne),
        state => Ok(state.clone()),
    }
}

fn copy(call: &Call<'_>) -> InferredState {
    let made = reshape(call)?;
    let parts = |s: &SplitState| s.split().map(|s| (s.axis, s.per_device()));
    if parts(&made) == parts(call.seen(1)) {
        return Ok(call.seen(1).clone());
    }
    call.refused(
        FaultKind::Write,
        "expected a source in the destination's state",
    )
}

fn is_packed(dtype: DType, ne: [u64; RANK], nb: [u64; RANK]) -> bool {
    packed(dtype, ne) == nb
}

fn view(call: &Call<'_>) -> InferredState {
    let a = call.source(0)?;
    // A view of a partial sum, such as of one expert, is a partial sum: ggml adds the views before the reduction.
    let SplitState::Split(s) = a.state else {
        return Ok(a.state.clone());
    };
    let elements = |ne: [u64; RANK]| ne.iter().product::<u64>();
    let tight = is_packed(call.dtype, call.ne, call.nb) && is_packed(a.dtype, a.ne, a.nb);
    if tight && elements(call.ne) == elements(a.ne) {
        return reshape_split(s, a.ne, call.ne);
    }
    if call.nb == a.nb {
        return match call.ne[s.axis] == a.ne[s.axis] {
            true => Ok(s.clone().into()),
            false => part(call, s, s.axis),
        };
    }
    strided(call, s, a)
}

/// Returns the split of a view with a part of the axis, or with the axis in other units. Proportions stay the same.
fn part(call: &Call<'_>, s: &Split, axis: usize) -> InferredState {
    match s.shared(axis, call.ne[axis]) {
        Some(s) => Ok(s.into()),
        None => reject(
            FaultKind::Sizes,
            format!("the proportions of {s} do not divide {}", call.ne[axis]),
        ),
    }
}

fn strided(call: &Call<'_>, s: &Split, a: Source<'_>) -> Result<SplitState, Rejection> {
    if !a.nb.is_sorted() {
        return call.refused(
            FaultKind::Shape,
            "the view of a permuted source has other strides",
        );
    }
    let axis = if s.axis + 1 == RANK {
        (call.nb[s.axis] == a.nb[s.axis]).then_some(s.axis)
    } else {
        (0..RANK - 1).find(|&i| call.nb[i + 1] == a.nb[s.axis + 1])
    };
    match axis {
        Some(axis) => part(call, s, axis),
        None => call.refused(
            FaultKind::Shape,
            "the view lacks the stride above the split axis",
        ),
    }
}
