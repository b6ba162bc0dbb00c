//! The use of the words of `op_params`. Every word of a record is decoded, kept unchanged, known to be without effect,
//! or makes the record invalid.

/// The use of a word of `op_params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordUse {
    /// It is decoded into the op's parameters, or kept with an op without a rule.
    Read,
    /// The word does not affect the op's result, for this reason.
    Ignored(&'static str),
    /// ggml's op does not have this word. A record in which it is not 0 has an unknown meaning.
    Unknown,
}

use WordUse::{Ignored, Read, Unknown};

/// The use of every word of an op's `op_params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamWords {
    /// The uses of the first words.
    first: &'static [WordUse],
    /// The use of all later words.
    rest: WordUse,
}

impl ParamWords {
    /// Returns the use of these words and no others.
    const fn list(first: &'static [WordUse]) -> ParamWords {
        ParamWords {
            first,
            rest: Unknown,
        }
    }

    const fn all(rest: WordUse) -> ParamWords {
        ParamWords { first: &[], rest }
    }

    /// Returns the use of the word at this position.
    pub fn at(self, index: usize) -> WordUse {
        self.first.get(index).copied().unwrap_or(self.rest)
    }
}

const KIND: WordUse = Ignored("the name of the op says it");
const IN_PLACE: WordUse = Ignored("whether the result is a view says it");
const HINT: WordUse = Ignored("a hint to the back end: the precision or the method of its sums");
const BOUND: WordUse = Ignored("a bound of the visible cells, which the mask says");
const LEGACY: WordUse = Ignored("a field that ggml writes and does not read");
/// A field of another kind of the op.
pub(super) const OTHER_KIND: WordUse = Ignored("a field of another kind of the op");

/// No parameters.
pub(super) const NO_WORDS: ParamWords = ParamWords::all(Unknown);
/// All words are kept with an op without a rule.
pub(super) const KEPT: ParamWords = ParamWords::all(Read);
pub(super) const LEAF: ParamWords = ParamWords::all(Ignored("a leaf computes nothing"));
pub(super) const VIEW: ParamWords =
    ParamWords::all(Ignored("strides and offset of the view say it"));
/// A kind of `UNARY`, whose first parameter repeats the name.
pub(super) const UNARY: ParamWords = ParamWords::list(&[KIND]);
pub(super) const XIELU: ParamWords = ParamWords::list(&[KIND, Read, Read, Read, Read]);
/// A kind of `GLU`, whose first parameter repeats the name, and whose second swaps the operands.
pub(super) const GLU: ParamWords = ParamWords::list(&[KIND, Read, OTHER_KIND, OTHER_KIND]);
pub(super) const SWIGLU_OAI: ParamWords = ParamWords::list(&[KIND, Read, Read, Read]);
pub(super) const SWIGLU_CLAMP: ParamWords = ParamWords::list(&[KIND, Read, OTHER_KIND, Read]);
pub(super) const PRODUCT: ParamWords = ParamWords::list(&[HINT; 4]);
pub(super) const FLASH_ATTENTION: ParamWords = ParamWords::list(&[Read, Read, Read, HINT, BOUND]);
pub(super) const SET_VIEW: ParamWords = ParamWords::list(&[Read, Read, Read, Read, IN_PLACE]);
pub(super) const DIAG_MASK: ParamWords = ParamWords::list(&[Read, IN_PLACE]);
pub(super) const ROPE: ParamWords = ParamWords::list(&[
    LEGACY, Read, Read, LEGACY, Read, Read, Read, Read, Read, Read, Read, Read, Read, Read, Read,
    Read,
]);
/// The words of a rotation by sections, which other kinds of rotation do not read.
pub(super) const ROPE_SECTIONS: std::ops::RangeInclusive<usize> = 11..=14;

/// Returns the use of words for an op that reads only the first `n`.
pub(super) const fn read(n: usize) -> ParamWords {
    const MOST: &[WordUse] = &[Read; 16];
    ParamWords::list(MOST.split_at(n).0)
}
