//! Packed weights.

use super::error::ProductError;
use super::kernel::table::{Quantised, quantised};
use super::layout::ROWS;
use super::layout::geometry::Geometry;
use super::pack::{PackPanel, pack_plain};
use super::part::{BLOCK, Part};
use crate::pages::Pages;
use half::f16;
use std::ops::Range;
use tpc_ir::DType;
use tpc_runtime::quant::dequantise;

/// Rows per panel. Threads divide work by panels.
pub const PANEL_ROWS: usize = ROWS;

/// The stored form of a matrix: panels of 16 rows. Zeros pad the last panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    dtype: DType,
    rows: usize,
    part: Part,
    panel_bytes: usize,
    stored: Stored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Quantised(Geometry),
    /// Bytes per element.
    Floats(usize),
}

/// A matrix as in the file, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The blocks of all rows.
    pub bytes: &'a [u8],
    /// Index in K of the first stored element.
    pub from: usize,
    /// Elements per stored row: whole file blocks that include the part.
    pub k: usize,
}

impl Format {
    /// Returns the format of `rows` rows with `part` of K.
    ///
    /// # Errors
    /// Returns [`ProductError::Unsupported`] if the type has no products, and [`ProductError::Size`] if rows are not
    /// whole blocks or too large. Returns [`ProductError::Part`] if the part cuts a block of nvfp4; other types can
    /// be cut at every 32 elements.
    pub fn new(dtype: DType, rows: usize, part: Part) -> Result<Format, ProductError> {
        let size = ProductError::Size {
            dtype,
            rows,
            k: part.global(),
        };
        // Padding to whole panels and cache lines less than doubles the size.
        let bytes = dtype.bytes(part.global() as u64).ok_or(size)?;
        let all = (rows as u64)
            .checked_add(ROWS as u64)
            .and_then(|rows| bytes.checked_add(4096)?.checked_mul(4)?.checked_mul(rows));
        if part.k() == 0 || all.is_none_or(|all| all > isize::MAX as u64) {
            return Err(size);
        }
        let (stored, panel_bytes) = match dtype {
            DType::F32 | DType::F64 => (Stored::Floats(4), part.k() * 4 * ROWS),
            DType::F16 | DType::Bf16 | DType::F8E4M3 => (Stored::Floats(2), part.k() * 2 * ROWS),
            _ => {
                let Quantised {
                    geometry, granule, ..
                } = quantised(dtype).ok_or(ProductError::Unsupported { dtype })?;
                let (first, blocks) = (part.start() / BLOCK, part.blocks());
                if !first.is_multiple_of(granule) || !blocks.is_multiple_of(granule) {
                    return Err(ProductError::Part {
                        k: part.global(),
                        start: part.start(),
                        end: part.end(),
                    });
                }
                let geometry = geometry(first, blocks);
                (Stored::Quantised(geometry), geometry.panel)
            }
        };
        Ok(Format {
            dtype,
            rows,
            part,
            panel_bytes: panel_bytes.next_multiple_of(64),
            stored,
        })
    }

    /// True if products support this type.
    pub fn supports(dtype: DType) -> bool {
        quantised(dtype).is_some()
            || matches!(
                dtype,
                DType::F32 | DType::F64 | DType::F16 | DType::Bf16 | DType::F8E4M3
            )
    }

    /// True if scales are stored per 256 elements of whole rows. A part's stored form then depends on its start.
    pub fn has_steps(dtype: DType) -> bool {
        quantised(dtype).is_some_and(|of| of.granule == 1) && dtype.block_len() > BLOCK as u64
    }

    /// Returns the element type in the file.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the part of K.
    pub const fn part(&self) -> Part {
        self.part
    }

    /// Returns the number of panels.
    pub const fn panels(&self) -> usize {
        self.rows.div_ceil(ROWS)
    }

    /// Returns the bytes of a panel, whole cache lines.
    pub const fn panel_bytes(&self) -> usize {
        self.panel_bytes
    }

    /// Returns the bytes of the matrix.
    pub const fn bytes(&self) -> usize {
        self.panels() * self.panel_bytes
    }

    /// True if products take quantised activations.
    pub const fn takes_quantised(&self) -> bool {
        matches!(self.stored, Stored::Quantised(_))
    }

    pub(super) const fn geometry(&self) -> Option<&Geometry> {
        match &self.stored {
            Stored::Quantised(geometry) => Some(geometry),
            Stored::Floats(_) => None,
        }
    }

    /// Packs a range of panels into `out`, [`Format::panel_bytes`] each. Threads may pack different panels.
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if the source is not whole blocks or does not contain the part, or panels do
    /// not exist. Returns [`ProductError::Length`] if the source or `out` has the wrong length.
    pub fn pack(
        &self,
        source: Source,
        panels: Range<usize>,
        out: &mut [u8],
    ) -> Result<(), ProductError> {
        let stride = self.check_source(source)?;
        if panels.start > panels.end || panels.end > self.panels() {
            return Err(ProductError::Shape {
                what: "the panels exceed the matrix",
            });
        }
        let expected = panels.len() * self.panel_bytes;
        if out.len() != expected {
            return Err(ProductError::Length {
                what: "packed panels",
                expected,
                found: out.len(),
            });
        }
        out.fill(0);
        for (panel, out) in panels.zip(out.chunks_exact_mut(self.panel_bytes)) {
            let rows = panel * ROWS..self.rows.min((panel + 1) * ROWS);
            let rows = &source.bytes[rows.start * stride..rows.end * stride];
            self.pack_panel(source.from, rows, stride, out);
        }
        Ok(())
    }

