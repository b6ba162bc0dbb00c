//! The rules of the proof: equations between terms. A rule takes one term and gives equal terms.
//!
//! To add a rule, write a constant with its equation and list it in [`RULES`]. Tests then require a row in the book and
//! a witness: a graph and programs that are not proved without the rule
//! (`tests/data/proof/NAME.{model,programs}.tpir`). A false rule would accept wrong programs; a missing rule only
//! rejects correct ones.

pub(super) mod cells;
mod copies;
pub(super) mod linear;
mod masks;
mod parts;
mod sums;
mod views;
mod zeros;

use super::term_graph::ProofRule;

pub(super) const RULES: &[ProofRule] = &[
    views::RESHAPE,
    views::SLICE,
    views::VIEW_OF_VIEW,
    views::VIEW_THROUGH_SLICE,
    views::SEGMENTS,
    views::VIEW_OF_CONCAT,
    views::SLICE_OF_CONCAT,
    views::VIEW_BESIDE_SET_SLICE,
    zeros::ZERO_RESULT,
    zeros::PADDED_CONTRACTION,
    zeros::CONCAT_OF_ONE,
    zeros::EMPTY_SLICE_SET,
    masks::WINDOW_OF_MASKED,
    masks::MASKED_ELEMENTS,
    masks::MASKED_BIAS,
    masks::MASKED_VIEW,
    views::CONCAT_OF_VIEWS,
    cells::ATTENTION_IN_PARTS,
    cells::OWNED_WRITE,
    cells::SLICE_OF_PARTS,
    cells::PERMUTED_UNITS,
    copies::VIEW_OF_COPIES,
    copies::CONCAT_OF_COPIES,
    copies::OP_OF_COPIES,
    parts::PARTS,
    parts::NORM_IN_TWO_STEPS,
    sums::SUM_OF_TWO,
    sums::BIAS_OF_EXPERTS,
    sums::FLATTEN,
    sums::CONTRACTION,
    sums::MASKS,
    linear::LINEAR,
    linear::LINEAR_IN_ZERO,
];
