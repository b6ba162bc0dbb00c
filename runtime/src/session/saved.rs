//! Sessions saved in files.
//!
//! All numbers are little-endian. A name is its length as u32 and its bytes. The parts in order:
//!
//! | part | content |
//! |---|---|
//! | begin | `tpcstate`, the version of the format (u32), the checksum of the model (u64) |
//! | states | their number (u32); per state its name, its type's name, the kind of its cells (u32), elements and rows of a cell (u64 each) |
//! | caches | for the full cache and the windowed one: the sequences, then the cells up to the last one in use |
//! | owners | the number of cells of recurrent states (u32), and per cell the sequence, or 2³² (u64) |
//! | texts | their number (u32); per text its sequence (u32), its length (u64) and the tokens (u32 each) |
//! | cells | per state the bytes of the cells up to the last one in use |
//! | end | the [`Checksum`] of all bytes before it (u64) |
//!
//! States belong to the model, not to its places: a session saved on two devices also runs on one. [`Session::load`]
//! checks the whole file before it changes the session.

use std::io::{self, Write};

use super::Session;
use super::config::SessionConfig;
use super::kv_cells::KvCells;
use super::logical::{LogicalState, known_states};
use crate::checksum::Checksum;
use crate::error::ExecError;
use crate::executor::Executor;
use crate::states::CellKind;

const MAGIC: &[u8; 8] = b"tpcstate";
const VERSION: u32 = 1;
const NOBODY: u64 = 1 << 32;
/// Number of cells that are read at once.
const AT_ONCE: usize = 256;

/// A sequence and its tokens.
pub type SequenceText = (u32, Vec<u32>);

/// Error of saving a session.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The states cannot be read.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

struct Writer<'w> {
    out: &'w mut dyn Write,
    sum: Checksum,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.out.write_all(bytes)
    }

    fn u32(&mut self, n: u32) -> io::Result<()> {
        self.bytes(&n.to_le_bytes())
    }

    fn u64(&mut self, n: u64) -> io::Result<()> {
        self.bytes(&n.to_le_bytes())
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        self.u32(name.len() as u32)?;
        self.bytes(name.as_bytes())
    }
}

struct Reader<'b> {
    rest: &'b [u8],
}

fn damaged(what: impl Into<String>) -> ExecError {
    ExecError::StateFile { what: what.into() }
}

impl<'b> Reader<'b> {
    fn bytes(&mut self, n: usize) -> Result<&'b [u8], ExecError> {
        let split = self.rest.split_at_checked(n);
        let (bytes, rest) = split.ok_or_else(|| damaged("the file ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ExecError> {
        let bytes = self.bytes(N)?;
        bytes
            .try_into()
            .map_err(|_| damaged("the file ends too early"))
    }

    fn u32(&mut self) -> Result<u32, ExecError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ExecError> {
        self.array().map(u64::from_le_bytes)
    }

    fn name(&mut self) -> Result<&'b str, ExecError> {
        let n = self.u32()? as usize;
        std::str::from_utf8(self.bytes(n)?).map_err(|_| damaged("a name is not UTF-8"))
    }

    /// Reads a number of items of `size` bytes. Checks that enough bytes remain.
    fn count(&mut self, size: usize) -> Result<usize, ExecError> {
        let n = self.u64()?;
        let n = usize::try_from(n).ok().filter(|n| {
            n.checked_mul(size)
                .is_some_and(|bytes| bytes <= self.rest.len())
        });
        n.ok_or_else(|| damaged("the file ends too early"))
    }
}

const fn kind_number(kind: CellKind) -> u32 {
    match kind {
        CellKind::Full => 0,
        CellKind::Windowed => 1,
        CellKind::Sequence => 2,
    }
}

impl LogicalState {
    fn write_head(&self, out: &mut Writer<'_>) -> io::Result<()> {
        out.name(&self.name)?;
        out.name(&self.dtype.to_string())?;
        out.u32(kind_number(self.kind))?;
        self.row.iter().try_for_each(|&n| out.u64(n as u64))
    }

    fn check_head(&self, from: &mut Reader<'_>) -> Result<(), ExecError> {
        let differs = |what: String| ExecError::StateModel { what };
        let (name, dtype) = (from.name()?, from.name()?);
        let (kind, row) = (from.u32()?, [from.u64()?, from.u64()?]);
        if name != self.name {
            return Err(differs(format!(
                "state {name:?} in the session is {:?} in this model",
                self.name
            )));
        }
        if dtype != self.dtype.to_string() {
            return Err(differs(format!(
                "{name} has type {dtype} in the session, {} in this model",
                self.dtype
            )));
        }
        if kind != kind_number(self.kind) || row != self.row.map(|n| n as u64) {
            return Err(differs(format!("{name} has cells of another size")));
        }
        Ok(())
    }
}

