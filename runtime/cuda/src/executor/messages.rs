//! Plans the messages between ranks: the nodes of a graph that send, receive and exchange, and their memory.
//!
//! A kernel copies a value of a device to a *staging buffer* in pinned host memory, and a host node sends it. A host node
//! receives a value into a staging buffer, and kernels read it there. All message nodes of a rank follow each other in the
//! order of the program's queues, which is the same on all ranks, so no rank waits for a message that waits for its own.

use std::collections::BTreeMap;

use tpc_ir::program::Program;
use tpc_ir::{DType, Launch, Op, Place, Value};
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Blocks, Share, Tag};

use super::phase_order::launch_order;
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

/// The memory of messages to this rank. Messages whose readers have run leave their memory to later ones.
#[derive(Debug, Default)]
pub(super) struct Landings {
    /// The part of each message, and the first launch that reads it.
    of: BTreeMap<usize, (usize, Launch)>,
    /// The number of parts.
    pub(super) parts: usize,
}

impl Landings {
    /// Assigns a part to each message that launches of this rank read.
    pub(super) fn new(program: &Program, share: &Share) -> Result<Landings, ExecError> {
        let mut spans: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let order = launch_order(program)?;
        for (at, launch) in order.iter().enumerate() {
            for (_, message) in share.arrivals(*launch).filter(|_| share.runs(*launch)) {
                spans.entry(message).or_insert((at, at)).1 = at;
            }
        }
        let mut spans: Vec<_> = spans.into_iter().map(|(m, (a, b))| (a, b, m)).collect();
        spans.sort_unstable();
        let ranges = spans.iter().map(|(first, last, _)| (*first, *last));
        let (parts, count) = parts(ranges);
        let of = parts.into_iter().zip(spans);
        Ok(Landings {
            of: of
                .map(|(part, (first, _, message))| (message, (part, order[first])))
                .collect(),
            parts: count,
        })
    }

    /// Returns the part of a message, and the first launch that reads it.
    pub(super) fn get(&self, message: usize) -> Option<(usize, Launch)> {
        self.of.get(&message).copied()
    }

    /// Returns the messages that launches of this rank read.
    pub(super) fn messages(&self) -> impl Iterator<Item = usize> + '_ {
        self.of.keys().copied()
    }
}

/// Assigns a part of memory to each span of positions, in the order of their starts. Spans of a part do not overlap.
/// Returns the number of parts, too.
fn parts(spans: impl Iterator<Item = (usize, usize)>) -> (Vec<usize>, usize) {
    // The last position of each part.
    let mut busy: Vec<usize> = Vec::new();
    let assigned = spans.map(|(first, last)| {
        let free = busy.iter().position(|end| *end < first);
        match free {
            Some(part) => {
                busy[part] = last;
                part
            }
            None => {
                busy.push(last);
                busy.len() - 1
            }
        }
    });
    let assigned = assigned.collect();
    (assigned, busy.len())
}

/// True if this rank has the memory of a place. Without ranks, it has all.
pub(super) fn is_here(share: Option<&Share>, place: Place) -> bool {
    share.is_none_or(|share| share.has(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_share_memory_if_no_launch_needs_both() {
        let spans = [(0, 2), (1, 1), (2, 5), (3, 3), (6, 6)];
        assert_eq!(parts(spans.into_iter()), (vec![0, 1, 1, 0, 0], 2));
        assert_eq!(parts(std::iter::empty()), (Vec::new(), 0));
    }
}
