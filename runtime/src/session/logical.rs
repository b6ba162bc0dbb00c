use tpc_ir::{CellParts, DType, Interval, RANK, Value};

use crate::error::ExecError;
use crate::executor::Executor;
use crate::states::{CellKind, Rotation, StateInfo};

/// A state of the model, assembled from the parts on each place: a list of cells of equal size.
#[derive(Clone, Debug)]
pub(super) struct LogicalState {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) kind: CellKind,
    /// The elements of a cell along axis 0, and its number of rows.
    pub(super) row: [usize; 2],
    pub(super) rotations: Result<Vec<Rotation>, String>,
    parts: Vec<Part>,
}

pub(super) fn known_states(
    states: &Result<Vec<LogicalState>, ExecError>,
) -> Result<&[LogicalState], ExecError> {
    states.as_deref().map_err(Clone::clone)
}

#[derive(Clone, Debug)]
struct Part {
    state: Value,
    cell_bytes: usize,
    runs: Vec<Run>,
    /// The parts of the cells that the place stores; `None` for all cells.
    cells: Option<CellParts>,
}

/// The cells of a range that a part stores. Their places in the part follow each other.
#[derive(Debug, PartialEq, Eq)]
struct Owned {
    /// The place of the first cell.
    first: usize,
    /// The cells, counted from the start of the range.
    cells: Vec<usize>,
}

/// A run of bytes that is contiguous in the part's cell and in the whole cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    whole: usize,
    part: usize,
    len: usize,
}

impl LogicalState {
    /// Returns a model's states by name, or [`ExecError::NoStates`] for a state that is not a list of cells.
    pub(super) fn of(states: &[StateInfo]) -> Result<Vec<LogicalState>, ExecError> {
        let mut names: Vec<&str> = states.iter().map(|s| s.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let parts = |name: &str| states.iter().filter(|s| s.name == name).collect::<Vec<_>>();
        names
            .iter()
            .map(|name| {
                LogicalState::from_parts(&parts(name)).ok_or_else(|| ExecError::NoStates {
                    state: (*name).to_owned(),
                })
            })
            .collect()
    }

    fn from_parts(parts: &[&StateInfo]) -> Option<LogicalState> {
        let first = parts.first()?;
        let (kind, axis) = first.cells?;
        let dtype = first.ty.dtype;
        let alike = |p: &&&StateInfo| p.cells == first.cells && p.ty.dtype == dtype;
        if !parts.iter().all(|p| alike(&p)) || !are_all_stored(parts) {
            return None;
        }
        let cuts: Option<Vec<_>> = parts.iter().map(|p| intervals(p, axis)).collect();
        let cuts = cuts?;
        let mut size = [1; RANK];
        for (i, size) in size.iter_mut().enumerate().take(axis) {
            let ends = cuts.iter().flat_map(|c| &c[i]).map(|i| i.end());
            *size = ends.max()?;
        }
        let held = |(part, cut): (&&StateInfo, &[Vec<Interval>; RANK])| {
            let (runs, cell_bytes) = runs(dtype, cut, size)?;
            Some(Part {
                state: part.value,
                cell_bytes,
                runs,
                cells: part.cell_parts,
            })
        };
        let held: Option<Vec<Part>> = parts.iter().zip(&cuts).map(held).collect();
        let rows: u64 = size[1..].iter().product();
        Some(LogicalState {
            name: first.name.clone(),
            dtype,
            kind,
            row: [usize::try_from(size[0]).ok()?, usize::try_from(rows).ok()?],
            rotations: first.rotations.clone(),
            parts: held?,
        })
    }

    pub(super) fn cell_bytes(&self) -> usize {
        let row = self.dtype.bytes(self.row[0] as u64).unwrap_or(0);
        row as usize * self.row[1]
    }

    fn missing(&self) -> ExecError {
        ExecError::NoStates {
            state: self.name.clone(),
        }
    }

    /// Checks that the executor provides the state.
    pub(super) fn check<E: Executor + ?Sized>(&self, executor: &E) -> Result<(), ExecError> {
        for part in &self.parts {
            if !executor.read_state(part.state, 0, &mut [])? {
                return Err(self.missing());
            }
        }
        Ok(())
    }

    /// Reads consecutive cells from `cell` on. `out` holds a number of whole cells.
    pub(super) fn read<E: Executor + ?Sized>(
        &self,
        executor: &E,
        cell: usize,
        out: &mut [u8],
    ) -> Result<(), ExecError> {
        let whole = self.cell_bytes().max(1);
        let n = out.len() / whole;
        let mut copy = Vec::new();
        for part in &self.parts {
            let each = part.cell_bytes;
            if part.is_whole(whole) {
                if !executor.read_state(part.state, cell * each, out)? {
                    return Err(self.missing());
                }
                continue;
            }
            let owned = part.owned(cell, n);
            if owned.cells.is_empty() {
                continue;
            }
            copy.resize(owned.cells.len() * each, 0);
            if !executor.read_state(part.state, owned.first * each, &mut copy)? {
                return Err(self.missing());
            }
            for (at, own) in owned.cells.iter().zip(copy.chunks_exact(each.max(1))) {
                let out = &mut out[at * whole..][..whole];
                for r in &part.runs {
                    out[r.whole..][..r.len].copy_from_slice(&own[r.part..][..r.len]);
                }
            }
        }
        Ok(())
    }

    /// Writes consecutive cells from `cell` on. `bytes` holds a number of whole cells.
    pub(super) fn write<E: Executor + ?Sized>(
        &self,
        executor: &mut E,
        cell: usize,
        bytes: &[u8],
    ) -> Result<(), ExecError> {
        let whole = self.cell_bytes().max(1);
        let n = bytes.len() / whole;
        let mut copy = Vec::new();
        for part in &self.parts {
            let each = part.cell_bytes;
            let (first, own): (usize, &[u8]) = if part.is_whole(whole) {
                (cell, bytes)
            } else {
                let owned = part.owned(cell, n);
                if owned.cells.is_empty() {
                    continue;
                }
                copy.resize(owned.cells.len() * each, 0);
                for (own, at) in copy.chunks_exact_mut(each.max(1)).zip(&owned.cells) {
                    let whole = &bytes[at * whole..][..whole];
                    for r in &part.runs {
                        own[r.part..][..r.len].copy_from_slice(&whole[r.whole..][..r.len]);
                    }
                }
                (owned.first, &copy)
            };
            if !executor.write_state(part.state, first * each, own)? {
                return Err(self.missing());
            }
        }
        Ok(())
    }

    /// Reads the cells `cells`, and consecutive ones in one call.
    pub(super) fn read_all<E: Executor + ?Sized>(
        &self,
        executor: &E,
        cells: &[usize],
        mut out: &mut [u8],
    ) -> Result<(), ExecError> {
        for run in consecutive(cells) {
            let (own, rest) = out.split_at_mut(run.len() * self.cell_bytes());
            self.read(executor, run[0], own)?;
            out = rest;
        }
        Ok(())
    }

    /// Writes the cells `cells`, and consecutive ones in one call.
    pub(super) fn write_all<E: Executor + ?Sized>(
        &self,
        executor: &mut E,
        cells: &[usize],
        mut bytes: &[u8],
    ) -> Result<(), ExecError> {
        for run in consecutive(cells) {
            let (own, rest) = bytes.split_at(run.len() * self.cell_bytes());
            self.write(executor, run[0], own)?;
            bytes = rest;
        }
        Ok(())
    }
}

/// Divides cells into non-empty runs of consecutive numbers.
fn consecutive(cells: &[usize]) -> impl Iterator<Item = &[usize]> {
    cells.chunk_by(|a, b| a + 1 == *b)
}

impl Part {
    /// Returns the stored cells of the `n` cells from `cell` on.
    fn owned(&self, cell: usize, n: usize) -> Owned {
        let Some(parts) = self.cells else {
            return Owned {
                first: cell,
                cells: (0..n).collect(),
            };
        };
        let place = |at: &usize| parts.local((cell + at) as u64);
        let cells: Vec<usize> = (0..n).filter(|at| place(at).is_some()).collect();
        let first = cells.first().and_then(place).unwrap_or(0);
        Owned {
            first: usize::try_from(first).unwrap_or(usize::MAX),
            cells,
        }
    }

