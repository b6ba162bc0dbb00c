//! Converts index sets to patterns per axis, and back.

use tpc_ir::{Dim, RANK};

use super::composition::{insert, split_at};
use super::pattern::Pattern;
use super::{IndexSet, NotExpressible};

/// Returns the factor among `sizes` (minor first) that a pattern selects from, and the pattern within the factor.
pub(in crate::prove) fn locate(
    pattern: &Pattern,
    sizes: &[Dim],
) -> Result<(usize, Pattern), NotExpressible> {
    let period = pattern.period()?;
    let mut below = Dim::ONE;
    for (i, size) in sizes.iter().enumerate() {
        let above = below.checked_mul(size).ok_or(NotExpressible)?;
        if !size.is_one()
            && let Some(unit) = pattern.unit.checked_div(&below)
            && above.checked_div(&period).is_some()
        {
            return Ok((
                i,
                Pattern {
                    unit,
                    ..pattern.clone()
                },
            ));
        }
        below = above;
    }
    Err(NotExpressible)
}

pub(in crate::prove) fn per_axis(
    indices: &[Pattern],
    dims: &[Dim; RANK],
) -> Result<[Option<Pattern>; RANK], NotExpressible> {
    let mut out: [Option<Pattern>; RANK] = [None, None, None, None];
    let mut open: Vec<Pattern> = indices.to_vec();
    while let Some(p) = open.pop() {
        let Ok((axis, own)) = locate(&p, dims) else {
            // The pattern spans several axes; it may be a product of patterns along each axis.
            let mut below = Dim::ONE;
            let mut cut = None;
            for size in &dims[..RANK - 1] {
                below = below.checked_mul(size).ok_or(NotExpressible)?;
                if let Ok((Some(minor), Some(major))) = split_at(&p, &below) {
                    cut = Some([minor, major]);
                    break;
                }
            }
            open.extend(cut.ok_or(NotExpressible)?);
            continue;
        };
        if out[axis].replace(own).is_some() {
            return Err(NotExpressible);
        }
    }
    Ok(out)
}

pub(in crate::prove) fn from_axes(
    axes: &[Option<Pattern>; RANK],
    dims: &[Dim; RANK],
) -> Result<IndexSet, NotExpressible> {
    let mut out = IndexSet::new();
    let mut below = Dim::ONE;
    for (pattern, size) in axes.iter().zip(dims) {
        if let Some(p) = pattern {
            insert(&mut out, p.scaled(&below)?)?;
        }
        below = below.checked_mul(size).ok_or(NotExpressible)?;
    }
    Ok(out)
}

pub(in crate::prove) fn selected_dims(
    axes: &[Option<Pattern>; RANK],
    dims: &[Dim; RANK],
) -> Result<[Dim; RANK], NotExpressible> {
    let mut out = dims.clone();
    for (d, pattern) in out.iter_mut().zip(axes) {
        if let Some(p) = pattern {
            *d = p.count(d)?;
        }
    }
    Ok(out)
}
