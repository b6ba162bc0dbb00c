//! The memory of messages to a rank.

use std::collections::BTreeMap;

use tpc_ir::Launch;
use tpc_ir::program::Program;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::Share;

use super::queue_order::launch_order;

/// The memory of messages to this rank. Messages whose readers have run leave their memory to later ones.
#[derive(Debug, Default)]
pub(super) struct Landings {
    /// The part of each message, and the first launch that reads it.
    of: BTreeMap<usize, (usize, Launch)>,
    /// The number of parts.
    pub(super) parts: usize,
}

impl Landings {
    /// Assigns a part to each message that launches of this rank read.
    pub(super) fn new(program: &Program, share: &Share) -> Result<Landings, ExecError> {
        let mut spans: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        let order = launch_order(program)?;
        for (at, launch) in order.iter().enumerate() {
            for (_, message) in share.arrivals(*launch).filter(|_| share.runs(*launch)) {
                spans.entry(message).or_insert((at, at)).1 = at;
            }
        }
        let mut spans: Vec<_> = spans.into_iter().map(|(m, (a, b))| (a, b, m)).collect();
        spans.sort_unstable();
        let ranges = spans.iter().map(|(first, last, _)| (*first, *last));
        let (parts, count) = parts(ranges);
        let of = parts.into_iter().zip(spans);
        Ok(Landings {
            of: of
                .map(|(part, (first, _, message))| (message, (part, order[first])))
                .collect(),
            parts: count,
        })
    }

    /// Returns the part of a message, and the first launch that reads it.
    pub(super) fn get(&self, message: usize) -> Option<(usize, Launch)> {
        self.of.get(&message).copied()
    }

    /// Returns the messages that launches of this rank read.
    pub(super) fn messages(&self) -> impl Iterator<Item = usize> + '_ {
        self.of.keys().copied()
    }
}

/// Assigns a part of memory to each span of positions, in the order of their starts. Spans of a part do not overlap.
/// Returns the number of parts, too.
fn parts(spans: impl Iterator<Item = (usize, usize)>) -> (Vec<usize>, usize) {
    // The last position of each part.
    let mut busy: Vec<usize> = Vec::new();
    let assigned = spans.map(|(first, last)| {
        let free = busy.iter().position(|end| *end < first);
        match free {
            Some(part) => {
                busy[part] = last;
                part
            }
            None => {
                busy.push(last);
                busy.len() - 1
            }
        }
    });
    let assigned = assigned.collect();
    (assigned, busy.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_share_memory_if_no_launch_needs_both() {
        let spans = [(0, 2), (1, 1), (2, 5), (3, 3), (6, 6)];
        assert_eq!(parts(spans.into_iter()), (vec![0, 1, 1, 0, 0], 2));
        assert_eq!(parts(std::iter::empty()), (Vec::new(), 0));
    }
}
