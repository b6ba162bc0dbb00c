//! Silent faults: accepted ops with a wrong result.

use super::fault::FaultKind;
use super::rules::Call;
use super::states::Split;
use crate::op::{Family, GgmlOp, OpKind};

pub(super) fn faults(t: &Call<'_>) -> Vec<(FaultKind, String)> {
    let state = |k: usize| t.seen(k).split();
    let mut out = Vec::new();
    match t.op {
        GgmlOp::FlashAttnExt(p) => {
            let Some(q) = state(0) else { return out };
            if p.max_bias > 0.0 {
                out.push((
                    FaultKind::Slopes,
                    format!(
                        "each device computes ALiBi slopes as if its heads ({q}) were the first"
                    ),
                ));
            }
            let n_kv = t.src.get(1).copied().flatten().map_or(1, |k| k.ne[2]);
            if state(1).is_none() && n_kv > 1 {
                out.push((
                    FaultKind::MirroredKeys,
                    format!(
                        "each device pairs its own query heads ({q}) with all {n_kv} key heads"
                    ),
                ));
            }
        }
        GgmlOp::View => out.extend(state(0).and_then(|s| cut(t, s))),
        op if is_rotation(op) && state(0).is_some_and(|s| s.axis == 0) => out.push((
            FaultKind::Order,
            "each device rotates its part of a row like a whole row".to_owned(),
        )),
        GgmlOp::Repeat => out.extend(state(0).and_then(|s| repeated(t, s))),
        op if op.family() == Family::Gated && t.src.iter().flatten().count() == 1 => {
            out.extend(state(0).and_then(halves));
        }
        _ => {}
    }
    out
}

fn is_rotation(op: &GgmlOp) -> bool {
    op.is(OpKind::Rope) || op.is(OpKind::RopeBack)
}

/// Returns the fault of a view with a part of the split axis that does not begin and end at segments.
fn cut(t: &Call<'_>, s: &Split) -> Option<(FaultKind, String)> {
    let from = t.src.first().copied().flatten()?;
    let elements = |ne: [u64; 4]| ne.iter().product::<u64>();
    if elements(t.ne) == elements(from.ne) {
        return None;
    }
    let stride = from.nb[s.axis].max(1);
    let above = from.nb.get(s.axis + 1).copied();
    let start = t.offset / stride % from.ne[s.axis].max(1);
    // The outermost view axis along the split axis: `n` periods of `period` indices.
    let along = (0..4).filter(|&axis| {
        let (n, nb) = (t.ne[axis], t.nb[axis]);
        n > 1 && nb >= stride && above.is_none_or(|above| nb < above)
    });
    let outermost = along.max_by_key(|&axis| t.nb[axis]);
    let (period, n) = outermost.map_or((1, 1), |axis| (t.nb[axis] / stride, t.ne[axis]));
    let from = start - start % period;
    let to = from + n * period;
    let bounds = s.bounds();
    let sizes = || s.segments.iter().flat_map(|g| &g.sizes);
    let whole = bounds.contains(&from) && bounds.contains(&to);
    if whole && sizes().all(|n| n.is_multiple_of(period)) {
        return None;
    }
    let why = format!("the view takes {from} to {to} of {s}, a different part on every device");
    Some((FaultKind::Order, why))
}

fn repeated(t: &Call<'_>, s: &Split) -> Option<(FaultKind, String)> {
    let from = t.src.first().copied().flatten()?;
    (t.ne[s.axis] != from.ne[s.axis]).then(|| {
        (
            FaultKind::Order,
            format!("each device repeats only its own part of {s}"),
        )
    })
}

fn halves(s: &Split) -> Option<(FaultKind, String)> {
    let fused = matches!(s.segments.as_slice(), [a, b] if a == b);
    (s.axis == 0 && !fused).then(|| {
        (
            FaultKind::Order,
            format!("each device uses its part of {s} as both halves of the row"),
        )
    })
}
