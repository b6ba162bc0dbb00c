//! The executor of a rank: messages before and after the graph of a phase.

use std::sync::Arc;

use tpc_cpu::View as HostView;
use tpc_cpu::host::packed;
use tpc_ir::Value;
use tpc_ir::program::Program;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Outgoing, Tag};

use super::CudaExecutor;
use super::rank_messages::RankMessages;
use crate::driver::Driver;

/// A rank's messages, and what it sends and receives outside of graphs.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) messages: Arc<RankMessages>,
    /// Values to send when each phase begins.
    begins: Vec<Vec<(Value, usize, Tag)>>,
    /// Named outputs that other ranks compute, in packed form.
    outputs: Vec<Option<Vec<u8>>>,
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

impl<D: Driver> CudaExecutor<D> {
    /// Sends what exists when a phase begins.
    pub(super) fn begin_messages(&self, phase: usize) -> Result<(), ExecError> {
        let Some(linked) = &self.linked else {
            return Ok(());
        };
        for &(value, to, tag) in &linked.begins[phase] {
            let bytes = self.with_output(value, packed)?;
            let bytes = bytes.as_slice();
            let posted = (linked.messages.seat.transport).post(Outgoing { to, tag, bytes });
            posted.map_err(ExecError::from)?;
        }
        Ok(())
    }

    /// Receives the named outputs of other ranks, and waits until all messages have left.
    pub(super) fn end_messages(&mut self, phase: usize) -> Result<(), ExecError> {
        let Some(linked) = &mut self.linked else {
            return Ok(());
        };
        let seat = &linked.messages.seat;
        for (i, (at, _)) in self.outputs.iter().enumerate() {
            let message = seat.share.output(i).filter(|_| *at == phase);
            if let Some(message) = message {
                let message = seat.share.messages()[message];
                let bytes = seat.transport.receive(message.from, message.tag);
                linked.outputs[i] = Some(bytes.map_err(ExecError::from)?);
            }
        }
        seat.transport.flush().map_err(ExecError::from)
    }

    /// Reads an output that another rank has computed; `None` if this rank has it.
    pub(super) fn received<T>(
        &self,
        output: usize,
        read: impl FnOnce(&HostView) -> T,
    ) -> Option<Result<T, ExecError>> {
        let bytes = self.linked.as_ref()?.output(output)?;
        let view = self.frame.view(self.outputs[output].1);
        if bytes.len() != view.dense_bytes() {
            let what = format!("an output of another rank has {} bytes", bytes.len());
            return Some(Err(ExecError::Malformed { what }));
        }
        // Views are of memory that may be written, so the bytes are copied.
        let mut bytes = bytes.to_vec();
        let view = HostView::dense(bytes.as_mut_ptr(), view.dtype, view.sizes());
        Some(Ok(read(&view)))
    }
}
