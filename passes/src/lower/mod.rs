//! From the sharded graph to the devices' programs: each value on one device with its local sizes, each op with
//! its parameters re-based to the part that its device holds.
//!
//! Lowering makes explicit what the laws of shardings imply:
//! - a whole operand of an unreduced sum counts on the first device only (`unreduced.rs`);
//! - a contraction over ranges that overlap uses the indices that a device is the primary owner of, and one against shared
//!   edge blocks pads the activation with zeros to whole storage granules (`contraction.rs`);
//! - an op over head groups of several sizes runs once per size (`groups.rs`);
//! - a split value that is copied to another place is gathered there, and cut for those who hold parts (`transfer.rs`).

mod contraction;
mod error;
mod groups;
mod intervals;
mod lowering;
mod transfer;
mod unreduced;

pub use error::LowerError;
pub use lowering::{lower, lower_within};
