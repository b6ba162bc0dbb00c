use std::fmt;

use crate::error::ExecError;

/// The number of a message. Messages with the same sender, receiver and tag arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u32);

impl Tag {
    /// Commands of rank 0.
    pub const COMMAND: Tag = Tag(0);
    /// Inputs of a phase.
    pub const INPUT: Tag = Tag(1);
    /// Bytes of a state or a weight.
    pub const BYTES: Tag = Tag(2);
    /// Reports of readiness, before and after loading.
    pub const READY: Tag = Tag(3);
    /// The first tag of a program's messages.
    pub const FIRST: u32 = 16;
}

/// The failure of a rank, or of the connection to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankError {
    /// The rank that failed, if known.
    pub rank: Option<usize>,
    /// The cause, as a clause.
    pub cause: String,
}

impl fmt::Display for RankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Some(rank) => write!(f, "rank {rank}: {}", self.cause),
            None => f.write_str(&self.cause),
        }
    }
}

impl std::error::Error for RankError {}

impl From<RankError> for ExecError {
    fn from(e: RankError) -> ExecError {
        ExecError::Device {
            code: &crate::codes::RANK,
            what: e.to_string(),
        }
    }
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: usize,
    /// The tag.
    pub tag: Tag,
    /// The content.
    pub bytes: &'a [u8],
}

/// A message to receive.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The sender.
    pub from: usize,
    /// The tag.
    pub tag: Tag,
    /// Memory of the message's size.
    pub bytes: &'a mut [u8],
}

/// The connection of a rank to all others. Threads may call it at the same time.
pub trait Transport: Send + Sync + fmt::Debug {
    /// Returns this rank.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Sends and receives messages in any order. Returns after all of them.
    ///
    /// # Errors
    /// Returns an error if a rank has failed, or a message has another size.
    fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), RankError>;

    /// Copies a message, which leaves in the background.
    ///
    /// # Errors
    /// Returns an error if a rank has failed.
    fn post(&self, message: Outgoing<'_>) -> Result<(), RankError>;

    /// Waits until all [posted](Self::post) messages have left.
    ///
    /// # Errors
    /// Returns an error if a rank has failed.
    fn flush(&self) -> Result<(), RankError>;

    /// Receives a message of any size. Waits without a time limit.
    ///
    /// # Errors
    /// Returns an error if a rank has failed.
    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>, RankError>;

    /// Tells all ranks that this rank has failed. Their calls then return errors.
    fn fail(&self, cause: &str);
}
