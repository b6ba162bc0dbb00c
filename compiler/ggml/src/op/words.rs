/// The meaning of an `op_params` word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordUse {
    /// A decoded word, or a word that an op without a rule keeps.
    Read,
    /// A word without effect on the result, for this reason.
    Ignored(&'static str),
    /// A word that ggml's op does not have. The meaning of a value other than 0 is unknown.
    Unknown,
}

use WordUse::{Ignored, Read, Unknown};

/// The meanings of all words of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamWords {
    first: &'static [WordUse],
    rest: WordUse,
}

impl ParamWords {
    const fn list(first: &'static [WordUse]) -> ParamWords {
        ParamWords {
            first,
            rest: Unknown,
        }
    }

    const fn all(rest: WordUse) -> ParamWords {
        ParamWords { first: &[], rest }
    }

    /// Returns the meaning of a word.
    pub fn at(self, index: usize) -> WordUse {
        self.first.get(index).copied().unwrap_or(self.rest)
    }
}

const KIND: WordUse = Ignored("the op's name gives the kind");
const IN_PLACE: WordUse = Ignored("an in-place result is a view");
const HINT: WordUse = Ignored("a hint to the back end: the precision or the method of its sums");
const BOUND: WordUse = Ignored("a bound of the visible cells, which the mask also gives");
const LEGACY: WordUse = Ignored("a field that ggml writes but does not read");
pub(super) const OTHER_KIND: WordUse = Ignored("a field that only other kinds of the op read");

pub(super) const NO_WORDS: ParamWords = ParamWords::all(Unknown);
pub(super) const KEPT: ParamWords = ParamWords::all(Read);
pub(super) const LEAF: ParamWords = ParamWords::all(Ignored("a leaf is not computed"));
pub(super) const VIEW: ParamWords =
    ParamWords::all(Ignored("the view's strides and offset give the value"));
/// A kind of `UNARY`. The first parameter repeats the name.
pub(super) const UNARY: ParamWords = ParamWords::list(&[KIND]);
pub(super) const XIELU: ParamWords = ParamWords::list(&[KIND, Read, Read, Read, Read]);
/// A kind of `GLU`. The first parameter repeats the name, the second swaps the operands.
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
/// The section sizes of `ROPE`. Modes without sections ignore these words.
pub(super) const ROPE_SECTIONS: std::ops::RangeInclusive<usize> = 11..=14;

pub(super) const fn read(n: usize) -> ParamWords {
    const MOST: &[WordUse] = &[Read; 16];
    ParamWords::list(MOST.split_at(n).0)
}
