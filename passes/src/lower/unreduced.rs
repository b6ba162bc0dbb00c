//! Mirrored operands of pending sums: they count on the first device only.

use tpc_ir::op::{Binary, BinaryKind, Pad, Repeat, Scale, Slice};
use tpc_ir::{Dim, InstData, Op, Place, Unreduced, Value};

use super::{LowerError, Lowering};

impl Lowering<'_> {
    /// On all devices but the first, a sum with a mirrored operand is its pending operand alone.
    pub(super) fn counted_elsewhere(
        &mut self,
        data: &InstData,
        local: &[Value],
        rank: usize,
        place: Place,
    ) -> Result<Option<Value>, LowerError> {
        let pending = |v: Value| self.from.value(v).sharding.unreduced != Unreduced::None;
        if rank == 0 || !pending(data.results[0]) {
            return Ok(None);
        }
        let subtract = match &data.op {
            Op::Binary(Binary {
                kind: BinaryKind::Add,
            }) => false,
            Op::Binary(Binary {
                kind: BinaryKind::Sub,
            }) => true,
            // The bias counts once, unless each device adds the rows of its own experts.
            Op::AddId(_) if !self.from.value(data.operands[1]).sharding.is_split() => {
                return Ok(Some(local[0]));
            }
            _ => return Ok(None),
        };
        match (pending(data.operands[0]), pending(data.operands[1])) {
            (true, false) => Ok(Some(local[0])),
            (false, true) => {
                let dims = self.from.value(data.results[0]).ty.dims.clone();
                let mut v = local[1];
                if self.out.value(v).ty.dims != dims {
                    v = self.push(data, rank, Repeat { dims }.into(), vec![v], place)?;
                }
                if subtract {
                    v = self.push(
                        data,
                        rank,
                        Scale {
                            scale: -1.0,
                            bias: 0.0,
                        }
                        .into(),
                        vec![v],
                        place,
                    )?;
                }
                Ok(Some(v))
            }
            _ => Ok(None),
        }
    }

    /// Zeros in the shape of `v`, whose axis 0 is constant.
    pub(super) fn zeros_like(
        &mut self,
        data: &InstData,
        rank: usize,
        v: Value,
        place: Place,
    ) -> Result<Value, LowerError> {
        let n = self.out.value(v).ty.dims[0].as_const();
        let after = n.ok_or_else(|| LowerError::Rebase {
            op: data.op.name(),
            value: self.name(data),
            rank,
        })?;
        let none = Slice {
            axis: 0,
            start: Dim::ZERO,
            len: Dim::ZERO,
        };
        let empty = self.push(data, rank, none.into(), vec![v], place)?;
        self.push(
            data,
            rank,
            Pad {
                axis: 0,
                before: 0,
                after,
            }
            .into(),
            vec![empty],
            place,
        )
    }
}
