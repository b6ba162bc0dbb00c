//! The number of terms in which products take their activations.
//!
//! One int8 code per activation leaves about 2.5e-5 of its square, as in other engines with such products. This error
//! is large if a router chooses by sums of activations, or if a recurrence amplifies them. A second term encodes the
//! remainder of the first. It makes the error negligible and doubles the time of a product. Only small products have
//! it: their weights stay in a cache for the second pass, whose time is small compared with the launch.

use crate::product::{Epilogue, Write};

/// The number of int8 terms in which a product takes its activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    #[default]
    One,
    /// Two terms; the second encodes the remainder of the first.
    Two,
}

impl Terms {
    /// Returns the index and the epilogue of each term, in order.
    pub(super) fn each(self) -> &'static [(usize, Epilogue<'static>)] {
        const fn written(write: Write) -> Epilogue<'static> {
            Epilogue { write, bias: None }
        }
        const ALL: [(usize, Epilogue<'static>); 2] =
            [(0, written(Write::Set)), (1, written(Write::Add))];
        match self {
            Terms::One => &ALL[..1],
            Terms::Two => &ALL,
        }
    }
}
