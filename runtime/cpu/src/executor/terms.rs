//! The number of int8 terms per activation.
//!
//! One int8 code leaves a mean squared error of about 2.5e-5 of the activations' mean square, as in other engines.
//! This error is too large if a router chooses by sums of activations, or a recurrence amplifies the error. A second
//! term encodes the remainder: the error becomes negligible, the time doubles. Only small products use two terms.
//! Their weights stay in a cache for the second pass, so it is short compared with the launch.

use crate::product::{Epilogue, Write};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    #[default]
    One,
    /// The second term encodes the remainder of the first.
    Two,
}

impl Terms {
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
