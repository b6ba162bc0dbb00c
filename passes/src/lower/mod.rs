//! Lowers the sharded graph to the devices' programs. Each value is on one device with its local sizes. Each op has its
//! parameters re-based to the part that its device holds.
//!
//! Lowering makes explicit the consequences of the sharding rules:
//! - A whole operand of an unreduced sum counts on the first device only (`unreduced.rs`).
//! - A contraction over ranges that overlap uses only the indices of which the device is the primary owner. A
//!   contraction with shared edge blocks pads the activation with zeros to whole storage granules (`contraction.rs`).
//! - An op over head groups of several sizes runs once per size (`groups.rs`).
//! - A split value that is copied to another place is gathered there, and then cut for devices that hold parts
//!   (`transfer.rs`).

mod contraction;
mod error;
mod groups;
mod intervals;
mod lowering;
mod transfer;
mod unreduced;

pub use error::LowerError;
pub use lowering::{lower, lower_within};
