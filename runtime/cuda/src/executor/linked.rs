//! Messages of a rank outside of graphs, and the memory that the rank has.

use std::sync::Arc;

use tpc_ir::Value;
use tpc_ir::program::Program;
use tpc_runtime::host::{StoredExtent, extents};
use tpc_runtime::ranks::{Share, Tag};

use super::messages::is_here;
use super::rank_messages::RankMessages;

/// A rank's messages, with values that it sends before a graph and outputs that it receives after it.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) messages: Arc<RankMessages>,
    /// Values to send when each phase begins.
    pub(super) begins: Vec<Vec<(Value, usize, Tag)>>,
    /// Named outputs that other ranks compute, in packed form.
    pub(super) outputs: Vec<Option<Vec<u8>>>,
}

impl Linked {
    pub(super) fn new(program: &Program, messages: RankMessages, outputs: usize) -> Linked {
        let share = &messages.seat.share;
        let mut begins = vec![Vec::new(); program.phases.len()];
        for message in share.messages() {
            if message.from == share.rank() && message.after.is_none() {
                begins[message.phase].push((message.value, message.to, message.tag));
            }
        }
        Linked {
            messages: Arc::new(messages),
            begins,
            outputs: vec![None; outputs],
        }
    }

    /// Tells the other ranks of an error, because they wait for this rank.
    pub(super) fn fail(&self, cause: &str) {
        self.messages.seat.transport.fail(cause);
    }

    /// Returns the bytes of an output that another rank has computed.
    pub(super) fn output(&self, output: usize) -> Option<&[u8]> {
        self.outputs.get(output)?.as_deref()
    }
}

/// Returns the memory of states and weights, if this rank has it.
pub(super) fn own_extents(program: &Program, share: Option<&Share>) -> Vec<Option<StoredExtent>> {
    let here = |at: &StoredExtent| is_here(share, program.arenas[at.arena].place);
    let all = extents(program).into_iter();
    all.map(|extent| extent.filter(here)).collect()
}
