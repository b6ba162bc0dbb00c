//! Weight storage on the CPU.

use tpc_ir::program::{Company, FileTarget, StorageFormat, Target, WeightPart, WeightStorage};
use tpc_ir::{DType, Op, Place, TensorType};

use crate::product::{Format, Part};

/// The storage format of weights that products read: panels of sixteen rows.
pub const ROWS16: StorageFormat = StorageFormat::of_granules("rows16");

/// The default number of weights per token up to which a product has two-term activations.
pub(crate) const TWO_TERMS: u64 = 1 << 18;

/// The CPU as a target of programs. Weights that products read, including tied embedding tables, are stored in panels
/// of sixteen rows, others as in the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTarget;

/// Returns the format and number of a weight's matrices, if the type has products.
pub(crate) fn stack(weight: WeightPart<'_>) -> Option<(Format, usize)> {
    let dtype = weight.ty.dtype;
    let [k, rows, p, q] = sizes(weight.ty)?;
    if k == 0 || rows == 0 || !Format::supports(dtype) {
        return None;
    }
    // The format depends on the weight's start within a step.
    let start = match Format::has_steps(dtype) {
        true => usize::try_from(weight.start % LONGEST_BLOCK).ok()?,
        false => 0,
    };
    let end = start.checked_add(k)?;
    let block = usize::try_from(dtype.block_len()).ok()?;
    let part = Part::new(end.checked_next_multiple_of(block)?, start..end).ok()?;
    let format = Format::new(dtype, rows, part.plain()).ok()?;
    Some((format, p.checked_mul(q)?))
}

/// Elements per step, a multiple of every block length.
const LONGEST_BLOCK: u64 = 256;

pub(crate) fn sizes(ty: &TensorType) -> Option<[usize; 4]> {
    let mut out = [0; 4];
    for (out, dim) in out.iter_mut().zip(&ty.dims) {
        *out = usize::try_from(dim.as_const()?).ok()?;
    }
    Some(out)
}

impl Target for CpuTarget {
    fn weight_storage(
        &self,
        place: Place,
        weight: WeightPart<'_>,
        readers: &[(&Op, usize)],
    ) -> Option<WeightStorage> {
        let product = |op: &Op| matches!(op, Op::MulMat(_) | Op::MulMatId(_));
        let lookup = |op: &Op| matches!(op, Op::GetRows(_));
        let first = |(op, i): &(&Op, usize)| *i == 0 && (product(op) || lookup(op));
        let multiplied = readers.iter().all(first) && readers.iter().any(|(op, _)| product(op));
        if let Some((format, n)) = stack(weight).filter(|_| multiplied) {
            return Some(WeightStorage {
                format: ROWS16,
                bytes: (format.bytes() as u64).checked_mul(n as u64)?,
            });
        }
        FileTarget.weight_storage(place, weight, readers)
    }

    fn granule(&self, _: Place, dtype: DType) -> u64 {
        let format = match Format::supports(dtype) {
            true => ROWS16,
            false => StorageFormat::FILE,
        };
        format.granule(dtype)
    }

    fn alignment(&self) -> u64 {
        64
    }

    /// Attention and products add in an order that depends on neither threads nor batches.
    fn company(&self) -> Company {
        Company {
            subtrees: true,
            two_term_weights: TWO_TERMS,
            widths: u64::MAX,
            neighbours: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_ir::op::{GetRows, MulMat};

    #[test]
    fn what_products_read_is_packed_and_lookups_share_it() {
        let ty = TensorType::new(DType::Q8_0, [64.into(), 40.into()]);
        let product = Op::MulMat(MulMat);
        let lookup = Op::GetRows(GetRows { window: None });
        let stored = |readers: &[(&Op, usize)]| {
            CpuTarget.weight_storage(Place::Host, WeightPart::whole(&ty), readers)
        };
        let packed = stored(&[(&product, 0)]);
        assert_eq!(packed.map(|s| s.format), Some(ROWS16));
        assert_eq!(stored(&[(&lookup, 0), (&product, 0)]), packed);
        let file = FileTarget.weight_storage(Place::Host, WeightPart::whole(&ty), &[]);
        // The last three quarters of a block of 256 have one head and six of eight groups.
        let part = TensorType::new(DType::Q4K, [192.into(), 40.into()]);
        let bytes = |start| {
            let ty = &part;
            let stored =
                CpuTarget.weight_storage(Place::Host, WeightPart { ty, start }, &[(&product, 0)]);
            stored.map(|s| (s.format, s.bytes))
        };
        let panels = |heads: u64| Some((ROWS16, 3 * (heads + 6) * 256));
        assert_eq!([bytes(64), bytes(192)], [panels(1), panels(2)]);
        assert_eq!(CpuTarget.granule(Place::Host, DType::Q4K), 32);
        for readers in [
            &[][..],
            &[(&lookup, 0)],
            &[(&product, 1)],
            &[(&product, 0), (&product, 1)],
            &[(&lookup, 1), (&product, 0)],
        ] {
            assert_eq!(stored(readers), file, "{}", readers.len());
        }
    }
}