    /// True if the part holds all cells, and these are whole with `bytes` bytes.
    fn is_whole(&self, bytes: usize) -> bool {
        let all = Run {
            whole: 0,
            part: 0,
            len: bytes,
        };
        self.cells.is_none() && self.cell_bytes == bytes && self.runs == [all]
    }
}

/// True if every cell has a place.
fn are_all_stored(places: &[&StateInfo]) -> bool {
    let divided: Option<Vec<CellParts>> = places.iter().map(|p| p.cell_parts).collect();
    let Some(divided) = divided else {
        // A place without parts of the cells stores all of them.
        return true;
    };
    let same = divided.iter().all(|c| c.of == divided[0].of);
    let held = |part: u64| {
        divided
            .iter()
            .any(|c| part >= c.first && part - c.first < c.count)
    };
    same && (0..divided[0].of).all(held)
}

/// Returns the intervals of a cell that a part holds, along the axes before the cell axis.
fn intervals(part: &StateInfo, axis: usize) -> Option<[Vec<Interval>; RANK]> {
    let mut out: [Vec<Interval>; RANK] = std::array::from_fn(|_| vec![Interval::from_bounds(0, 1)]);
    for (i, out) in out.iter_mut().enumerate().take(axis) {
        let given = part.parts.as_ref().and_then(|p| p.get(i));
        *out = match given.filter(|g| !g.is_empty()) {
            Some(given) => given.clone(),
            None => vec![Interval::from_bounds(0, part.ty.dims[i].as_const()?)],
        };
    }
    Some(out)
}

fn runs(dtype: DType, cut: &[Vec<Interval>; RANK], size: [u64; RANK]) -> Option<(Vec<Run>, usize)> {
    let row = usize::try_from(dtype.bytes(size[0])?).ok()?;
    let indices = |axis: usize| cut[axis].iter().flat_map(|i| i.start..i.end());
    let mut out: Vec<Run> = Vec::new();
    let mut at = 0;
    for i3 in indices(3) {
        for i2 in indices(2) {
            for i1 in indices(1) {
                let index = usize::try_from((i3 * size[2] + i2) * size[1] + i1).ok()?;
                for i in &cut[0] {
                    let len = usize::try_from(dtype.bytes(i.len)?).ok()?;
                    let whole = index * row + usize::try_from(dtype.bytes(i.start)?).ok()?;
                    match out.last_mut() {
                        Some(last) if last.whole + last.len == whole => last.len += len,
                        _ => out.push(Run {
                            whole,
                            part: at,
                            len,
                        }),
                    }
                    at += len;
                }
            }
        }
    }
    Some((out, at))
}
