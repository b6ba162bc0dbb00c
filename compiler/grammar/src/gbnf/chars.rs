//! Sets of characters.

use std::fmt::Write;

/// A set of characters, as sorted ranges that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CharSet {
    ranges: Vec<(u32, u32)>,
}

/// The surrogates, which are not characters.
const SURROGATES: (u32, u32) = (0xd800, 0xdfff);

impl CharSet {
    pub(super) fn of(c: char) -> CharSet {
        CharSet::new(vec![(c.into(), c.into())])
    }

    /// Creates the set of these ranges, without surrogates.
    pub(super) fn new(ranges: Vec<(u32, u32)>) -> CharSet {
        let mut out = CharSet::default();
        for (first, last) in ranges {
            let parts = [
                (first, last.min(SURROGATES.0 - 1)),
                (first.max(SURROGATES.1 + 1), last.min(char::MAX.into())),
            ];
            out.ranges.extend(parts.into_iter().filter(|(a, b)| a <= b));
        }
        out.normalise();
        out
    }

    /// Returns the characters outside the set.
    pub(super) fn complement(&self) -> CharSet {
        let mut gaps = Vec::new();
        let mut next = 0;
        for &(first, last) in &self.ranges {
            if next < first {
                gaps.push((next, first - 1));
            }
            next = last + 1;
        }
        gaps.push((next, char::MAX.into()));
        CharSet::new(gaps)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a set; returns true if the union is larger.
    pub(super) fn add(&mut self, other: &CharSet) -> bool {
        let before = self.ranges.clone();
        self.ranges.extend_from_slice(&other.ranges);
        self.normalise();
        self.ranges != before
    }

    /// True if the sets share a character.
    pub(super) fn meets(&self, other: &CharSet) -> bool {
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(i), other.ranges.get(j)) {
            if a.0 <= b.1 && b.0 <= a.1 {
                return true;
            }
            match a.1 < b.1 {
                true => i += 1,
                false => j += 1,
            }
        }
        false
    }

    /// Appends a regular expression of the set.
    pub(super) fn write_regex(&self, out: &mut String) {
        out.push('[');
        for (first, last) in &self.ranges {
            // Writing to a string cannot fail.
            let _ = match first == last {
                true => write!(out, "\\x{{{first:X}}}"),
                false => write!(out, "\\x{{{first:X}}}-\\x{{{last:X}}}"),
            };
        }
        out.push(']');
    }

    fn normalise(&mut self) {
        self.ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
        for &(first, last) in &self.ranges {
            match merged.last_mut() {
                Some(previous) if first <= previous.1.saturating_add(1) => {
                    previous.1 = previous.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        self.ranges = merged;
    }
}
