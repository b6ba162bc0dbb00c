//! Products of a matrix with many tokens.
#![expect(unsafe_code, reason = "kernels")]

use super::activations::{Activations, Block};
use super::format::Matrix;
use super::kernel::decode::Decode;
use super::kernel::float::Floats;
use super::kernel::table::{
    FloatKernels, QuantisedKernels, float_kernels, quantised_kernels, widest,
};
use super::kernel::tile::{Multiply, Run, Sum};
use super::kernel::unpack::{BLOCKS, Unpack, Unpacked};
use super::kernel::{PANELS, SUMS, Sums, TOKENS};
use super::layout::ROWS;
use super::layout::geometry::Geometry;
use super::output::{Epilogue, Output, Place};
use super::part::{CHUNKS, Plan};
use super::{Isa, ProductError};
use std::ops::Range;

/// Maximum number of tokens that share a decoded panel. Their activations and sums fit a cache.
const BATCH: usize = 192;

/// Rows of activations and columns of the result.
#[derive(Clone, Copy, Debug)]
pub enum Tokens<'a> {
    /// The first `n` rows; row `i` goes to column `i`.
    First(usize),
    /// For each `i`, row `from[i]` goes to column `to[i]`. Columns are distinct.
    Listed {
        /// Rows of the activations.
        from: &'a [u32],
        /// Columns of the result.
        to: &'a [u32],
    },
}

impl Tokens<'_> {
    /// Returns the number of tokens.
    pub const fn len(&self) -> usize {
        match self {
            Tokens::First(n) => *n,
            Tokens::Listed { from, .. } => from.len(),
        }
    }

    /// True if there are no tokens.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn from(&self, i: usize) -> usize {
        match self {
            Tokens::First(_) => i,
            Tokens::Listed { from, .. } => from[i] as usize,
        }
    }

    fn to(&self, i: usize) -> usize {
        match self {
            Tokens::First(_) => i,
            Tokens::Listed { to, .. } => to[i] as usize,
        }
    }

    fn fit(&self, rows: usize, columns: usize) -> bool {
        match self {
            Tokens::First(n) => *n <= rows && *n <= columns,
            Tokens::Listed { from, to } => {
                from.len() == to.len()
                    && from.iter().all(|&i| (i as usize) < rows)
                    && to.iter().all(|&i| (i as usize) < columns)
            }
        }
    }
}

/// A thread's scratch memory for products of many tokens.
pub struct Scratch {
    panels: Box<[Unpacked; PANELS]>,
    /// Sums by `[slot][token]`.
    sums: Vec<Sum>,
}

impl Scratch {
    /// Returns memory large enough for any product.
    pub fn new() -> Scratch {
        Scratch {
            panels: Box::new([Unpacked::ZERO; PANELS]),
            sums: vec![[[0.0; ROWS]; PANELS]; SUMS * BATCH],
        }
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

/// A matrix times rows of activations, checked once for all threads.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    matrix: Matrix<'a>,
    tokens: Tokens<'a>,
    epilogue: Epilogue<'a>,
    plan: Plan,
    rows: Rows<'a>,
}

#[derive(Clone, Copy)]
enum Rows<'a> {
    Quantised(QuantisedRows<'a>),
    Float { x: &'a [f32], kernels: FloatKernels },
}

#[derive(Clone, Copy)]
struct QuantisedRows<'a> {
    x: &'a [Block],
    kernels: QuantisedKernels,
    geometry: Geometry,
}

impl<'a> Product<'a> {
    /// Creates the product of `matrix` and `tokens` of `activations`.
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if the activations have the wrong type or are not whole rows, a token's row is
    /// missing, or the bias does not have one element per row.
    pub fn new(
        isa: Isa,
        matrix: Matrix<'a>,
        activations: Activations<'a>,
        tokens: Tokens<'a>,
        epilogue: Epilogue<'a>,
    ) -> Result<Product<'a>, ProductError> {
        let format = matrix.format();
        let part = format.part();
        let shape = |what| ProductError::Shape { what };
        let dtype = format.dtype();
        let unsupported = ProductError::Unsupported { dtype };
        let (rows, count) = match (activations, format.geometry()) {
            (Activations::Quantised(x), Some(geometry)) => {
                let kernels = quantised_kernels(isa, dtype).ok_or(unsupported)?;
                let rows = QuantisedRows {
                    x,
                    kernels,
                    geometry: *geometry,
                };
                (Rows::Quantised(rows), whole_rows(x.len(), part.blocks()))
            }
            (Activations::Float(x), None) => {
                let kernels = float_kernels(isa, dtype).ok_or(unsupported)?;
                (Rows::Float { x, kernels }, whole_rows(x.len(), part.k()))
            }
            _ => {
                return Err(shape(
                    "the activations' type does not match the weights' type",
                ));
            }
        };
        let count = count.ok_or(shape(
            "the activations are not whole rows of the matrix's K elements",
        ))?;
        if !tokens.fit(count, usize::MAX) {
            return Err(shape("a token has no row of activations"));
        }
        if epilogue
            .bias
            .is_some_and(|bias| bias.len() != format.rows())
        {
            return Err(shape("the bias does not have one element per row"));
        }
        Ok(Product {
            matrix,
            tokens,
            epilogue,
            plan: part.plan(),
            rows,
        })
    }

