//! Lowers the sharded graph to the devices' programs: values on single devices, local sizes, and op parameters adapted
//! to the device's part.
//!
//! Consequences of the sharding rules become explicit:
//! - A whole operand of an unreduced sum counts on the first device only (`unreduced.rs`).
//! - A contraction over overlapping ranges uses only the indices that the device primarily owns. With shared edge
//!   blocks, it pads the activation with zeros to whole storage granules (`contraction.rs`).
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
