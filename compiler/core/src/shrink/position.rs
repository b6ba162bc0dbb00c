use tpc_ir::Dim;
use tpc_ir::factor::Var;

use super::joint::Joint;

/// Computes the new position of the boundary at `at` after the axis's factors are resized. Returns `None` if the
/// boundary is within a factor.
pub(super) fn position(
    joint: &Joint,
    new: &dyn Fn(Var) -> Option<Dim>,
    v: Var,
    at: u64,
) -> Option<u64> {
    let space = &joint.factors.space;
    let sized = |v: Var| space.resize(v, new)?.as_const();
    if at == 0 {
        return Some(0);
    }
    if space.size(v).as_const() == Some(at) {
        return sized(v);
    }
    let factors = space.factors(&[v]);
    let (&major, rest) = factors.split_first()?;
    let minor = |f: &dyn Fn(Var) -> Option<u64>| {
        let mut rest = rest.iter();
        rest.try_fold(1_u64, |n, &v| n.checked_mul(f(v)?))
    };
    let old = minor(&|v| space.size(v).as_const())?;
    if !at.is_multiple_of(old) {
        return None;
    }
    let times = minor(&sized)?;
    let at = at / old;
    if space.size(major).as_const() == Some(at) {
        return sized(major)?.checked_mul(times);
    }
    let (mut before, mut made) = (0, 0);
    for segment in space.segments(major)? {
        let size = space.size(segment).as_const()?;
        if at < before + size {
            let within = position(joint, new, segment, at - before)?;
            return (made + within).checked_mul(times);
        }
        before += size;
        made += sized(segment)?;
    }
    None
}