    /// Computes a range of panels by the fastest method for the number of tokens. Threads compute different panels.
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if the matrix does not have the panels, or `out` does not have their rows, a
    /// token or a root.
    pub fn run(
        &self,
        panels: Range<usize>,
        out: &mut Output,
        scratch: &mut Scratch,
    ) -> Result<(), ProductError> {
        let few = match &self.rows {
            Rows::Quantised(rows) => rows.kernels.few,
            Rows::Float { .. } => usize::MAX,
        };
        if self.tokens.len() > few {
            self.gemm(panels, out, scratch)
        } else {
            self.gemv(panels, out)
        }
    }

    /// Computes a range of panels for few tokens, decoding weights in registers.
    ///
    /// # Errors
    /// Returns the errors of [`Product::run`].
    pub fn gemv(&self, panels: Range<usize>, out: &mut Output) -> Result<(), ProductError> {
        self.check(&panels, out)?;
        match &self.rows {
            Rows::Quantised(rows) => {
                let mut sums: Sums = [[[[0.0; ROWS]; PANELS]; TOKENS]; SUMS];
                for panel in panels {
                    self.decode(rows, panel, &mut sums, out);
                }
            }
            Rows::Float { x, kernels } => self.floats(x, kernels, panels, out),
        }
        Ok(())
    }

    /// Computes a range of panels for many tokens, decoding weights into a cache.
    ///
    /// # Errors
    /// Returns the errors of [`Product::run`].
    pub fn gemm(
        &self,
        panels: Range<usize>,
        out: &mut Output,
        scratch: &mut Scratch,
    ) -> Result<(), ProductError> {
        self.check(&panels, out)?;
        match &self.rows {
            Rows::Quantised(rows) => {
                for start in (0..self.tokens.len()).step_by(BATCH) {
                    let tokens = start..self.tokens.len().min(start + BATCH);
                    for first in panels.clone().step_by(rows.kernels.panels) {
                        let some = first..panels.end.min(first + rows.kernels.panels);
                        self.batch(rows, some, tokens.clone(), scratch, out);
                    }
                }
            }
            Rows::Float { x, kernels } => self.floats(x, kernels, panels, out),
        }
        Ok(())
    }

    fn check(&self, panels: &Range<usize>, out: &Output) -> Result<(), ProductError> {
        let format = self.matrix.format();
        let inside = panels.start <= panels.end
            && panels.end <= format.panels()
            && out.has_panels(panels, format.rows());
        if !inside {
            return Err(ProductError::Shape {
                what: "the panels exceed the matrix or the result",
            });
        }
        if out.roots() < self.plan.roots || !self.tokens.fit(usize::MAX, out.tokens()) {
            return Err(ProductError::Shape {
                what: "the result is too small for all tokens and roots",
            });
        }
        Ok(())
    }

    fn panel(&self, panel: usize) -> *const u8 {
        self.matrix.panel(panel).as_ptr()
    }

    fn write(&self, out: &mut Output, sums: &Sums, panels: &Range<usize>, t0: usize, w: usize) {
        let end = self.matrix.format().rows();
        for (root, sums) in sums[..self.plan.roots].iter().enumerate() {
            for (t, sums) in sums[..w].iter().enumerate() {
                for (panel, values) in panels.clone().zip(sums) {
                    let token = self.tokens.to(t0 + t);
                    let at = Place {
                        panel,
                        token,
                        root,
                        end,
                    };
                    out.write(at, values, &self.epilogue);
                }
            }
        }
    }

    /// Multiplies a panel by all tokens, decoding it for every few tokens.
    fn decode(&self, rows: &QuantisedRows, panel: usize, sums: &mut Sums, out: &mut Output) {
        let mut t0 = 0;
        while t0 < self.tokens.len() {
            let (w, run) = widest(&rows.kernels.decode, self.tokens.len() - t0);
            let work = Decode {
                geometry: &rows.geometry,
                plan: &self.plan,
                panel: self.panel(panel),
                x: self.blocks(rows, t0, w),
                sums,
            };
            // SAFETY: the kernels belong to the matrix's type and to an instruction set that the machine has. The panel
            // has the type's geometry, and every token's row has the blocks of the part.
            unsafe { run(work) };
            self.write(out, sums, &(panel..panel + 1), t0, w);
            t0 += w;
        }
    }

    fn blocks(&self, rows: &QuantisedRows, t0: usize, w: usize) -> [*const Block; TOKENS] {
        let k = rows.geometry.blocks;
        std::array::from_fn(|t| {
            let row = self.tokens.from(t0 + t.min(w - 1)) * k;
            rows.x[row..row + k].as_ptr()
        })
    }

