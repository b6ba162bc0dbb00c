//! Pre-tokenizers: the rules by which a text is cut into words, inside which byte pairs are merged.
//!
//! A pre-tokenizer is a list of steps. Each cuts the parts that the steps before it left, so that a match never crosses a
//! cut: what a step matches is a part, and what lies between two matches is one too.
//!
//! The expressions are the models' own, but for the white space at their end. Most models end with `\s+(?!\S)|\s+`: white
//! space up to the last character of a run, which goes with the word that follows. That needs a look ahead, for which no
//! engine has linear time; here the expression ends with `\s+`, and [`Spaces`] says how long a match of it is.

mod table;

use std::ops::Range;

use regex::Regex;
pub use table::names;
pub(crate) use table::{Bytes, Pre, find};

/// How a run of white space is cut that the last alternative of an expression matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spaces {
    /// As the expression matches it.
    Whole,
    /// `\s+(?!\S)|\s+`: its last character stands alone, unless the run ends the text.
    LeaveLast,
    /// As [`Spaces::LeaveLast`] in an expression with `\s*[\r\n]+` before it, which takes a run up to its last line break.
    LeaveLastOfLine,
    /// As [`Spaces::LeaveLastOfLine`], but in parts of 512, 256, … 4, 2 and 1 characters.
    Powers,
}

/// A step of a pre-tokenizer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Matches of an expression, and what lies between.
    Words(&'static str, Spaces),
    /// Matches of an expression; what lies between is dropped.
    Only(&'static str),
    /// Matches of an expression, which are runs of digits, in groups of three from their end; and what lies between.
    Thousands(&'static str),
}

/// A step whose expression is compiled.
#[derive(Clone, Debug)]
struct Cutter {
    step: Step,
    regex: Regex,
}

/// A pre-tokenizer that is ready to cut.
#[derive(Clone, Debug)]
pub(crate) struct Splitter(Vec<Cutter>);

impl Splitter {
    /// The pre-tokenizer of these steps.
    pub(crate) fn new(steps: &[Step]) -> Splitter {
        let cutter = |step: &Step| {
            let (Step::Words(pattern, _) | Step::Only(pattern) | Step::Thousands(pattern)) = *step;
            let regex = Regex::new(pattern).expect("invariant: a test compiles every expression");
            Cutter { step: *step, regex }
        };
        Splitter(steps.iter().map(cutter).collect())
    }

    /// The words of a text, in its order.
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
            // No expression matches the empty text, which a test checks.
            done = end;
        }
        if !matches!(self.step, Step::Only(_)) {
            push(done, part.len());
        }
    }
}

impl Spaces {
    /// Calls `part` with the length in bytes of each part that is taken of a match, in order; what is left is matched anew.
    /// `last` is whether the match ends the text.
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
                // The greatest power of two that is left, 512 at most.
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
