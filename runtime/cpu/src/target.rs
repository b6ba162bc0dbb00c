//! How the CPU stores weights.

use tpc_ir::program::{FileTarget, Stored, StoredFormat, Target};
use tpc_ir::{DType, Op, TensorType};

use crate::product::{Format, Part};

/// The CPU as a target of programs: weights that products alone read are stored in panels of sixteen rows, others as in the
/// file.
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
    fn stored(&self, weight: &TensorType, readers: &[(&Op, usize)]) -> Option<Stored> {
        let product =
            |(op, i): &(&Op, usize)| *i == 0 && matches!(op, Op::MulMat(_) | Op::MulMatId(_));
        if !readers.is_empty() && readers.iter().all(product) {
            let packed = sizes(weight).and_then(|dims| stack(weight.dtype, dims));
            if let Some((format, n)) = packed {
                return Some(Stored {
                    format: StoredFormat::Rows16,
                    bytes: (format.bytes() as u64).checked_mul(n as u64)?,
                });
            }
        }
        FileTarget.stored(weight, readers)
    }

    fn alignment(&self) -> u64 {
        64
    }
}
