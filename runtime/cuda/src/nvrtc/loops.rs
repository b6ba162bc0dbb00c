//! The loops of a kernel's machine code.

use std::collections::BTreeMap;

/// A loop: the lines from a label to a branch back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// The first and the last line.
    pub(super) lines: (usize, usize),
    /// The instructions.
    pub(super) each: u32,
    /// The sum over the instructions of the weight that the caller gave.
    pub(super) wanted: u32,
}

impl Loop {
    fn contains(&self, other: &Loop) -> bool {
        self.lines.0 <= other.lines.0 && other.lines.1 <= self.lines.1 && self.lines != other.lines
    }
}

/// Returns all loops, also loops around other loops. `weight` gives the weight of an instruction.
pub(super) fn loops(code: &[String], weight: impl Fn(&str) -> u32) -> Vec<Loop> {
    let mut labels = BTreeMap::new();
    let mut out = Vec::new();
    let is_label = |line: &&String| line.starts_with(".L");
    for (at, line) in code.iter().enumerate() {
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label, at);
        }
        let target = line.split_once("`(").and_then(|(_, l)| l.strip_suffix(')'));
        let from = target.filter(|_| line.contains("BRA"));
        let Some(from) = from.and_then(|l| labels.get(l)) else {
            continue;
        };
        let body = code[*from..=at].iter().filter(|l| !is_label(l));
        out.push(Loop {
            lines: (*from, at),
            each: body.clone().count() as u32,
            wanted: body.map(|l| weight(l)).sum(),
        });
    }
    out
}

/// Returns the loops that contain no other loop of positive weight.
pub(super) fn innermost(all: &[Loop]) -> Vec<Loop> {
    let weighty = |l: &&Loop| l.wanted > 0;
    let inner = |l: &&Loop| !all.iter().filter(weighty).any(|o| l.contains(o));
    all.iter().filter(weighty).filter(inner).copied().collect()
}
