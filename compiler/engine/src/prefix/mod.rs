//! Prefix reuse: computed prefixes of texts, for later sequences that begin with the same tokens.
//!
//! A [`PrefixStore`] copies the cells of computed tokens to host memory, and from there to the caches of another
//! sequence. That sequence then has the bits of a sequence that has read the tokens itself.
//!
//! The store is a tree of blocks of [`BLOCK`] tokens. Texts with a common prefix share its blocks. The store compares
//! tokens, not hashes.

mod statistics;
mod store;
mod tree;

#[cfg(test)]
mod tests;

pub use statistics::PrefixStatistics;
pub use store::PrefixStore;
pub use tree::BLOCK;
