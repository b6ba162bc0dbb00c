//! Pre-tokenizers: rules that split a text into words. Byte pairs merge only within words.
//!
//! Each step splits the parts of the previous step, so matches never cross an earlier boundary. Matches and the text
//! between them become parts.
//!
//! The expressions are the models' own, except for white space at the end. Most models end with `\s+(?!\S)|\s+`: a run
//! of white space without the last character, which belongs to the next word. A linear-time engine has no lookahead.
//! Here the expression ends with `\s+`, and [`Spaces`] sets the match length.

mod table;

use std::ops::Range;

use regex::Regex;
pub use table::names;
pub(crate) use table::{Bytes, Pre, find};

/// The rule for splitting white space that the last alternative matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spaces {
    /// The whole match.
    Whole,
    /// `\s+(?!\S)|\s+`: the last character is a separate part, unless the run ends the text.
    LeaveLast,
    /// Like [`Spaces::LeaveLast`], after an alternative `\s*[\r\n]+`, which matches up to the run's last line break.
    LeaveLastOfLine,
    /// Like [`Spaces::LeaveLastOfLine`], in parts of 512, 256, …, 2 and 1 characters.
    Powers,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Splits into matches and the text between them.
    Words(&'static str, Spaces),
    /// Keeps matches and drops the text between them.
    Only(&'static str),
    /// Splits matches, which are runs of digits, into groups of three, counted from the end.
    Thousands(&'static str),
}

#[derive(Clone, Debug)]
struct Cutter {
    step: Step,
    regex: Regex,
}

#[derive(Clone, Debug)]
pub(crate) struct Splitter(Vec<Cutter>);

impl Splitter {
    pub(crate) fn new(steps: &[Step]) -> Splitter {
        let cutter = |step: &Step| {
            let (Step::Words(pattern, _) | Step::Only(pattern) | Step::Thousands(pattern)) = *step;
            let regex = Regex::new(pattern).expect("invariant: a test compiles every expression");
            Cutter { step: *step, regex }
        };
        Splitter(steps.iter().map(cutter).collect())
    }

    pub(crate) fn words(&self, text: &str) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(0..text.len());
        }
        for cutter in &self.0 {
            let before = std::mem::take(&mut parts);
            for part in before {
                cutter.cut(text, part, &mut parts);
            }
        }
        parts
    }
}

impl Cutter {
    fn cut(&self, text: &str, range: Range<usize>, out: &mut Vec<Range<usize>>) {
        let part = &text[range.clone()];
        let mut push = |from: usize, to: usize| {
            if from < to {
                out.push(range.start + from..range.start + to);
            }
        };
        let mut done = 0;
        while let Some(found) = self.regex.find_at(part, done) {
            let (start, mut end) = (found.start(), found.end());
            match self.step {
                Step::Words(_, spaces) => {
                    push(done, start);
                    let last = end == part.len();
                    end = start;
                    spaces.parts(found.as_str(), last, |length| {
                        push(end, end + length);
                        end += length;
                    });
                }
                Step::Only(_) => push(start, end),
                Step::Thousands(_) => {
                    push(done, start);
                    let digits = found.as_str().char_indices();
                    let count = digits.clone().count();
                    let mut from = start;
                    for (n, (at, _)) in digits.enumerate() {
                        if (count - n).is_multiple_of(3) {
                            push(from, start + at);
                            from = start + at;
                        }
                    }
                    push(from, end);
                }
            }
            // A test checks that no match is empty.
            done = end;
        }
        if !matches!(self.step, Step::Only(_)) {
            push(done, part.len());
        }
    }
}

impl Spaces {
    /// Calls `part` with the length in bytes of each part of a match. The rest is matched again. `last` is true if the
    /// match ends the text.
    fn parts(self, found: &str, last: bool, mut part: impl FnMut(usize)) {
        let line = found.ends_with(['\r', '\n']) && self != Spaces::LeaveLast;
        if self == Spaces::Whole || line || !found.chars().all(char::is_whitespace) {
            return part(found.len());
        }
        let mut lengths = found.chars().map(char::len_utf8);
        let run = found.chars().count();
        let mut free = match last {
            true => run,
            false => (run - 1).max(1),
        };
        while free > 0 {
            let taken = match self {
                // The largest power of two that fits, at most 512.
                Spaces::Powers => 1 << free.ilog2().min(9),
                _ => free,
            };
            part(lengths.by_ref().take(taken).sum());
            free -= taken;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;
