//! # Analyses and rewrites on the IR
//!
//! A model's graph becomes the programs of its devices in five steps, each a module:
//!
//! 1. [`factors`] infers which factors run through which axes;
//! 2. [`plan`] chooses the factors to split, and how;
//! 3. [`shard`] gives every value its sharding and makes copies and collectives explicit;
//! 4. [`rewrite`] moves and merges these;
//! 5. [`lower`] gives every device its own program in local sizes.
//!
//! The verifier of `tpc-ir` checks what comes out of steps 4 and 5 by the ops' rules, without knowing how it was
//! found.

pub mod factors;
pub mod footprint;
mod gcd;
pub mod layers;
pub mod lower;
pub mod machine;
pub mod place;
pub mod plan;
pub mod prove;
pub mod rewrite;
pub mod shard;
mod users;

pub use gcd::gcd;
pub use users::Users;
