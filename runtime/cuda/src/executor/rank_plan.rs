//! The messages of a rank and their memory, while its tasks are built.

use std::collections::BTreeMap;

use tpc_ir::Launch;
use tpc_ir::program::Program;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::Share;

use super::landings::Landings;
use super::messages::{MessagePlan, MessageTask, MessageWork, Receive};
use super::task::{StagingBuffer, StagingPart, staged_bytes};

/// The messages of a rank, as far as they are planned.
pub(super) struct RankPlan<'a> {
    pub(super) share: &'a Share,
    landings: Landings,
    /// The staging buffer of messages to this rank.
    buffer: Option<usize>,
    /// The messages to send after each launch.
    pub(super) posts: BTreeMap<Launch, Vec<usize>>,
    pub(super) plan: MessagePlan,
}

impl<'a> RankPlan<'a> {
    pub(super) fn new(program: &Program, share: &'a Share) -> Result<RankPlan<'a>, ExecError> {
        let mut posts: BTreeMap<Launch, Vec<usize>> = BTreeMap::new();
        for (i, message) in share.messages().iter().enumerate() {
            if let Some(launch) = message.after.filter(|_| message.from == share.rank()) {
                posts.entry(launch).or_default().push(i);
            }
        }
        Ok(RankPlan {
            share,
            landings: Landings::new(program, share)?,
            buffer: None,
            posts,
            plan: MessagePlan {
                tasks: vec![Vec::new(); program.launches.len()],
                ..MessagePlan::default()
            },
        })
    }

    pub(super) fn add(&mut self, launch: Launch, stage: usize, work: MessageWork) {
        self.plan.tasks[launch.index()].push(MessageTask { stage, work });
    }

    /// Returns the part of the staging buffer for a message, which the first launch that reads it receives.
    pub(super) fn landing(
        &mut self,
        program: &Program,
        (launch, message): (Launch, usize),
        staging: &mut Vec<StagingBuffer>,
    ) -> Result<StagingPart, ExecError> {
        let messages = self.share.messages();
        let buffer = match self.buffer {
            Some(buffer) => buffer,
            None => {
                let values = self.landings.messages().map(|m| messages[m].value);
                let bytes: Result<Vec<usize>, ExecError> =
                    values.map(|v| staged_bytes(program, v)).collect();
                staging.push(StagingBuffer {
                    parts: self.landings.parts,
                    bytes: bytes?.into_iter().max().unwrap_or(0),
                    uses: 0,
                });
                *self.buffer.insert(staging.len() - 1)
            }
        };
        let found = self.landings.get(message);
        let (part, first) = found.ok_or_else(|| ExecError::Malformed {
            what: "no launch reads a message".into(),
        })?;
        let to = StagingPart { buffer, part };
        if first == launch {
            let message = messages[message];
            self.plan.receives.push(Receive {
                value: message.value,
                from: message.from,
                tag: message.tag,
                to,
            });
            let receive = self.plan.receives.len() - 1;
            self.add(launch, 0, MessageWork::Receive(receive));
        }
        Ok(to)
    }
}
