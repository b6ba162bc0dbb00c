//! The commands of rank 0, and their bytes: a number for the kind, then little-endian numbers.

use tpc_ir::{Bindings, Symbol, Value};

/// The end of the batch before a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ended {
    #[default]
    Open,
    Committed,
    Discarded,
}

/// A call of rank 0's executor.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Command {
    /// Runs a phase. Its inputs follow as messages.
    Phase { first: bool, sizes: Bindings },
    /// Sets all states to zero.
    Reset,
    /// Sends bytes of a state or a weight back.
    Read {
        value: Value,
        offset: usize,
        len: usize,
    },
    /// Writes bytes of a state.
    Write {
        value: Value,
        offset: usize,
        bytes: Vec<u8>,
    },
    /// Ends the rank.
    Quit,
}

const PHASE: u8 = 0;
const RESET: u8 = 1;
const READ: u8 = 2;
const WRITE: u8 = 3;
const QUIT: u8 = 4;

impl Command {
    pub(super) fn encode(&self, ended: Ended) -> Vec<u8> {
        let mut out = vec![ended as u8];
        let mut numbers = |kind: u8, numbers: &[u64]| {
            out.push(kind);
            out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        };
        match self {
            Command::Phase { first, sizes } => {
                let all = Symbol::ALL.into_iter().map(|s| sizes.get(s));
                let head = [u64::from(*first), sizes.unit()];
                numbers(PHASE, &head.into_iter().chain(all).collect::<Vec<_>>());
            }
            Command::Reset => numbers(RESET, &[]),
            Command::Read { value, offset, len } => {
                numbers(READ, &[value.index() as u64, *offset as u64, *len as u64]);
            }
            Command::Write {
                value,
                offset,
                bytes,
            } => {
                numbers(WRITE, &[value.index() as u64, *offset as u64]);
                out.extend(bytes);
            }
            Command::Quit => numbers(QUIT, &[]),
        }
        out
    }

    /// Reads a command. Returns `None` if it is malformed.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Ended, Command)> {
        let (&[ended, kind], rest) = bytes.split_first_chunk::<2>()?;
        let ended = match ended {
            0 => Ended::Open,
            1 => Ended::Committed,
            2 => Ended::Discarded,
            _ => return None,
        };
        let mut rest = Numbers(rest);
        let command = match kind {
            PHASE => {
                let (first, unit) = (rest.next()? != 0, rest.next()?);
                let mut sizes = Bindings::default().in_units(unit.max(1));
                for symbol in Symbol::ALL {
                    sizes = sizes.with(symbol, rest.next()?);
                }
                Command::Phase { first, sizes }
            }
            RESET => Command::Reset,
            READ => Command::Read {
                value: rest.value()?,
                offset: rest.size()?,
                len: rest.size()?,
            },
            WRITE => Command::Write {
                value: rest.value()?,
                offset: rest.size()?,
                bytes: std::mem::take(&mut rest.0).to_vec(),
            },
            QUIT => Command::Quit,
            _ => return None,
        };
        rest.0.is_empty().then_some((ended, command))
    }
}

struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.next()?).ok()
    }

    fn value(&mut self) -> Option<Value> {
        let index = u32::try_from(self.next()?).ok()?;
        Some(Value::new(index as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_and_malformed_bytes_do_not() {
        let sizes = Bindings::default()
            .in_units(128)
            .with(Symbol::NTokens, 7)
            .with(Symbol::NKv, 1000);
        let (value, offset) = (Value::new(9), 40);
        let all = [
            Command::Phase { first: true, sizes },
            Command::Reset,
            Command::Read {
                value,
                offset,
                len: 3,
            },
            Command::Write {
                value,
                offset,
                bytes: vec![1, 2, 3],
            },
            Command::Quit,
        ];
        for command in all {
            let bytes = command.encode(Ended::Committed);
            let whole = Command::decode(&bytes);
            for cut in 0..bytes.len() {
                let found = Command::decode(&bytes[..cut]);
                assert!(found.is_none_or(|(_, c)| matches!(c, Command::Write { .. })));
            }
            assert_eq!(whole, Some((Ended::Committed, command)));
        }
        assert_eq!(Command::decode(&[3, RESET]), None);
        assert_eq!(Command::decode(&[0, 9]), None);
    }
}