impl KvCells {
    fn write(&self, out: &mut Writer<'_>) -> io::Result<()> {
        let sequences = self.saved_sequences();
        out.u64(sequences.len() as u64)?;
        for (seq, next, lost) in sequences {
            out.u32(seq)?;
            out.u64(next)?;
            out.u64(lost)?;
        }
        out.u64(self.head() as u64)?;
        out.u64(self.held().len() as u64)?;
        for cell in self.held() {
            out.u32(u32::from(cell.is_some()))?;
            out.u32(cell.map_or(0, |c| c.seq))?;
            out.u32(cell.map_or(0, |c| c.pos))?;
        }
        Ok(())
    }

    fn read(&self, from: &mut Reader<'_>) -> Result<KvCells, ExecError> {
        let mut sequences = Vec::new();
        for _ in 0..from.count(20)? {
            sequences.push((from.u32()?, from.u64()?, from.u64()?));
        }
        let head = usize::try_from(from.u64()?).unwrap_or(usize::MAX);
        let mut cells = Vec::new();
        for _ in 0..from.count(12)? {
            let (held, seq, pos) = (from.u32()?, from.u32()?, from.u32()?);
            cells.push((held != 0).then_some(super::TokenPos { pos, seq }));
        }
        if cells.len() > self.len() {
            return Err(ExecError::StateModel {
                what: format!(
                    "the session uses {} cells, the context has {}",
                    cells.len(),
                    self.len()
                ),
            });
        }
        self.restored(&sequences, head, cells)
            .ok_or_else(|| damaged("inconsistent cells"))
    }
}

fn used(
    kind: CellKind,
    full: &KvCells,
    windowed: Option<&KvCells>,
    owners: &[Option<u32>],
) -> usize {
    match kind {
        CellKind::Full => full.held().len(),
        CellKind::Windowed => windowed.map_or(0, |cells| cells.held().len()),
        CellKind::Sequence => owners
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |i| i + 1),
    }
}

impl<E: Executor + ?Sized> Session<E> {
    /// Writes the session and its sequences' texts. `model` is a checksum of the model.
    ///
    /// # Errors
    /// Returns [`ExecError::NoStates`] if the executor does not provide its states, and I/O errors of the file.
    pub fn save(
        &self,
        model: u64,
        texts: &[SequenceText],
        out: &mut dyn Write,
    ) -> Result<(), SaveError> {
        let states = known_states(&self.states)?;
        for state in states {
            state.check(&*self.executor)?;
        }
        let mut out = Writer {
            out,
            sum: Checksum::default(),
        };
        out.bytes(MAGIC)?;
        out.u32(VERSION)?;
        out.u64(model)?;
        out.u32(states.len() as u32)?;
        for state in states {
            state.write_head(&mut out)?;
        }
        let cells = &self.cells;
        cells.full.write(&mut out)?;
        out.u32(u32::from(cells.windowed.is_some()))?;
        if let Some(cells) = &cells.windowed {
            cells.write(&mut out)?;
        }
        let owners = cells.states.as_ref().map_or(&[][..], |s| s.owners());
        out.u32(owners.len() as u32)?;
        for owner in owners {
            out.u64(owner.map_or(NOBODY, u64::from))?;
        }
        out.u32(texts.len() as u32)?;
        for (seq, tokens) in texts {
            out.u32(*seq)?;
            out.u64(tokens.len() as u64)?;
            tokens.iter().try_for_each(|&t| out.u32(t))?;
        }
        let mut bytes = Vec::new();
        for state in states {
            let used = used(state.kind, &cells.full, cells.windowed.as_ref(), owners);
            for cell in (0..used).step_by(AT_ONCE) {
                bytes.resize(AT_ONCE.min(used - cell) * state.cell_bytes(), 0);
                state.read(&*self.executor, cell, &mut bytes)?;
                out.bytes(&bytes)?;
            }
        }
        let sum = out.sum.value();
        out.u64(sum)?;
        Ok(())
    }