    fn batch(
        &self,
        rows: &QuantisedRows,
        panels: Range<usize>,
        tokens: Range<usize>,
        scratch: &mut Scratch,
        out: &mut Output,
    ) {
        let x = self.row_pointers(rows, tokens.clone());
        groups(&self.plan, |blocks, runs| {
            for (v, panel) in panels.clone().enumerate() {
                let work = Unpack {
                    geometry: &rows.geometry,
                    panel: self.panel(panel),
                    blocks: blocks.clone(),
                    out: &mut scratch.panels[v],
                };
                // SAFETY: as in `decode`; the blocks belong to the part, and there are at most `BLOCKS`.
                unsafe { (rows.kernels.unpack)(work) };
            }
            let x = &x[..tokens.len() + 2 * TOKENS];
            self.tiles(rows, panels.len(), x, blocks.start, runs, scratch);
        });
        let end = self.matrix.format().rows();
        for root in 0..self.plan.roots {
            for (i, t) in tokens.clone().enumerate() {
                for panel in panels.clone() {
                    let values = &scratch.sums[root * BATCH + i][panel - panels.start];
                    let token = self.tokens.to(t);
                    out.write(
                        Place {
                            panel,
                            token,
                            root,
                            end,
                        },
                        values,
                        &self.epilogue,
                    );
                }
            }
        }
    }

    /// Returns the rows of some tokens, at most [`BATCH`]. The last row is repeated to the end.
    fn row_pointers(
        &self,
        rows: &QuantisedRows,
        tokens: Range<usize>,
    ) -> [*const Block; BATCH + 2 * TOKENS] {
        let k = rows.geometry.blocks;
        std::array::from_fn(|i| {
            let row = self.tokens.from((tokens.start + i).min(tokens.end - 1)) * k;
            rows.x[row..row + k].as_ptr()
        })
    }

    /// Multiplies decoded panels by all tokens. `x` has their rows, then `2 · TOKENS` more.
    fn tiles(
        &self,
        rows: &QuantisedRows,
        panels: usize,
        x: &[*const Block],
        start: usize,
        runs: &[Run],
        scratch: &mut Scratch,
    ) {
        let tokens = x.len() - 2 * TOKENS;
        let mut t0 = 0;
        while t0 < tokens {
            let (w, run) = widest(&rows.kernels.tile[panels - 1], tokens - t0);
            let work = Multiply {
                panels: &scratch.panels,
                runs,
                x: &x[t0..],
                start,
                sums: scratch.sums[t0..].as_mut_ptr(),
                stride: BATCH,
            };
            // SAFETY: as in `decode`. The panels are decoded, and the sums of `w` tokens exist in every slot. A plan
            // never merges more sums than exist.
            unsafe { run(work) };
            t0 += w;
        }
    }

    fn floats(&self, x: &[f32], kernels: &FloatKernels, panels: Range<usize>, out: &mut Output) {
        let format = self.matrix.format();
        let k = format.part().k();
        let mut sums: Sums = [[[[0.0; ROWS]; PANELS]; TOKENS]; SUMS];
        for first in panels.clone().step_by(kernels.panels) {
            let some = first..panels.end.min(first + kernels.panels);
            let mut t0 = 0;
            while t0 < self.tokens.len() {
                let (w, run) = widest(&kernels.run[some.len() - 1], self.tokens.len() - t0);
                let row = |t: usize| {
                    let row = self.tokens.from(t0 + t.min(w - 1)) * k;
                    x[row..row + k].as_ptr()
                };
                let work = Floats {
                    plan: &self.plan,
                    k,
                    panel: self.panel(first),
                    panel_bytes: format.panel_bytes(),
                    x: std::array::from_fn(row),
                    sums: &mut sums,
                };
                // SAFETY: the kernels belong to the matrix's type and to an instruction set that the machine has. The
                // panels and every token's row have the elements of the part.
                unsafe { run(work) };
                self.write(out, &sums, &some, t0, w);
                t0 += w;
            }
        }
    }
}

/// Calls `f` with each group of at most [`BLOCKS`] adjacent blocks, and with its runs.
fn groups(plan: &Plan, mut f: impl FnMut(Range<usize>, &[Run])) {
    let mut runs = [Run::default(); CHUNKS];
    let (mut count, mut slot, mut from, mut at) = (0, 0, 0, 0);
    for segment in plan.segments() {
        at = segment.start;
        loop {
            let end = segment.end.min(from + BLOCKS);
            let last = end == segment.end;
            runs[count] = Run {
                blocks: end - at,
                slot,
                first: at == segment.start,
                merges: if last { segment.merges } else { 0 },
            };
            (count, at) = (count + 1, end);
            if at == from + BLOCKS {
                f(from..at, &runs[..count]);
                (count, from) = (0, at);
            }
            if last {
                break;
            }
        }
        slot = slot + 1 - segment.merges;
    }
    if count > 0 {
        f(from..at, &runs[..count]);
    }
}

/// Returns the number of rows in `len` elements, if all rows are whole.
fn whole_rows(len: usize, k: usize) -> Option<usize> {
    len.is_multiple_of(k).then_some(len / k)
}
