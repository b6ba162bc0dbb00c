//! Indices that meet in groups: query heads and their KV heads, channels and the groups of a scan.

use tpc_ir::op::{Expr, pieces};
use tpc_ir::{Dim, Interval, Op};

use super::{Axes, Part, is_axis, mentions};
use crate::prove::index_set::NotExpressible;

/// Two operands' axes, each as (operand, axis), of which several indices of the first meet one of the second.
pub(super) type Meeting = ((usize, usize), (usize, usize));

/// The axes that meet in groups and are parts. Checks that their indices meet on the device as they do in the whole.
pub(super) fn meeting(
    op: &Op,
    parts: &[Part],
    axes: &[Axes],
) -> Result<Vec<Meeting>, NotExpressible> {
    let mut out = Vec::new();
    for g in op.groupings() {
        let few = g.few[0];
        if [g.many, few]
            .iter()
            .any(|&(o, a)| parts[o].copies[a].is_some())
        {
            return Err(NotExpressible);
        }
        if axes[g.many.0][g.many.1].is_some() || axes[few.0][few.1].is_some() {
            check_meeting(axes, parts, (g.many, few))?;
            out.push((g.many, few));
        }
    }
    Ok(out)
}

/// Whether the condition on groups stands in place of the equation of `a` and `b`.
pub(super) fn replace_equation(grouped: &[Meeting], a: &Expr, b: &Expr) -> bool {
    grouped.iter().any(|&(many, few)| {
        is_axis(a, many) && mentions(b, few) || is_axis(b, many) && mentions(a, few)
    })
}

/// Checks that the indices of two axes meet on the device as they do in the whole.
fn check_meeting(
    axes: &[Axes],
    parts: &[Part],
    (many, few): Meeting,
) -> Result<(), NotExpressible> {
    let size = |(o, a): (usize, usize)| parts[o].ty.dims[a].as_const().ok_or(NotExpressible);
    let (m, f) = (size(many)?, size(few)?);
    let held = |(o, a): (usize, usize), n: u64| match &axes[o][a] {
        Some(p) => p.refined(&Dim::ONE, &n.into()),
        None => Ok(vec![Interval { start: 0, len: n }]),
    };
    let (held_many, held_few) = (held(many, m)?, held(few, f)?);
    let group = m.checked_div(f).ok_or(NotExpressible)?;
    if group == 0 || group * f != m {
        return Err(NotExpressible);
    }
    let groups = pieces(&held_many, &held_few, group).ok_or(NotExpressible)?;
    let all: u64 = held_few.iter().map(|r| r.len).sum();
    match groups.as_slice() {
        [] => Ok(()),
        [one] if one.few.start == 0 && one.few.len == all => Ok(()),
        _ => Err(NotExpressible),
    }
}
