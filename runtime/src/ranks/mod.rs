//! Programs with devices in several processes, the *ranks*.
//!
//! A program does not change: each rank runs the launches of its own devices at the program's addresses. Copies and
//! collectives that cross ranks become messages. [`Share`] lists the launches and messages of a rank.
//!
//! | type                 | purpose                                                                           |
//! |----------------------|-----------------------------------------------------------------------------------|
//! | [`Ranks`]            | the rank of each device                                                           |
//! | [`Share`]            | a rank's launches and messages                                                    |
//! | [`RankSeat`]         | a share and the connection to the other ranks                                     |
//! | [`Blocks`]           | the parts of a sum that ranks exchange, in the order of one process               |
//! | [`Transport`]        | sends and receives messages: MPI, or [`Channels`] within a process                |
//! | [`Leader`]           | rank 0's executor, which repeats each call on all other ranks                     |
//! | [`follow`]           | runs the calls of rank 0 on another rank                                          |
//!
//! Rank 0 has the host: it reads inputs, samples and prints. Other ranks receive the inputs of each batch, and run
//! [host ops that read only inputs and weights](Share) on their own, so that no rank waits for embeddings and masks.

mod blocks;
mod channels;
mod command;
mod division;
mod follower;
mod leader;
mod runs;
mod seat;
mod share;
mod transport;

pub use blocks::{Block, Blocks, Range, cut};
pub use channels::{Channels, Endpoint};
pub use division::Ranks;
pub use follower::follow;
pub use leader::Leader;
pub use seat::RankSeat;
pub use share::{Message, Share};
pub use transport::{Incoming, Outgoing, RankError, Tag, Transport};

/// The code of a rank's failure.
pub static FAILED: &tpc_ir::Code = &crate::codes::RANK;
