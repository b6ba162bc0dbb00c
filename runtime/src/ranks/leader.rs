use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tpc_ir::op::{InputKind, Op};
use tpc_ir::program::Program;
use tpc_ir::{DType, TensorType, Value};

use super::command::{Command, Ended};
use super::division::Ranks;
use super::runs;
use super::transport::{Outgoing, RankError, Tag, Transport};
use crate::error::ExecError;
use crate::executor::{Executor, Host, Interface, Outputs};
use crate::host::{self, extents};
use crate::profile::KernelTime;
use crate::run::BatchRun;
use crate::slot::{Slot, SlotMemory};
use crate::tensor::Tensor;

/// Rank 0's executor. It repeats each call on the other ranks, which [follow](super::follow).
pub struct Leader {
    own: Box<dyn Executor>,
    program: Arc<Program>,
    ranks: Ranks,
    transport: Arc<dyn Transport>,
    ended: Mutex<Ended>,
    /// Sizes of states and weights in bytes, by value.
    sizes: Vec<Option<usize>>,
    /// Held while the other ranks follow this executor.
    _busy: Arc<()>,
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("ranks", &self.ranks)
            .finish_non_exhaustive()
    }
}

impl Leader {
    /// Returns the executor of all ranks. `own` runs this rank's launches. The executor holds `busy` until its end.
    pub fn new(
        own: Box<dyn Executor>,
        program: Arc<Program>,
        ranks: Ranks,
        transport: Arc<dyn Transport>,
        busy: Arc<()>,
    ) -> Leader {
        let sizes = extents(&program).into_iter();
        Leader {
            sizes: sizes.map(|e| e.map(|e| e.bytes)).collect(),
            ended: Mutex::default(),
            own,
            program,
            ranks,
            transport,
            _busy: busy,
        }
    }

    /// Returns the other rank that keeps a value; `None` if this rank keeps it.
    fn other(&self, value: Value) -> Option<usize> {
        let rank = self.ranks.of_place(self.program.graph.value(value).place);
        (rank != self.transport.rank()).then_some(rank)
    }

    fn command(&self, command: &Command) -> Vec<u8> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        command.encode(std::mem::take(&mut *ended))
    }

    fn to_all(&self, command: &Command) -> Result<(), ExecError> {
        let bytes = self.command(command);
        send(&*self.transport, Tag::COMMAND, &bytes).map_err(ExecError::from)
    }

    /// Sends a command to one rank. Other ranks get the end of the batch later.
    fn to_one(&self, to: usize, command: &Command) -> Result<(), ExecError> {
        let bytes = command.encode(Ended::Open);
        let tag = Tag::COMMAND;
        let bytes = &bytes;
        self.transport
            .post(Outgoing { to, tag, bytes })
            .map_err(ExecError::from)
    }

    fn read(
        &self,
        from: usize,
        value: Value,
        (offset, len): (usize, usize),
    ) -> Result<Vec<u8>, ExecError> {
        self.to_one(from, &Command::Read { value, offset, len })?;
        let bytes = self
            .transport
            .receive(from, Tag::BYTES)
            .map_err(ExecError::from)?;
        match bytes.len() == len {
            true => Ok(bytes),
            false => Err(ExecError::from(RankError {
                rank: Some(from),
                cause: format!("sent {} bytes of {value} instead of {len}", bytes.len()),
            })),
        }
    }

    fn set(&self, ended: Ended) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = ended;
    }
}

fn send(transport: &dyn Transport, tag: Tag, bytes: &[u8]) -> Result<(), RankError> {
    for to in (0..transport.ranks()).filter(|to| *to != transport.rank()) {
        transport.post(Outgoing { to, tag, bytes })?;
    }
    Ok(())
}

/// Supplies inputs to this rank, and sends them to the others.
struct Relay<'a> {
    host: &'a mut dyn Host,
    transport: &'a dyn Transport,
    /// The command, until it is sent with the first input.
    command: Option<Vec<u8>>,
}

impl Host for Relay<'_> {
    fn input(
        &mut self,
        kind: &InputKind,
        ty: &TensorType,
        mut to: Slot<'_>,
    ) -> Result<(), ExecError> {
        self.host.input(kind, ty, to.reborrow())?;
        if let Some(command) = self.command.take() {
            send(self.transport, Tag::COMMAND, &command).map_err(ExecError::from)?;
        }
        let bytes = encoded(to.memory())?;
        send(self.transport, Tag::INPUT, &bytes).map_err(ExecError::from)
    }

    fn produced(&mut self, value: Value, tensor: &Tensor) {
        self.host.produced(value, tensor);
    }
}

