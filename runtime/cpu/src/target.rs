//! How the CPU stores weights.

use tpc_ir::program::{FileTarget, Stored, StoredFormat, Target};
use tpc_ir::{DType, Op, Place, TensorType};

use crate::product::{Format, Part};

/// The CPU as a target of programs: weights that products read are stored in panels of sixteen rows, also where rows are
/// looked up in them, as of a table of embeddings that is the output matrix, too. Others are stored as in the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTarget;

/// The stack of matrices that a weight is: how each is stored, and how many there are. `None` where there are no products
/// with the type.
pub(crate) fn stack(dtype: DType, dims: [usize; 4]) -> Option<(Format, usize)> {
    let [k, rows, p, q] = dims;
    if k == 0 || rows == 0 || !Format::supports(dtype) {
        return None;
    }
    let format = Format::new(dtype, rows, Part::whole(k).plain()).ok()?;
    Some((format, p.checked_mul(q)?))
}

/// The sizes of a weight.
pub(crate) fn sizes(ty: &TensorType) -> Option<[usize; 4]> {
    let mut out = [0; 4];
    for (out, dim) in out.iter_mut().zip(&ty.dims) {
        *out = usize::try_from(dim.as_const()?).ok()?;
    }
    Some(out)
}

impl Target for CpuTarget {
    fn stored(
        &self,
        place: Place,
        weight: &TensorType,
        readers: &[(&Op, usize)],
    ) -> Option<Stored> {
        let product = |op: &Op| matches!(op, Op::MulMat(_) | Op::MulMatId(_));
        let lookup = |op: &Op| matches!(op, Op::GetRows(_));
        let first = |(op, i): &(&Op, usize)| *i == 0 && (product(op) || lookup(op));
        if readers.iter().all(first) && readers.iter().any(|(op, _)| product(op)) {
            let packed = sizes(weight).and_then(|dims| stack(weight.dtype, dims));
            if let Some((format, n)) = packed {
                return Some(Stored {
                    format: StoredFormat::Rows16,
                    bytes: (format.bytes() as u64).checked_mul(n as u64)?,
                });
            }
        }
        FileTarget.stored(place, weight, readers)
    }

    fn alignment(&self) -> u64 {
        64
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
        let stored = |readers: &[(&Op, usize)]| CpuTarget.stored(Place::Host, &ty, readers);
        let packed = stored(&[(&product, 0)]);
        assert_eq!(packed.map(|s| s.format), Some(StoredFormat::Rows16));
        assert_eq!(stored(&[(&lookup, 0), (&product, 0)]), packed);
        let file = FileTarget.stored(Place::Host, &ty, &[]);
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
