//! Whole operands of unreduced sums: only the first device adds them.

use tpc_ir::op::{Binary, BinaryKind, Linearity, Pad, Repeat, Scale, Slice};
use tpc_ir::{Dim, Op, Unreduced, Value};

use super::LowerError;
use super::lowering::{Lowering, Site};

impl Lowering<'_> {
    /// Returns the sum's form on devices other than the first: the unreduced operand alone.
    pub(super) fn count_elsewhere(
        &mut self,
        site: Site<'_>,
        local: &[Value],
    ) -> Result<Option<Value>, LowerError> {
        let data = site.data;
        if site.rank == 0 || !self.is_unreduced(data.results[0]) {
            return Ok(None);
        }
        match self.rule(data).linearity {
            Linearity::Additive => {}
            // Only the first device adds the bias, unless each device adds the biases of its own experts.
            Linearity::AdditiveFirst => {
                let split = self.from.value(data.operands[1]).sharding.is_split();
                return Ok((!split).then_some(local[0]));
            }
            Linearity::Opaque | Linearity::Joint | Linearity::PerOperand(_) => return Ok(None),
        }
        match [0, 1].map(|k| self.is_unreduced(data.operands[k])) {
            [true, false] => Ok(Some(local[0])),
            [false, true] => {
                let dims = self.from.value(data.results[0]).ty.dims.clone();
                let mut v = local[1];
                if self.out.value(v).ty.dims != dims {
                    v = self.push(site, Repeat { dims }, vec![v])?;
                }
                let subtracts = Op::from(Binary {
                    kind: BinaryKind::Sub,
                });
                if data.op == subtracts {
                    let negated = Scale {
                        scale: -1.0,
                        bias: 0.0,
                    };
                    v = self.push(site, negated, vec![v])?;
                }
                Ok(Some(v))
            }
            _ => Ok(None),
        }
    }

    /// Replaces a whole operand by zeros on all devices except the first. If experts are split, each device adds the
    /// biases of its own experts.
    pub(super) fn count_once(
        &mut self,
        site: Site<'_>,
        local: &mut [Value],
    ) -> Result<(), LowerError> {
        let data = site.data;
        let result = &self.from.value(data.results[0]).sharding;
        if site.rank > 0
            && result.unreduced == Unreduced::Partial
            && self.rule(data).linearity == Linearity::AdditiveFirst
            && !self.is_unreduced(data.operands[0])
        {
            local[0] = self.zeros_like(site, local[0])?;
        }
        Ok(())
    }

    fn is_unreduced(&self, v: Value) -> bool {
        self.from.value(v).sharding.unreduced != Unreduced::None
    }

    /// Returns zeros in the shape of `v`. Axis 0 must be constant.
    fn zeros_like(&mut self, site: Site<'_>, v: Value) -> Result<Value, LowerError> {
        let n = self.out.value(v).ty.dims[0].as_const();
        let after = n.ok_or_else(|| self.rebase(site))?;
        let none = Slice {
            axis: 0,
            start: Dim::ZERO,
            len: Dim::ZERO,
        };
        let empty = self.push(site, none, vec![v])?;
        let zeros = Pad {
            axis: 0,
            before: 0,
            after,
        };
        self.push(site, zeros, vec![empty])
    }
}
