//! The conditions under which an executor's results keep their bits.

/// The properties of an executor's results, stated by its [target](super::Target).
///
/// For any executor, splits of rows, heads and experts change no bits, and all threads of a device give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Company {
    /// True if a product over a [`subtree`](super::subtree) of K gives a subtree of the sum over all of K.
    pub subtrees: bool,
    /// The number of quantised weights per token up to which a product adds two sums, one per term of the activations.
    pub two_term_weights: u64,
    /// The widest batch in which a token has the bits of a batch of one token; `u64::MAX` for any batch.
    pub widths: u64,
    /// True if other sequences do not change a token's bits. Each sequence needs its own part of the caches.
    pub neighbours: bool,
}

impl Company {
    /// An unknown executor: every product over a part of K may differ, and so may every batch.
    pub const UNKNOWN: Company = Company {
        subtrees: false,
        two_term_weights: u64::MAX,
        widths: 1,
        neighbours: false,
    };
}
