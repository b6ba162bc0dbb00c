//! Lowers the sharded graph to the devices' programs: values on single devices, local sizes, and op parameters adapted
//! to the device's part.
//!
//! The sharding rules require extra ops:
//! - Only the first device adds a whole operand of an unreduced sum (`unreduced.rs`).
//! - A contraction over overlapping ranges uses only the indices that the device primarily owns. If devices share edge
//!   blocks, it pads the activation with zeros to whole storage granules (`contraction.rs`).
//! - An op over head groups of several sizes runs once per size (`groups.rs`).
//! - A split value copied to another place is gathered there, then cut for each device (`transfer.rs`).

mod contraction;
mod error;
mod groups;
mod intervals;
mod lowering;
mod transfer;
mod unreduced;

pub use error::LowerError;
pub use lowering::{lower, lower_within};
