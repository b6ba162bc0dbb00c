//! Plans the messages between ranks: the nodes of a graph that send, receive and exchange, and their memory.
//!
//! A kernel copies a value of a device to a *staging buffer* in pinned host memory, and a host node sends it. A host node
//! receives a value into a staging buffer, and kernels read it there. All message nodes of a rank follow each other in the
//! order of the program's queues, which is the same on all ranks, so no rank waits for a message that waits for its own.

use tpc_ir::{DType, Op, Place, Value};
use tpc_runtime::ranks::{Blocks, Share, Tag};

use super::task::StagingPart;

/// A node that sends, receives or exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageWork {
    /// Sends a value. The number is an index into [`MessagePlan::posts`].
    Post(usize),
    /// Receives a value. The number is an index into [`MessagePlan::receives`].
    Receive(usize),
    /// Exchanges the blocks of a collective. The number is an index into [`MessagePlan::exchanges`].
    Exchange(usize),
}

/// A message node of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageTask {
    /// The node follows the launch's nodes of earlier stages.
    pub(super) stage: usize,
    pub(super) work: MessageWork,
}

/// A value to send.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub(super) value: Value,
    pub(super) to: usize,
    pub(super) tag: Tag,
    /// The copy of a device's value; `None` for a value of the host.
    pub(super) copy: Option<StagingPart>,
}

/// A value to receive.
#[derive(Clone, Debug)]
pub(super) struct Receive {
    pub(super) value: Value,
    pub(super) from: usize,
    pub(super) tag: Tag,
    pub(super) to: StagingPart,
}

/// A collective among ranks.
#[derive(Clone, Debug)]
pub(super) struct PlannedExchange {
    pub(super) op: Op,
    pub(super) dtype: DType,
    pub(super) blocks: Blocks,
    pub(super) tag: Tag,
    /// The operands of all participants; `None` for the memory of other ranks.
    pub(super) operands: Vec<(Value, Option<StagingPart>)>,
    /// The results of this rank, each with its participant.
    pub(super) results: Vec<(usize, Value, StagingPart)>,
}

/// A rank's messages.
#[derive(Debug, Default)]
pub(super) struct MessagePlan {
    /// The nodes of each launch.
    pub(super) tasks: Vec<Vec<MessageTask>>,
    pub(super) posts: Vec<Post>,
    pub(super) receives: Vec<Receive>,
    pub(super) exchanges: Vec<PlannedExchange>,
}

impl MessagePlan {
    /// Returns the staging buffers that a node reads and writes, and the value that it reads in its own memory.
    pub(super) fn memory(
        &self,
        work: MessageWork,
    ) -> (Vec<StagingPart>, Vec<StagingPart>, Option<Value>) {
        match work {
            MessageWork::Post(i) => {
                let Post { value, copy, .. } = &self.posts[i];
                let own = copy.is_none().then_some(*value);
                (copy.iter().copied().collect(), Vec::new(), own)
            }
            MessageWork::Receive(i) => (Vec::new(), vec![self.receives[i].to], None),
            MessageWork::Exchange(i) => {
                let PlannedExchange {
                    operands, results, ..
                } = &self.exchanges[i];
                let read = operands.iter().filter_map(|(_, part)| *part);
                let written = results.iter().map(|(_, _, part)| *part);
                (read.collect(), written.collect(), None)
            }
        }
    }
}

/// True if this rank has the memory of a place. Without ranks, it has all.
pub(super) fn is_here(share: Option<&Share>, place: Place) -> bool {
    share.is_none_or(|share| share.has(place))
}