fn encoded(memory: &SlotMemory<'_>) -> Result<Vec<u8>, ExecError> {
    Ok(match memory {
        SlotMemory::I32(from) => runs::raw(from.iter().flat_map(|v| v.to_le_bytes())),
        SlotMemory::I64(from) => runs::raw(from.iter().flat_map(|v| v.to_le_bytes())),
        SlotMemory::F32(from) => runs::encode(from.iter().map(|v| v.to_bits())),
        SlotMemory::Packed(_, from) => runs::raw(from.iter().copied()),
        SlotMemory::Tensor(_) => {
            let what = "an executor of several ranks takes inputs as bytes".into();
            return Err(ExecError::Malformed { what });
        }
    })
}

impl Executor for Leader {
    fn interface(&self) -> &Interface {
        self.own.interface()
    }

    fn lookahead(&self, run: &BatchRun) -> Option<u32> {
        self.own.lookahead(run)
    }

    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError> {
        let command = Command::Phase {
            first: run.phase() == 0,
            sizes: *run.sizes(),
        };
        let mut relay = Relay {
            host,
            transport: &*self.transport,
            command: Some(self.command(&command)),
        };
        // Other ranks have the largest logits of their parts only, so all logits are read.
        outputs.drop_best();
        let done = self.own.run_phase(run, &mut relay, outputs);
        if let (Err(e), None) = (&done, &relay.command) {
            // The other ranks wait for this rank's messages.
            self.transport.fail(&e.to_string());
        }
        done
    }

    fn commit(&mut self) {
        self.own.commit();
        self.set(Ended::Committed);
    }

    fn discard(&mut self) {
        self.own.discard();
        self.set(Ended::Discarded);
    }

    fn reset_states(&mut self) -> Result<(), ExecError> {
        self.to_all(&Command::Reset)?;
        self.own.reset_states()
    }

    fn state(&self, state: Value) -> Result<Option<&[u8]>, ExecError> {
        self.own.state(state)
    }

    fn state_mut(&mut self, state: Value) -> Result<Option<&mut [u8]>, ExecError> {
        self.own.state_mut(state)
    }

    fn read_state(&self, state: Value, offset: usize, to: &mut [u8]) -> Result<bool, ExecError> {
        let Some(from) = self.other(state) else {
            return self.own.read_state(state, offset, to);
        };
        let size = self.sizes.get(state.index()).copied().flatten();
        if size.is_none_or(|size| offset + to.len() > size) {
            return Ok(false);
        }
        if !to.is_empty() {
            to.copy_from_slice(&self.read(from, state, (offset, to.len()))?);
        }
        Ok(true)
    }

    fn write_state(
        &mut self,
        state: Value,
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, ExecError> {
        let Some(to) = self.other(state) else {
            return self.own.write_state(state, offset, bytes);
        };
        let size = self.sizes.get(state.index()).copied().flatten();
        if size.is_none_or(|size| offset + bytes.len() > size) {
            return Ok(false);
        }
        let command = Command::Write {
            value: state,
            offset,
            bytes: bytes.to_vec(),
        };
        self.to_one(to, &command)?;
        Ok(true)
    }

    fn output(&self, output: usize) -> Result<Option<(DType, Vec<u8>)>, ExecError> {
        self.own.output(output)
    }

    fn weight(&self, weight: Value) -> Result<Option<Tensor>, ExecError> {
        let size = self.sizes.get(weight.index()).copied().flatten();
        match (self.other(weight), size) {
            (Some(from), Some(len))
                if matches!(self.program.graph.def_op(weight), Op::Weight(_)) =>
            {
                let bytes = self.read(from, weight, (0, len))?;
                Ok(host::weight_tensor(&self.program, weight, &bytes))
            }
            (Some(_), _) => Ok(None),
            (None, _) => self.own.weight(weight),
        }
    }

    fn starved(&self) -> f64 {
        self.own.starved()
    }

    fn take_profile(&mut self) -> Vec<KernelTime> {
        self.own.take_profile()
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let bytes = Command::Quit.encode(Ended::Open);
        // If a rank has failed, all ranks end anyway.
        let _ = send(&*self.transport, Tag::COMMAND, &bytes);
        let _ = self.transport.flush();
    }
}
