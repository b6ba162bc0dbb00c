//! The rules of the proof: true equations between terms. Each looks at one term and names terms that are equal to it.
//!
//! Adding a rule is one function with its equation and one line in [`RULES`]; the tests then ask for its row in the book and
//! for its witness, a graph and programs that are not proved without it (`tests/data/proof/NAME.{model,programs}.tpir`). A rule that is not true would let wrong
//! programs pass; a rule that is missing only makes right ones fail.

mod copies;
mod disjoint;
pub(super) mod parts;
pub(super) mod sums;
mod views;
pub(super) mod zeros;

use egg::Id;

pub(super) use sums::plus;

use super::term::Term;
use super::terms::Terms;

/// An equation of the proof.
pub(super) struct Rule {
    /// Its name.
    pub(super) name: &'static str,
    /// What it says.
    pub(super) equation: &'static str,
    /// The terms equal to this one of that class, as classes.
    pub(super) apply: fn(&mut Terms, &Term, Id) -> Vec<Id>,
}

/// All rules, in the order in which they are tried.
pub(super) const RULES: &[Rule] = &[
    views::RESHAPE,
    views::SLICE,
    views::VIEW_OF_VIEW,
    views::VIEW_THROUGH_SLICE,
    views::SEGMENTS,
    views::VIEW_OF_CONCAT,
    views::VIEW_BESIDE_SET_SLICE,
    zeros::SUM_OVER_NOTHING,
    zeros::PADDED_CONTRACTION,
    zeros::CONCAT_OF_ONE,
    zeros::NOTHING_IS_SET,
    disjoint::WINDOW_OF_MASKED,
    disjoint::MASKED_ELEMENTS,
    disjoint::MASKED_BIAS,
    disjoint::MASKED_VIEW,
    views::CONCAT_OF_PICKS,
    copies::VIEW_OF_COPIES,
    copies::CONCAT_OF_COPIES,
    parts::PARTS,
    parts::NORM_IN_TWO_STEPS,
    sums::SUM_OF_TWO,
    sums::BIAS_OF_EXPERTS,
    sums::FLATTEN,
    sums::CONTRACTION,
    sums::WINDOWS,
    sums::LINEAR,
    sums::LINEAR_IN_ZERO,
];
