//! The number of int8 terms per activation.
//!
//! One int8 code per activation leaves an error of about 2.5e-5 of its square, as in other engines with int8
//! activations. This error is too large if a router chooses by sums of activations, or if a recurrence amplifies them.
//! A second term encodes the remainder, which makes the error negligible and doubles the time. Only small products have
//! it: their weights stay in a cache for the second pass, so it is short compared with the launch.

use crate::product::{Epilogue, Write};

/// Number of int8 terms per activation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    #[default]
    One,
    /// The second term encodes the remainder of the first.
    Two,
}

impl Terms {
    /// Returns index and epilogue of each term.
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
