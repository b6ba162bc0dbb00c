//! Reads rows of a packed matrix as f32, for tables that products and lookups share.
#![expect(unsafe_code, reason = "kernels")]

use super::format::Matrix;
use super::kernel::table::{QuantisedKernels, quantised_kernels};
use super::kernel::unpack::{BLOCKS, Unpack, Unpacked};
use super::layout::ROWS;
use super::layout::geometry::Geometry;
use super::part::BLOCK;
use super::{Isa, ProductError};
use half::{bf16, f16};
use tpc_ir::DType;

impl Matrix<'_> {
    /// Reads row `row` into `out`, starting at element `from`. The bits equal [`tpc_runtime::quant::dequantise`].
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if the matrix does not have all elements or `from` is not a multiple of 32.
    pub fn read_row(
        &self,
        isa: Isa,
        row: usize,
        from: usize,
        out: &mut [f32],
    ) -> Result<(), ProductError> {
        let format = self.format();
        let dtype = format.dtype();
        let end = from.checked_add(out.len());
        let inside = row < format.rows() && end.is_some_and(|end| end <= format.part().k());
        if !inside || !from.is_multiple_of(BLOCK) {
            return Err(ProductError::Shape {
                what: "elements of the row are missing, or the first is inside a block",
            });
        }
        let (panel, lane) = (self.panel(row / ROWS), row % ROWS);
        let Some(geometry) = format.geometry() else {
            plain(dtype, panel, (from, lane), out);
            return Ok(());
        };
        let kernels = quantised_kernels(isa, dtype).ok_or(ProductError::Unsupported { dtype })?;
        let mut unpacked = Unpacked::ZERO;
        let first = from / BLOCK;
        for (i, out) in out.chunks_mut(BLOCKS * BLOCK).enumerate() {
            let start = first + i * BLOCKS;
            let blocks = start..start + out.len().div_ceil(BLOCK);
            decode(&kernels, geometry, panel, blocks, &mut unpacked);
            lane_of(&kernels, &unpacked, lane, out);
        }
        Ok(())
    }
}

fn decode(
    kernels: &QuantisedKernels,
    geometry: &Geometry,
    panel: &[u8],
    blocks: std::ops::Range<usize>,
    out: &mut Unpacked,
) {
    let work = Unpack {
        geometry,
        panel: panel.as_ptr(),
        blocks,
        out,
    };
    // SAFETY: the kernels belong to the matrix's type and to an instruction set that the machine has. The panel has the
    // type's geometry; the caller has checked the blocks.
    unsafe { (kernels.unpack)(work) };
}

fn lane_of(kernels: &QuantisedKernels, from: &Unpacked, lane: usize, out: &mut [f32]) {
    let parts = BLOCK / kernels.sub;
    for (b, out) in out.chunks_mut(BLOCK).enumerate() {
        for (i, out) in out.iter_mut().enumerate() {
            let code = from.codes[8 * b + i / 4][4 * lane + i % 4];
            let part = parts * b + i / kernels.sub;
            let value = from.scales[part][lane] * (f32::from(code) - f32::from(kernels.offset));
            *out = if kernels.min {
                value + from.mins[part][lane]
            } else {
                value
            };
        }
    }
}

fn plain(dtype: DType, panel: &[u8], (from, lane): (usize, usize), out: &mut [f32]) {
    match dtype {
        DType::F16 | DType::Bf16 | DType::F8E4M3 => {
            let (all, _) = panel.as_chunks::<2>();
            let bits = |i: usize| u16::from_le_bytes(all[(from + i) * ROWS + lane]);
            for (i, out) in out.iter_mut().enumerate() {
                *out = match dtype {
                    DType::Bf16 => bf16::from_bits(bits(i)).to_f32(),
                    _ => f16::from_bits(bits(i)).to_f32(),
                };
            }
        }
        _ => {
            let (all, _) = panel.as_chunks::<4>();
            for (i, out) in out.iter_mut().enumerate() {
                *out = f32::from_le_bytes(all[(from + i) * ROWS + lane]);
            }
        }
    }
}
