//! The executor of a rank: messages before and after the graph of a phase.

use tpc_cpu::View as HostView;
use tpc_cpu::host::packed;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::Outgoing;

use super::CudaExecutor;
use crate::driver::Driver;

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
