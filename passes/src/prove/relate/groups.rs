//! Grouped indices: query heads with KV heads, channels with groups of a scan.

use std::rc::Rc;

use tpc_ir::op::{Expr, head_groups};
use tpc_ir::{Dim, Interval, Op};

use super::{Axes, Part, is_axis, mentions};
use crate::prove::index_set::NotExpressible;

/// Two axes, each as (operand, axis). Several indices of the first use one index of the second.
pub(super) type AxisPair = ((usize, usize), (usize, usize));

/// Returns the grouped axes that are parts. Checks that their indices correspond on the device as in the whole.
pub(super) fn meeting(
    op: &Op,
    parts: &[Rc<Part>],
    axes: &[Axes],
) -> Result<Vec<AxisPair>, NotExpressible> {
    let mut out = Vec::new();
    for g in op.head_groupings() {
        let kv = g.kv[0];
        if [g.query, kv]
            .iter()
            .any(|&(o, a)| parts[o].copies[a].is_some())
        {
            return Err(NotExpressible);
        }
        if axes[g.query.0][g.query.1].is_some() || axes[kv.0][kv.1].is_some() {
            check_meeting(axes, parts, (g.query, kv))?;
            out.push((g.query, kv));
        }
    }
    Ok(out)
}

pub(super) fn replace_equation(grouped: &[AxisPair], a: &Expr, b: &Expr) -> bool {
    grouped.iter().any(|&(query, kv)| {
        is_axis(a, query) && mentions(b, kv) || is_axis(b, query) && mentions(a, kv)
    })
}

fn check_meeting(
    axes: &[Axes],
    parts: &[Rc<Part>],
    (query, kv): AxisPair,
) -> Result<(), NotExpressible> {
    let size = |(o, a): (usize, usize)| parts[o].ty.dims[a].as_const().ok_or(NotExpressible);
    let (m, f) = (size(query)?, size(kv)?);
    let held = |(o, a): (usize, usize), n: u64| match &axes[o][a] {
        Some(p) => p.refine(&Dim::ONE, &n.into()),
        None => Ok(vec![Interval { start: 0, len: n }]),
    };
    let (held_query, held_kv) = (held(query, m)?, held(kv, f)?);
    let group = m.checked_div(f).ok_or(NotExpressible)?;
    if group == 0 || group * f != m {
        return Err(NotExpressible);
    }
    let groups = head_groups(&held_query, &held_kv, group).ok_or(NotExpressible)?;
    let all: u64 = held_kv.iter().map(|r| r.len).sum();
    match groups.as_slice() {
        [] => Ok(()),
        [one] if one.kv.start == 0 && one.kv.len == all => Ok(()),
        _ => Err(NotExpressible),
    }
}
