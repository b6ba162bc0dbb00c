use tpc_ir::TensorType;
use tpc_ir::op::InputKind;

use super::command::{Command, Ended};
use super::runs;
use super::transport::{Outgoing, RankError, Tag, Transport};
use crate::error::ExecError;
use crate::executor::{Executor, Host, Outputs};
use crate::run::BatchRun;
use crate::slot::{Slot, SlotMemory};

/// Runs rank 0's calls on this rank's executor, until rank 0 ends.
///
/// # Errors
/// Returns an error if this rank or another rank fails. All ranks then fail.
pub fn follow(executor: &mut dyn Executor, transport: &dyn Transport) -> Result<(), ExecError> {
    let mut run = None;
    loop {
        let bytes = transport
            .receive(0, Tag::COMMAND)
            .map_err(ExecError::from)?;
        let step = match Command::decode(&bytes) {
            Some((ended, command)) => {
                match ended {
                    Ended::Open => {}
                    Ended::Committed => executor.commit(),
                    Ended::Discarded => executor.discard(),
                }
                step(executor, transport, &mut run, command)
            }
            None => Err(malformed("a command")),
        };
        match step {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(e) => {
                transport.fail(&e.to_string());
                return Err(e);
            }
        }
    }
}

fn malformed(what: &str) -> ExecError {
    ExecError::from(RankError {
        rank: Some(0),
        cause: format!("sent {what} that this rank cannot read"),
    })
}

/// Returns false after the last command.
fn step(
    executor: &mut dyn Executor,
    transport: &dyn Transport,
    run: &mut Option<BatchRun>,
    command: Command,
) -> Result<bool, ExecError> {
    match command {
        Command::Phase { first, sizes } => {
            if first {
                *run = Some(BatchRun::new(&sizes));
            }
            let run = run.as_mut().ok_or(ExecError::NothingToDraft)?;
            executor.run_phase(run, &mut Received(transport), &mut Outputs::unread())?;
        }
        Command::Reset => executor.reset_states()?,
        Command::Read { value, offset, len } => {
            let bytes = read(executor, value, (offset, len))?;
            let answer = Outgoing {
                to: 0,
                tag: Tag::BYTES,
                bytes: &bytes,
            };
            transport.post(answer).map_err(ExecError::from)?;
        }
        Command::Write {
            value,
            offset,
            bytes,
        } => {
            if !executor.write_state(value, offset, &bytes)? {
                return Err(malformed("bytes of a state"));
            }
        }
        Command::Quit => return Ok(false),
    }
    Ok(true)
}

fn read(
    executor: &dyn Executor,
    value: tpc_ir::Value,
    (offset, len): (usize, usize),
) -> Result<Vec<u8>, ExecError> {
    // The executor checks the range before this rank allocates memory.
    if executor.read_state(value, offset, &mut [])? {
        let mut bytes = vec![0; len];
        if executor.read_state(value, offset, &mut bytes)? {
            return Ok(bytes);
        }
    }
    Err(malformed("a request for a state"))
}

/// Supplies the inputs that rank 0 sends.
struct Received<'a>(&'a dyn Transport);

impl Host for Received<'_> {
    fn input(
        &mut self,
        _kind: &InputKind,
        _ty: &TensorType,
        mut to: Slot<'_>,
    ) -> Result<(), ExecError> {
        let bytes = self.0.receive(0, Tag::INPUT).map_err(ExecError::from)?;
        let fits = write(&bytes, to.memory_mut());
        fits.ok_or_else(|| malformed("an input"))
    }
}

fn write(bytes: &[u8], to: &mut SlotMemory<'_>) -> Option<()> {
    fn words<T, const N: usize>(
        bytes: &[u8],
        to: &mut [T],
        word: impl Fn([u8; N]) -> T,
    ) -> Option<()> {
        let bytes = runs::decode(bytes, size_of_val(to))?;
        let (words, []) = bytes.as_chunks::<N>() else {
            return None;
        };
        if words.len() != to.len() {
            return None;
        }
        to.iter_mut().zip(words).for_each(|(to, w)| *to = word(*w));
        Some(())
    }
    match to {
        SlotMemory::I32(to) => words(bytes, to, i32::from_le_bytes),
        SlotMemory::I64(to) => words(bytes, to, i64::from_le_bytes),
        SlotMemory::F32(to) => words(bytes, to, f32::from_le_bytes),
        SlotMemory::Packed(_, to) => words(bytes, to, u8::from_le_bytes),
        SlotMemory::Tensor(_) => None,
    }
}
