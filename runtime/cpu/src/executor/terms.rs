//! In how many terms products take their activations.
//!
//! One int8 code per activation leaves about 2.5e-5 of its square, which is what engines with such products have. Where a
//! router chooses by sums of them, or a recurrence grows them, that is much. A second term, the code of what the first
//! leaves, makes it next to nothing and doubles the time of a product. So small products have it: their weights stay in a
//! cache for the second pass, and their time is lost in that of the launch.

use crate::product::{Epilogue, Write};

/// In how many terms of int8 a product takes its activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Terms {
    #[default]
    One,
    /// The second is what the first leaves of them.
    Two,
}

impl Terms {
    /// All of them, with what is done with their products, in this order.
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
