//! The memory that launches read and write.

use std::ops::Range;

use tpc_ir::Value;
use tpc_ir::program::Program;

use super::launches::Launches;
use super::messages::MessageWork;
use super::task::StagingPart;

/// Memory that several devices access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    /// Bytes of an arena.
    Arena { arena: usize, start: u64, end: u64 },
    /// A buffer for exchanged values of a device.
    Exchange { device: usize, number: usize },
    /// A part of a staging buffer.
    Staging { buffer: usize, part: usize },
}

impl Region {
    fn overlaps(self, other: Region) -> bool {
        match (self, other) {
            (
                Region::Arena { arena, start, end },
                Region::Arena {
                    arena: of,
                    start: first,
                    end: last,
                },
            ) => arena == of && start < last && first < end,
            _ => self == other,
        }
    }
}

/// The memory that a node of a graph reads and writes, except memory that only its own device uses.
#[derive(Clone, Debug, Default)]
pub(super) struct Accesses {
    reads: Vec<Region>,
    writes: Vec<Region>,
}

impl Accesses {
    /// Returns the accesses of a launch with these slots: the operands first, then the results.
    pub(super) fn of(
        (program, launches): (&Program, &Launches),
        slots: Range<usize>,
        (operands, results): (usize, usize),
        shape: usize,
    ) -> Accesses {
        let mut out = Accesses::default();
        for (i, slot) in slots.enumerate().take(operands + results) {
            let to = match i < operands {
                true => &mut out.reads,
                false => &mut out.writes,
            };
            to.extend(region(program, launches, slot, shape));
        }
        out
    }

    /// Returns the accesses of a message between ranks.
    pub(super) fn of_message(
        (program, launches): (&Program, &Launches),
        work: MessageWork,
        shape: usize,
    ) -> Accesses {
        let Some(plan) = &launches.plan else {
            return Accesses::default();
        };
        let staged = |part: StagingPart| Region::Staging {
            buffer: part.buffer,
            part: part.part,
        };
        let (reads, writes, own) = plan.memory(work);
        let own = own.and_then(|value| home_region(program, value, shape));
        Accesses {
            reads: reads.into_iter().map(staged).chain(own).collect(),
            writes: writes.into_iter().map(staged).collect(),
        }
    }

    /// Returns accesses of whole buffers, by number.
    #[cfg(test)]
    pub(super) fn of_buffers(reads: &[usize], writes: &[usize]) -> Accesses {
        let regions = |parts: &[usize]| {
            let each = parts.iter();
            each.map(|part| Region::Staging {
                buffer: 0,
                part: *part,
            })
            .collect()
        };
        Accesses {
            reads: regions(reads),
            writes: regions(writes),
        }
    }

    /// True if one of two nodes writes memory that the other accesses.
    pub(super) fn conflicts(&self, other: &Accesses) -> bool {
        let meet = |a: &[Region], b: &[Region]| a.iter().any(|a| b.iter().any(|b| a.overlaps(*b)));
        meet(&self.writes, &other.writes)
            || meet(&self.writes, &other.reads)
            || meet(&self.reads, &other.writes)
    }
}

/// Returns the memory of a slot; `None` if only its own device uses it.
fn region(program: &Program, launches: &Launches, slot: usize, shape: usize) -> Option<Region> {
    if let Some(staged) = launches.staged.get(&slot) {
        return Some(Region::Staging {
            buffer: staged.buffer,
            part: staged.part,
        });
    }
    if let Some(exchanged) = launches.exchanged.get(&slot) {
        return Some(Region::Exchange {
            device: exchanged.device,
            number: exchanged.number,
        });
    }
    if launches.terms.contains_key(&slot) || launches.halves.contains(&slot) {
        return None;
    }
    home_region(program, launches.slots[slot], shape)
}

/// Returns the memory of a value in its arena.
fn home_region(program: &Program, value: Value, shape: usize) -> Option<Region> {
    let buffer = program.buffer(program.home(value)?.buffer);
    let extent = buffer.extent(shape);
    Some(Region::Arena {
        arena: buffer.arena.index(),
        start: extent.offset,
        end: extent.end(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_an_arena_overlap_if_they_share_a_byte() {
        let range = |arena, start, end| Region::Arena { arena, start, end };
        assert!(range(0, 0, 10).overlaps(range(0, 9, 12)));
        assert!(!range(0, 0, 10).overlaps(range(0, 10, 12)));
        assert!(!range(0, 0, 10).overlaps(range(1, 0, 10)));
        assert!(!range(0, 0, 10).overlaps(Region::Staging { buffer: 0, part: 0 }));
    }

    #[test]
    fn two_reads_do_not_conflict() {
        let of = Accesses::of_buffers;
        assert!(!of(&[1], &[2]).conflicts(&of(&[1], &[3])));
        assert!(of(&[1], &[2]).conflicts(&of(&[2], &[])));
        assert!(of(&[1], &[]).conflicts(&of(&[], &[1])));
        assert!(of(&[], &[1]).conflicts(&of(&[], &[1])));
    }
}
