//! The mask of a sparse attention whose cells were picked before.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::resize::size_independent;
use super::rule::{Role, Rule, opd, res};
use super::types::{InferredTypes, TypeError, check_equal, check_integer, check_real};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::{RANK, TensorType};

/// Keeps the elements of a mask in picked cells, and sets the others to −∞.
///
/// Operands, the last three optional:
///
/// - `mask: [cells, …]`; axes 1 to 3 are those of `picks`, or 1
/// - `picks: [n, …]`: indices of picks; the op skips a pick that is out of range
/// - `scores: [picks, …]`: the op skips a pick whose score is −∞ or NaN
/// - `members: [n, picks]`: the cells of each pick. Without it, a pick is a cell
/// - `extra: [n, …]`: cells that are kept in each row without a pick
///
/// The axes 1 to 3 of `picks`, `scores` and `extra` are equal. The result is `[cells, …]` with these axes, of the mask's
/// type. The op skips cells that are out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopKMask {
    /// True if `scores` is an operand.
    pub has_scores: bool,
    /// True if `members` is an operand.
    pub has_members: bool,
    /// True if `extra` is an operand.
    pub has_extra: bool,
}

/// The operands, by role.
#[derive(Clone, Copy, Debug)]
pub struct TopKMaskOperands<T> {
    /// The mask.
    pub mask: T,
    /// The picks.
    pub picks: T,
    /// The scores of all picks.
    pub scores: Option<T>,
    /// The cells of all picks.
    pub members: Option<T>,
    /// The cells without a pick.
    pub extra: Option<T>,
}

/// The optional operands in text, in order.
const OPTIONAL: [&str; 3] = ["scores", "members", "extra"];

impl TopKMask {
    const fn has(self) -> [bool; 3] {
        [self.has_scores, self.has_members, self.has_extra]
    }

    /// Returns the operands by role, or `None` if their number is wrong.
    pub fn roles<T: Copy>(self, operands: &[T]) -> Option<TopKMaskOperands<T>> {
        let mut rest = operands.iter().copied();
        let (mask, picks) = (rest.next()?, rest.next()?);
        let mut next = |is_present: bool| match is_present {
            true => rest.next().map(Some),
            false => Some(None),
        };
        let out = TopKMaskOperands {
            mask,
            picks,
            scores: next(self.has_scores)?,
            members: next(self.has_members)?,
            extra: next(self.has_extra)?,
        };
        rest.next().is_none().then_some(out)
    }

    fn positions(self) -> Option<TopKMaskOperands<usize>> {
        let n = 2 + self.has().into_iter().filter(|&is| is).count();
        self.roles(&[0, 1, 2, 3, 4][..n])
    }
}

impl OpDef for TopKMask {
    const NAMES: &'static [&'static str] = &["top_k_mask"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        let present = OPTIONAL.into_iter().zip(self.has());
        let names: Vec<&str> = present
            .filter(|(_, is)| *is)
            .map(|(name, _)| name)
            .collect();
        vec![("optional", Attr::Str(names.join(", ")))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let names = require("optional", attrs.str("optional")?)?;
        let [has_scores, has_members, has_extra] =
            OPTIONAL.map(|name| names.split(", ").any(|n| n == name));
        let op = TopKMask {
            has_scores,
            has_members,
            has_extra,
        };
        match op.attrs() == vec![("optional", Attr::Str(names))] {
            true => Ok(op),
            false => Err(AttrError::Kind {
                name: "optional",
                expected: "some of `scores, members, extra`, in this order",
            }),
        }
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let arity = TypeError::Arity {
            expected: "2, and one per optional operand",
            found: operands.len(),
        };
        let of = self.roles(operands).ok_or(arity)?;
        check_real("mask", of.mask)?;
        check_integer("picks", of.picks)?;
        let rows = |what, t: &TensorType| {
            (1..RANK).try_for_each(|i| check_equal(what, &of.picks.dims[i], &t.dims[i]))
        };
        for i in (1..RANK).filter(|&i| !of.mask.dims[i].is_one()) {
            check_equal(
                "rows of mask and picks",
                &of.mask.dims[i],
                &of.picks.dims[i],
            )?;
        }
        if let Some(scores) = of.scores {
            check_real("scores", scores)?;
            rows("rows of picks and scores", scores)?;
        }
        if let Some(members) = of.members {
            check_integer("members", members)?;
            for i in 2..RANK {
                check_equal("axes 2 and 3 of members", &Dim::ONE, &members.dims[i])?;
            }
            if let Some(scores) = of.scores {
                check_equal(
                    "picks of scores and members",
                    &scores.dims[0],
                    &members.dims[1],
                )?;
            }
        }
        if let Some(extra) = of.extra {
            check_integer("extra", extra)?;
            rows("rows of picks and extra", extra)?;
        }
        Ok(of
            .picks
            .with_dim(0, of.mask.dims[0].clone())
            .with_dtype(of.mask.dtype)
            .into())
    }

    /// Rows are independent. Cells and picks stay whole, because picks are indices.
    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque().role(Role::Whole, res(0));
        let Some(at) = self.positions() else {
            return rule;
        };
        for i in 1..RANK {
            for operand in [Some(at.picks), at.scores, at.extra].into_iter().flatten() {
                rule = rule.eq(opd(operand, i), res(i));
            }
            if operands.get(at.mask).is_some_and(|t| !t.dims[i].is_one()) {
                rule = rule.eq(opd(at.mask, i), res(i));
            }
        }
        for operand in 0..operands.len() {
            rule = rule.role(Role::Whole, opd(operand, 0));
        }
        if let Some(members) = at.members {
            rule = rule.role(Role::Whole, opd(members, 1));
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
