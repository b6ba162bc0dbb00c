//! Products with many experts.

use super::activations::Activations;
use super::format::{Format, Matrix};
use super::multiply::{Product, Scratch, Tokens};
use super::output::{Epilogue, Output};
use super::{Isa, ProductError};
use std::ops::Range;

/// The experts of each token.
///
/// A *pair* is a token and one of its experts. With `used` experts per token, pair `i` is expert `i % used` of token
/// `i / used`.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// The start of each expert's pairs, then the end.
    starts: Vec<usize>,
    pairs: Vec<u32>,
    tokens: Vec<u32>,
}

/// The activation rows that an expert reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// One row per token.
    PerToken,
    /// One row per pair.
    PerPair,
}

impl Routes {
    /// Returns empty routes. [`Routes::set`] does not allocate for up to `experts` experts and `pairs` pairs.
    pub fn with_capacity(experts: usize, pairs: usize) -> Routes {
        Routes {
            starts: Vec::with_capacity(experts + 1),
            pairs: Vec::with_capacity(pairs),
            tokens: Vec::with_capacity(pairs),
        }
    }

    /// Sorts pairs by expert, stably. `chosen` has each pair's expert.
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if an expert does not exist, or the number of pairs is not a multiple of
    /// `used`.
    pub fn set(&mut self, experts: usize, used: usize, chosen: &[u32]) -> Result<(), ProductError> {
        let shape = |what| Err(ProductError::Shape { what });
        if used == 0 || !chosen.len().is_multiple_of(used) || u32::try_from(chosen.len()).is_err() {
            return shape("tokens use different numbers of experts");
        }
        if chosen.iter().any(|&e| e as usize >= experts) {
            return shape("a used expert does not exist");
        }
        self.starts.clear();
        self.starts.resize(experts + 1, 0);
        for &e in chosen {
            self.starts[e as usize] += 1;
        }
        // Counts become ends; filling backwards turns ends into starts.
        let mut end = 0;
        for count in &mut self.starts {
            end += *count;
            *count = end;
        }
        self.pairs.clear();
        self.pairs.resize(chosen.len(), 0);
        self.tokens.clear();
        self.tokens.resize(chosen.len(), 0);
        for (pair, &e) in chosen.iter().enumerate().rev() {
            let at = &mut self.starts[e as usize];
            *at -= 1;
            self.pairs[*at] = pair as u32;
            self.tokens[*at] = (pair / used) as u32;
        }
        Ok(())
    }

    /// Returns the number of experts.
    pub const fn experts(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns the number of pairs.
    pub const fn pairs(&self) -> usize {
        self.pairs.len()
    }

    fn of(&self, expert: usize) -> Range<usize> {
        self.starts[expert]..self.starts[expert + 1]
    }
}

/// One of several equal shares of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The share's index.
    pub index: usize,
    /// The number of shares.
    pub of: usize,
}

/// Cost of reading and decoding a panel, in tokens.
const PANEL_COST: usize = 6;

/// A product of packed experts and the tokens that use them. The result has a column per pair.
#[derive(Clone, Copy)]
pub struct Grouped<'a> {
    isa: Isa,
    format: Format,
    bytes: &'a [u8],
    activations: Activations<'a>,
    input: Input,
    routes: &'a Routes,
    epilogue: Epilogue<'a>,
}

impl<'a> Grouped<'a> {
    /// Creates the product of the experts in `bytes`, each in `format`, and the activations of `routes`. The
    /// epilogue's bias has the rows of all experts in sequence.
    ///
    /// # Errors
    /// Returns [`ProductError::Length`] if `bytes` has the wrong length, or [`ProductError::Shape`] if the bias has.
    pub fn new(
        isa: Isa,
        (format, bytes): (Format, &'a [u8]),
        (activations, input): (Activations<'a>, Input),
        routes: &'a Routes,
        epilogue: Epilogue<'a>,
    ) -> Result<Grouped<'a>, ProductError> {
        let expected = format.bytes().checked_mul(routes.experts());
        if expected != Some(bytes.len()) {
            return Err(ProductError::Length {
                what: "bytes of the experts",
                expected: expected.unwrap_or(usize::MAX),
                found: bytes.len(),
            });
        }
        let rows = format.rows() * routes.experts();
        if epilogue.bias.is_some_and(|bias| bias.len() != rows) {
            return Err(ProductError::Shape {
                what: "the bias does not have one element per row of each expert",
            });
        }
        Ok(Grouped {
            isa,
            format,
            bytes,
            activations,
            input,
            routes,
            epilogue,
        })
    }

    /// Computes a share. Each panel of a used expert belongs to exactly one share. Shares take about the same time.
    ///
    /// # Errors
    /// Returns the errors of [`Product::new`] and [`Product::run`].
    pub fn run(
        &self,
        share: Share,
        out: &mut Output,
        scratch: &mut Scratch,
    ) -> Result<(), ProductError> {
        let cost = |n: usize| if n == 0 { 0 } else { n + PANEL_COST };
        let experts = 0..self.routes.experts();
        let all: usize = experts.clone().map(|e| cost(self.routes.of(e).len())).sum();
        let all = all * self.format.panels();
        let share = all * share.index / share.of.max(1)..all * (share.index + 1) / share.of.max(1);
        let mut at = 0;
        for e in experts {
            // A panel belongs to the share that contains the start of its cost.
            let each = cost(self.routes.of(e).len());
            let panel = |cost: usize| {
                let panel = cost.saturating_sub(at).div_ceil(each.max(1));
                panel.min(self.format.panels())
            };
            let panels = panel(share.start)..panel(share.end);
            at += each * self.format.panels();
            if each > 0 && !panels.is_empty() {
                self.expert(e, panels, out, scratch)?;
            }
        }
        Ok(())
    }

    fn expert(
        &self,
        expert: usize,
        panels: Range<usize>,
        out: &mut Output,
        scratch: &mut Scratch,
    ) -> Result<(), ProductError> {
        let (size, rows) = (self.format.bytes(), self.format.rows());
        let bytes = &self.bytes[expert * size..(expert + 1) * size];
        let pairs = self.routes.of(expert);
        let to = &self.routes.pairs[pairs.clone()];
        let from = match self.input {
            Input::PerToken => &self.routes.tokens[pairs],
            Input::PerPair => to,
        };
        let bias = self.epilogue.bias;
        let epilogue = Epilogue {
            bias: bias.map(|bias| &bias[expert * rows..(expert + 1) * rows]),
            ..self.epilogue
        };
        let matrix = Matrix::new(self.format, bytes)?;
        let tokens = Tokens::Listed { from, to };
        Product::new(self.isa, matrix, self.activations, tokens, epilogue)?
            .run(panels, out, scratch)
    }
}
