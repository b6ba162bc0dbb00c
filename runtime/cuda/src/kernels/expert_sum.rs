//! The operands of a weighted sum of expert products.

use super::kernel::{OPERANDS, Request, Tensor, index, real};

/// Tells if experts have biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpertBias {
    /// A bias is added to each expert's product.
    Present,
    /// Products are added without biases.
    Absent,
}

/// The operands of a weighted sum of expert products.
pub(super) struct SumOperands<'a> {
    pub(super) a: &'a Tensor,
    pub(super) ids: &'a Tensor,
    pub(super) bias: &'a [Tensor],
    /// The expert weights.
    pub(super) by: &'a Tensor,
    /// The tensors added to the sum.
    pub(super) added: &'a [Tensor],
}

impl<'a> SumOperands<'a> {
    pub(super) fn new(
        biased: ExpertBias,
        more: usize,
        request: &Request<'a>,
    ) -> Result<SumOperands<'a>, &'static str> {
        let [a, _, ids, rest @ ..] = request.operands else {
            return Err(OPERANDS);
        };
        let biases = usize::from(biased == ExpertBias::Present);
        let (bias, rest) = rest.split_at_checked(biases).ok_or(OPERANDS)?;
        let [by, added @ ..] = rest else {
            return Err(OPERANDS);
        };
        if added.len() != more {
            return Err(OPERANDS);
        }
        index(ids.dtype)?;
        request.operands[3..]
            .iter()
            .try_for_each(|t| real(t.dtype))?;
        Ok(SumOperands {
            a,
            ids,
            bias,
            by,
            added,
        })
    }
}
