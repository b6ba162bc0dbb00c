//! The message that lets a rank load its part of a program: a line with the rank of each device, then the program's
//! text.

use tpc_ir::program::{Program, text, verify};
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Outgoing, Ranks, Tag};

use super::RankGroup;
use crate::artefact::STORAGE_FORMATS;

/// Sends a program to all other ranks.
pub(super) fn send(group: &RankGroup, program: &Program, ranks: &Ranks) -> Result<(), ExecError> {
    let places: Vec<String> = ranks.of_devices().iter().map(usize::to_string).collect();
    let message = format!("{}\n{program}", places.join(" "));
    let (tag, bytes) = (Tag::READY, message.as_bytes());
    for to in 1..group.transport.ranks() {
        let sent = group.transport.post(Outgoing { to, tag, bytes });
        sent.map_err(ExecError::from)?;
    }
    group.transport.flush().map_err(ExecError::from)
}

/// Waits until all other ranks have loaded.
pub(super) fn wait(group: &RankGroup) -> Result<(), ExecError> {
    for rank in 1..group.transport.ranks() {
        let answer = group.transport.receive(rank, Tag::READY);
        answer.map_err(ExecError::from)?;
    }
    Ok(())
}

/// Reads the message of [`send`], and verifies the program. Returns `None` for an empty message, the last of a job.
pub(super) fn read(bytes: &[u8], count: usize) -> Result<Option<(Program, Ranks)>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let unreadable = || "rank 0 sent a program that this rank cannot read".to_owned();
    let message = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    let (places, source) = message.split_once('\n').ok_or_else(unreadable)?;
    let places: Option<Vec<usize>> = (places.split_whitespace())
        .map(|w| w.parse().ok())
        .collect();
    let ranks = places.and_then(|places| Ranks::new(places, count));
    let ranks = ranks.ok_or_else(unreadable)?;
    let parsed = text::parse(source, STORAGE_FORMATS).map_err(|_| unreadable())?;
    let program = parsed.program().map_err(|e| e.to_string())?;
    verify(&program).map_err(|errors| {
        let first = errors.first();
        first.map_or_else(unreadable, |e| format!("{}: {e}", e.code))
    })?;
    match ranks.of_devices().len() == program.graph.devices.len() {
        true => Ok(Some((program, ranks))),
        false => Err(unreadable()),
    }
}
