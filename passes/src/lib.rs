//! # Passes: from a model's graph to the programs of its devices
//!
//! Each step is a module and reads the results of earlier steps:
//!
//! 1. [`place`] assigns a place to every op and inserts copies between places;
//! 2. [`cells`] divides KV caches by cells, if the plan asks for it;
//! 3. [`factors`] infers the factors of all axes;
//! 4. [`plan`] chooses the factors to split, and their ranges;
//! 5. [`shard`] gives every value its sharding and makes collectives explicit;
//! 6. [`rewrite`] moves and merges copies and collectives;
//! 7. [`lower`] gives every device its own program in local sizes;
//! 8. [`canonicalise`] removes dead, duplicate and redundant work;
//! 9. [`prove`] proves that the programs compute the model's graph;
//! 10. [`layout`] decides how weights are stored and which values are views;
//! 11. [`cover`] groups instructions into launches;
//! 12. [`buffers`] assigns an address to every value;
//! 13. [`schedule`] orders the launches of each place and adds waits between places.
//!
//! [`assemble()`] runs the last four.
//!
//! [`machine`] has the cost model, [`layers`] finds alike layers, [`footprint`] computes bytes of memory and
//! transfers, and [`link_bytes`] the bytes between machines. The verifier of `tpc-ir` checks every graph by the ops' rules alone. The proof does not import the
//! planner.

mod assemble;
pub mod bits;
pub mod buffers;
pub mod canonicalise;
pub mod cells;
pub mod cover;
pub mod factors;
pub mod footprint;
mod gcd;
pub mod layers;
pub mod layout;
pub mod link_bytes;
mod lookahead;
pub mod lower;
pub mod machine;
pub mod place;
pub mod plan;
pub mod prove;
mod rebuild;
pub mod rewrite;
pub mod schedule;
pub mod shard;
mod users;

pub use assemble::{TooLarge, assemble, memory};
pub use gcd::gcd;
pub use users::Users;
