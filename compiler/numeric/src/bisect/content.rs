//! The content of leaves: random, but valid for the ops that read it.

use std::collections::BTreeMap;

use tpc_ggml::capture::Record;
use tpc_ggml::op::OpKind;
use tpc_synth::Rng;

use super::classes::Class;
use super::reduce::number_in;

/// The kind of numbers that a leaf needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Numbers from −1 to 1.
    Signed,
    /// Numbers from 0 to 1, for values that roots, logarithms and divisions read.
    Positive,
    /// Numbers from 1 to 2, for divisors.
    Divisor,
    /// Numbers from −1 to 0, for the logarithms of decays.
    Negative,
    /// An attention mask: some cells are hidden, others have a bias.
    Mask,
    /// Whole numbers below a bound.
    Index(u64),
    /// Places of the elements of tokens in a transposed cache with this number of rows and columns: a column per token.
    Columns(u64, u64),
}

/// The bound of whole numbers that do not index a table, such as positions.
const UNBOUNDED: u64 = 64;

/// The contents of the leaves of several parts, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Contents(BTreeMap<Class, Content>);

impl Contents {
    /// Returns the content of a leaf.
    pub(super) fn of(&self, leaf: Class) -> Content {
        self.0.get(&leaf).copied().unwrap_or(Content::Signed)
    }

    /// Sets the content of leaves whose producer never gives a negative number.
    pub(super) fn made_by(&mut self, records: &[Record], numbers: &[Class]) {
        for (t, &class) in records.iter().zip(numbers) {
            if t.op.kind().is_some_and(is_positive) {
                self.0.insert(class, Content::Positive);
            }
        }
    }

    /// Sets the content of leaves by the ops that read them.
    pub(super) fn read_by(&mut self, records: &[Record]) {
        for t in records {
            for (position, source) in t.src.iter().enumerate() {
                let Some(s) = *source else { continue };
                let leaf = &records[records[s].root];
                let Some(class) = number_in(&leaf.name).filter(|_| leaf.is_leaf()) else {
                    continue;
                };
                match leaf.dtype.is_integer() {
                    true if transposed(records, t, position).is_some() => {
                        let columns = transposed(records, t, position);
                        self.0.extend(columns.map(|content| (class, content)));
                    }
                    true => {
                        let bound = match t.is_pure_view() {
                            true => UNBOUNDED,
                            false => bound(records, t, position),
                        };
                        let before = match self.0.get(&class) {
                            Some(Content::Index(n)) => *n,
                            // Any number is a place in the cache.
                            Some(Content::Columns(..)) => continue,
                            _ => u64::MAX,
                        };
                        // Rows that an op writes must be distinct, so the bound is as large as the readers allow.
                        self.0.insert(class, Content::Index(bound.clamp(1, before)));
                    }
                    false => {
                        if let Some(content) = numbers(t, position) {
                            self.0.insert(class, content);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the places that SET_ROWS writes in a transposed cache. llama.cpp writes each element as a row of its own.
fn transposed(records: &[Record], t: &Record, position: usize) -> Option<Content> {
    let [rows, columns, ..] = records[t.root].ne();
    let elements = t.is(OpKind::SetRows) && position == 1 && t.ne()[0] == 1;
    (elements && rows > 1).then_some(Content::Columns(rows, columns.max(1)))
}

fn is_positive(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::SoftMax
            | OpKind::Sigmoid
            | OpKind::Exp
            | OpKind::Softplus
            | OpKind::Sqr
            | OpKind::Sqrt
            | OpKind::SumRows
            | OpKind::Relu
    )
}

/// Returns the numbers that an op needs at an operand.
fn numbers(t: &Record, position: usize) -> Option<Content> {
    match (t.op.kind()?, position) {
        (OpKind::SoftMax, 1) | (OpKind::FlashAttnExt, 3) => Some(Content::Mask),
        (OpKind::Rope, 2) => Some(Content::Divisor),
        (OpKind::SsmScan, 3) => Some(Content::Negative),
        (OpKind::Div, 1) | (OpKind::Sqrt | OpKind::Log, 0) => Some(Content::Positive),
        _ => None,
    }
}

/// Returns the exclusive bound of the whole numbers that an op reads at an operand.
fn bound(records: &[Record], t: &Record, position: usize) -> u64 {
    let size = |position: usize, axis: usize| {
        let source = t.src.get(position).copied().flatten();
        source.map_or(1, |s| records[s].ne()[axis])
    };
    match (t.op.kind(), position) {
        (Some(OpKind::GetRows), 1) => size(0, 1),
        (Some(OpKind::SetRows), 1) => t.ne()[1],
        (Some(OpKind::MulMatId), 2) => size(0, 2),
        (Some(OpKind::AddId), 2) => size(1, 1),
        (Some(OpKind::SsmScan), 6) => size(0, 3),
        (Some(OpKind::Rope), 1) => UNBOUNDED,
        // An element that the op only moves may index a table later.
        _ => 2,
    }
}

/// Returns the elements of a leaf with rows of `row` elements.
pub(super) fn elements(leaf: Class, content: Content, n: usize, row: usize) -> Vec<f64> {
    let mut rng = Rng::new(5, &format!("{leaf}"));
    let mut unit = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    // Numbers of f32, so that both a run in f32 and a run in f64 have the same leaves.
    let mut next = |low: f64| f64::from((low + unit()) as f32);
    (0..n)
        .map(|i| match content {
            Content::Signed => f64::from((2.0 * next(0.0) - 1.0) as f32),
            Content::Positive => next(0.0).max(1e-3),
            Content::Divisor => next(1.0),
            Content::Negative => next(-1.0),
            Content::Mask => match next(0.0) {
                // If a row hides all its cells, its weights are not defined.
                x if x < 0.25 && i % row.max(1) != 0 => f64::NEG_INFINITY,
                x => -x,
            },
            Content::Index(bound) => ((i as u64 + 3) % bound) as f64,
            Content::Columns(rows, columns) => {
                let (row, column) = (i as u64 % rows, i as u64 / rows + 3);
                (row * columns + column % columns) as f64
            }
        })
        .collect()
}
