use super::{Call, InferredState, StateRule, reject};
use crate::meta::fault::FaultKind;
use crate::meta::states::{Split, SplitState};
use crate::op::SplitRule;

pub(super) const FLASH: StateRule = StateRule {
    rule: SplitRule::FlashAttention,
    says: "queries on axis 2, keys and values both on axis 2 or both mirrored, a mirrored mask, sinks on axis 0 → axis 1; or \
           all mirrored",
    apply: flash,
};

pub(super) const CONVOLUTION: StateRule = StateRule {
    rule: SplitRule::Convolution,
    says: "both on axis 1 → axis 0; both on axis 0 → axis 1; or all mirrored",
    apply: convolution,
};

pub(super) const DELTA_NET: StateRule = StateRule {
    rule: SplitRule::DeltaNet,
    says: "queries, keys, values, gates and rates on axis 1, the state on axis 0, 1 or 2 → axis 0; or all mirrored",
    apply: delta_net,
};

fn flash(call: &Call<'_>) -> InferredState {
    if call.whole_from(0) {
        return Ok(SplitState::Mirrored);
    }
    let takes = "expected queries split by heads, keys and values both by heads or both mirrored, and a mirrored mask";
    let (q, k, v) = (call.seen(0), call.seen(1), call.seen(2));
    let sinks = call.src.get(4).copied().flatten();
    let SplitState::Split(heads) = q else {
        return call.refused(FaultKind::Attention, takes);
    };
    let kv_matches = match (k.axis(), v.axis()) {
        (Some(2), Some(2)) => true,
        (None, None) => k.is_whole() && v.is_whole(),
        _ => false,
    };
    let sinks_match = sinks.is_none_or(|s| s.state.axis() == Some(0));
    if heads.axis != 2 || !kv_matches || !call.seen(3).is_whole() || !sinks_match {
        return call.refused(FaultKind::Attention, takes);
    }
    let n_kv = call.source(1)?.ne[2];
    let local = heads.per_device();
    let local_kv = k.split().map_or(vec![n_kv; local.len()], Split::per_device);
    for (&q, &kv) in local.iter().zip(&local_kv) {
        let whole = if kv == 0 {
            q == 0
        } else {
            q.is_multiple_of(kv)
        };
        if !whole {
            return reject(
                FaultKind::Heads,
                format!("a device has {q} query heads, not a multiple of its {kv} key heads"),
            );
        }
    }
    if sinks.is_some_and(|s| s.state.split().map(Split::per_device) != Some(local)) {
        return call.refused(
            FaultKind::Sizes,
            "the sinks have other parts than the queries",
        );
    }
    Ok(heads.along(1).into())
}

fn convolution(call: &Call<'_>) -> InferredState {
    match (call.seen(0).split(), call.seen(1).split()) {
        (None, None) => Ok(SplitState::Mirrored),
        (Some(s), Some(t)) if s == t && s.axis < 2 => Ok(s.along(1 - s.axis).into()),
        _ => call.refused(
            FaultKind::Recurrence,
            "expected both sources with the same channels",
        ),
    }
}

fn delta_net(call: &Call<'_>) -> InferredState {
    if call.whole_from(0) {
        return Ok(SplitState::Mirrored);
    }
    let takes = "expected queries, keys, values, gates and rates by heads, and a state by heads";
    let heads = (0..5).all(|i| call.seen(i).axis() == Some(1));
    if !heads || !matches!(call.seen(5).axis(), Some(0..=2)) {
        return call.refused(FaultKind::Recurrence, takes);
    }
    let v = call.source(2)?;
    let Some(s) = v.state.seen().split() else {
        return call.refused(FaultKind::Recurrence, takes);
    };
    match s.shared(0, call.ne[0]) {
        Some(s) => Ok(s.into()),
        None => reject(
            FaultKind::Sizes,
            format!("{s} does not divide the rows of the result"),
        ),
    }
}