    /// Replaces the session with a saved one, and returns its sequences' texts. `model` is a checksum of the model.
    ///
    /// # Errors
    /// Returns [`ExecError::StateFile`], [`ExecError::StateVersion`] or [`ExecError::StateModel`] if the bytes are not
    /// a session, or belong to another version or model. The session is then unchanged. Returns [`ExecError::NoStates`]
    /// if the executor does not provide its states.
    pub fn load(&mut self, model: u64, bytes: &[u8]) -> Result<Vec<SequenceText>, ExecError> {
        for state in known_states(&self.states)? {
            state.check(&*self.executor)?;
        }
        let mut from = Reader { rest: bytes };
        if from.bytes(8).ok() != Some(MAGIC) {
            return Err(damaged("not a saved session"));
        }
        let version = from.u32()?;
        if version != VERSION {
            return Err(ExecError::StateVersion {
                found: version,
                known: VERSION,
            });
        }
        let Some((body, sum)) = bytes.split_last_chunk::<8>() else {
            return Err(damaged("the file ends too early"));
        };
        if Checksum::of(body) != u64::from_le_bytes(*sum) {
            return Err(damaged("wrong checksum: the file is damaged or incomplete"));
        }
        from.rest = &body[12.min(body.len())..];
        let saved = self.parse(model, &mut from)?;
        self.restore(saved, from.rest)
    }

    /// Reads all parts before the bytes of the cells, and checks the number of these bytes.
    fn parse(&self, model: u64, from: &mut Reader<'_>) -> Result<Saved, ExecError> {
        let other = |what: &str| ExecError::StateModel { what: what.into() };
        if from.u64()? != model {
            return Err(other("the model file differs"));
        }
        let states = known_states(&self.states)?;
        if from.u32()? as usize != states.len() {
            return Err(other("the number of states differs"));
        }
        for state in states {
            state.check_head(from)?;
        }
        let full = self.cells.full.read(from)?;
        let windowed = match (from.u32()?, &self.cells.windowed) {
            (0, None) => None,
            (1, Some(cells)) => Some(cells.read(from)?),
            _ => return Err(other("only one of the models has a sliding-window cache")),
        };
        let mut owners = Vec::new();
        for _ in 0..from.u32()? {
            let owner = from.u64()?;
            owners.push(u32::try_from(owner).ok());
        }
        check_owners(&owners, self.cells.states.is_some(), &self.config)?;
        let mut texts = Vec::new();
        for _ in 0..from.u32()? {
            let seq = from.u32()?;
            let n = from.count(4)?;
            let tokens: Result<Vec<u32>, ExecError> = (0..n).map(|_| from.u32()).collect();
            texts.push((seq, tokens?));
        }
        let mut bytes = states.iter().map(|s| {
            let cells = used(s.kind, &full, windowed.as_ref(), &owners);
            cells.checked_mul(s.cell_bytes())
        });
        let bytes = bytes.try_fold(0_usize, |sum, n| sum.checked_add(n?));
        if bytes != Some(from.rest.len()) {
            return Err(damaged("the number of bytes does not match the cells"));
        }
        Ok(Saved {
            full,
            windowed,
            owners,
            texts,
        })
    }

    fn restore(&mut self, saved: Saved, mut bytes: &[u8]) -> Result<Vec<SequenceText>, ExecError> {
        self.clear()?;
        for state in known_states(&self.states)? {
            let n = used(
                state.kind,
                &saved.full,
                saved.windowed.as_ref(),
                &saved.owners,
            );
            let (own, rest) = bytes.split_at(n * state.cell_bytes());
            state.write(&mut *self.executor, 0, own)?;
            bytes = rest;
        }
        // The file does not tell if a context shift turned keys.
        let sequences = saved.full.saved_sequences();
        self.shifted.extend(sequences.iter().map(|s| (s.0, 0)));
        self.cells.full = saved.full;
        self.cells.windowed = saved.windowed;
        if let Some(states) = &mut self.cells.states {
            states.set_owners(&saved.owners);
        }
        Ok(saved.texts)
    }
}

struct Saved {
    full: KvCells,
    windowed: Option<KvCells>,
    owners: Vec<Option<u32>>,
    texts: Vec<SequenceText>,
}

/// Checks that owners of recurrent states fit the session and are distinct.
fn check_owners(
    owners: &[Option<u32>],
    recurrent: bool,
    config: &SessionConfig,
) -> Result<(), ExecError> {
    let last = owners.iter().rposition(Option::is_some);
    if !recurrent && last.is_some() || last.is_some_and(|i| i >= config.n_seq_max) {
        let what = format!("more than {} sequences", config.n_seq_max);
        return Err(ExecError::StateModel { what });
    }
    let mut all: Vec<u32> = owners.iter().copied().flatten().collect();
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    match all.len() == n {
        true => Ok(()),
        false => Err(damaged("a sequence owns two recurrent states")),
    }
}
