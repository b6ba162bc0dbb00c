//! The message that lets a rank load its share of a program: a line with the executor, a line with the rank of each
//! device and perhaps its card (`0 0 1/5 1`), then the program's text.

use tpc_core::placement::DeviceKind;
use tpc_ir::program::{Program, text, verify};
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Outgoing, Ranks, Tag};

use super::RankGroup;
use crate::artefact::STORAGE_FORMATS;

/// The name of all ranks' executor, and the rank and kind of each device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seats {
    pub(crate) executor: String,
    pub(crate) ranks: Ranks,
    pub(crate) kinds: Vec<DeviceKind>,
}

impl Seats {
    pub(crate) fn new(executor: &str, ranks: &Ranks, kinds: &[DeviceKind]) -> Seats {
        // Only cards have numbers that other ranks use.
        let card = |kind: &DeviceKind| match kind {
            DeviceKind::Cuda(_) => *kind,
            DeviceKind::Generic | DeviceKind::Cpu | DeviceKind::Numa(_) => DeviceKind::Generic,
        };
        Seats {
            executor: executor.to_owned(),
            ranks: ranks.clone(),
            kinds: kinds.iter().map(card).collect(),
        }
    }

    fn encode(&self) -> String {
        let places = self.ranks.of_devices().iter().enumerate();
        let places = places.map(|(d, rank)| match self.kinds.get(d) {
            Some(DeviceKind::Cuda(card)) => format!("{rank}/{card}"),
            _ => rank.to_string(),
        });
        let places: Vec<String> = places.collect();
        format!("{}\n{}\n", self.executor, places.join(" "))
    }

    /// Reads the two lines of [`encode`](Self::encode). Returns the rest, too.
    fn decode(message: &str, count: usize) -> Option<(Seats, &str)> {
        let (executor, rest) = message.split_once('\n')?;
        let (places, rest) = rest.split_once('\n')?;
        let (mut of_devices, mut kinds) = (Vec::new(), Vec::new());
        for place in places.split_whitespace() {
            let (rank, card) = match place.split_once('/') {
                Some((rank, card)) => (rank, DeviceKind::Cuda(card.parse().ok()?)),
                None => (place, DeviceKind::Generic),
            };
            of_devices.push(rank.parse().ok()?);
            kinds.push(card);
        }
        let seats = Seats {
            executor: executor.to_owned(),
            ranks: Ranks::new(of_devices, count)?,
            kinds,
        };
        Some((seats, rest))
    }
}

/// Sends a program to all other ranks.
pub(crate) fn send(group: &RankGroup, program: &Program, seats: &Seats) -> Result<(), ExecError> {
    let message = format!("{}{program}", seats.encode());
    let (tag, bytes) = (Tag::READY, message.as_bytes());
    for to in 1..group.transport.ranks() {
        let sent = group.transport.post(Outgoing { to, tag, bytes });
        sent.map_err(ExecError::from)?;
    }
    group.transport.flush().map_err(ExecError::from)
}

/// Waits until all other ranks have loaded.
pub(crate) fn wait(group: &RankGroup) -> Result<(), ExecError> {
    for rank in 1..group.transport.ranks() {
        let answer = group.transport.receive(rank, Tag::READY);
        answer.map_err(ExecError::from)?;
    }
    Ok(())
}

/// Reads the message of [`send`], and verifies the program. Returns `None` for an empty message, the last of a job.
pub(crate) fn read(bytes: &[u8], count: usize) -> Result<Option<(Program, Seats)>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let unreadable = || "rank 0 sent a program that this rank cannot read".to_owned();
    let message = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    let (seats, source) = Seats::decode(message, count).ok_or_else(unreadable)?;
    let parsed = text::parse(source, STORAGE_FORMATS).map_err(|_| unreadable())?;
    let program = parsed.program().map_err(|e| e.to_string())?;
    verify(&program).map_err(|errors| {
        let first = errors.first();
        first.map_or_else(unreadable, |e| format!("{}: {e}", e.code))
    })?;
    match seats.ranks.of_devices().len() == program.graph.devices.len() {
        true => Ok(Some((program, seats))),
        false => Err(unreadable()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_survive_and_malformed_lines_do_not() {
        let kinds = [DeviceKind::Cuda(5), DeviceKind::Generic, DeviceKind::Cpu];
        let seats = Seats::new("emulated CUDA", &Ranks::even(3, 2), &kinds);
        let text = seats.encode() + "the program";
        assert_eq!(text, "emulated CUDA\n0/5 0 1\nthe program");
        assert_eq!(Seats::decode(&text, 2), Some((seats, "the program")));
        for wrong in [
            "",
            "CPU",
            "CPU\n0 1",
            "CPU\n0 2\n",
            "CPU\n0/x\n",
            "CPU\nx\n",
        ] {
            assert_eq!(Seats::decode(wrong, 2), None, "{wrong}");
        }
    }
}