    fn check_source(&self, source: Source) -> Result<usize, ProductError> {
        let Source { bytes, from, k } = source;
        let whole = self.dtype.bytes(k as u64);
        let starts = (from as u64).is_multiple_of(self.dtype.block_len());
        let ends = from
            .checked_add(k)
            .is_some_and(|end| self.part.end() <= end);
        let (Some(stride), true, true) = (whole, starts && from <= self.part.start(), ends) else {
            return Err(ProductError::Shape {
                what: "the source is not whole blocks or does not contain the part",
            });
        };
        let expected = (stride as usize).checked_mul(self.rows);
        if expected != Some(bytes.len()) {
            return Err(ProductError::Length {
                what: "bytes of the source",
                expected: expected.unwrap_or(usize::MAX),
                found: bytes.len(),
            });
        }
        Ok(stride as usize)
    }

    fn pack_panel(&self, from: usize, rows: &[u8], stride: usize, out: &mut [u8]) {
        match (&self.stored, quantised(self.dtype)) {
            (Stored::Quantised(geometry), Some(layout)) => {
                let work = PackPanel {
                    geometry,
                    rows,
                    stride,
                    from,
                    first: self.part.start() / BLOCK,
                };
                (layout.pack)(&work, out);
            }
            _ => self.pack_floats(from, rows, stride, out),
        }
    }

    fn pack_floats(&self, from: usize, rows: &[u8], stride: usize, out: &mut [u8]) {
        let bytes = self.dtype.block_bytes() as usize;
        let at = (self.part.start() - from) * bytes;
        let end = at + self.part.k() * bytes;
        for (row, all) in rows.chunks(stride).enumerate() {
            let elements = &all[at..end];
            let values = || {
                let mut values = vec![0.0; self.part.k()];
                dequantise(self.dtype, elements, &mut values)
                    .expect("invariant: a row has its elements");
                values
            };
            match self.dtype {
                DType::F64 => {
                    let values: Vec<u8> = values().iter().flat_map(|v| v.to_le_bytes()).collect();
                    pack_plain(&values, row, 4, out);
                }
                // Every f8 is an f16.
                DType::F8E4M3 => {
                    let halves = values().into_iter().map(f16::from_f32);
                    let halves: Vec<u8> = halves.flat_map(f16::to_le_bytes).collect();
                    pack_plain(&halves, row, 2, out);
                }
                _ => pack_plain(elements, row, bytes, out),
            }
        }
    }
}

/// A packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    format: Format,
    bytes: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// Wraps `bytes` filled by [`Format::pack`]. Reading is fastest from the start of a cache line.
    ///
    /// # Errors
    /// Returns [`ProductError::Length`] if the number of bytes is not [`Format::bytes`].
    pub fn new(format: Format, bytes: &'a [u8]) -> Result<Matrix<'a>, ProductError> {
        if bytes.len() != format.bytes() {
            return Err(ProductError::Length {
                what: "bytes of the matrix",
                expected: format.bytes(),
                found: bytes.len(),
            });
        }
        Ok(Matrix { format, bytes })
    }

    /// Returns the format.
    pub const fn format(&self) -> &Format {
        &self.format
    }

    pub(super) fn panel(&self, panel: usize) -> &'a [u8] {
        let bytes = self.format.panel_bytes;
        &self.bytes[panel * bytes..(panel + 1) * bytes]
    }
}

/// A packed matrix with its own memory.
#[derive(Debug)]
pub struct Packed {
    format: Format,
    pages: Pages,
}

impl Packed {
    /// Packs a matrix of `rows` rows of `k` elements.
    ///
    /// # Errors
    /// Returns the errors of [`Format::new`] and [`Format::pack`].
    pub fn new(dtype: DType, bytes: &[u8], rows: usize, k: usize) -> Result<Packed, ProductError> {
        Packed::part(dtype, Source { bytes, from: 0, k }, rows, Part::whole(k))
    }

    /// Packs a part of K of `rows` rows.
    ///
    /// # Errors
    /// Returns the errors of [`Format::new`] and [`Format::pack`].
    pub fn part(
        dtype: DType,
        source: Source,
        rows: usize,
        part: Part,
    ) -> Result<Packed, ProductError> {
        let format = Format::new(dtype, rows, part)?;
        let mut out = Packed::zeroed(format)?;
        format.pack(source, 0..format.panels(), out.pages.bytes_mut())?;
        Ok(out)
    }

    fn zeroed(format: Format) -> Result<Packed, ProductError> {
        let pages = Pages::zeroed(format.bytes()).map_err(|_| ProductError::Size {
            dtype: format.dtype,
            rows: format.rows,
            k: format.part.global(),
        })?;
        Ok(Packed { format, pages })
    }

    /// Copies the matrix.
    ///
    /// # Errors
    /// Returns [`ProductError::Size`] if memory runs out.
    pub fn copy(&self) -> Result<Packed, ProductError> {
        let mut out = Packed::zeroed(self.format)?;
        out.pages.bytes_mut().copy_from_slice(self.pages.bytes());
        Ok(out)
    }

    /// Borrows the matrix.
    pub fn matrix(&self) -> Matrix<'_> {
        Matrix {
            format: self.format,
            bytes: self.pages.bytes(),
        }
    }
}
