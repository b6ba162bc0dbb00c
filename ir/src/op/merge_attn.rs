use super::attrs::{AttrError, AttrReader};
use super::resize::size_independent;
use super::rule::{Role, Rule, opd, res};
use super::types::{InferredTypes, TypeError, check_equal, check_real, f32_of};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef, Slot};
use crate::dims::Dim;
use crate::types::TensorType;

/// Attention over all cells, from attention over parts of the cells.
///
/// A part's row has the part's result `o` and the log-sum-exp `l` of its scores, as [`FlashAttn`](super::FlashAttn)
/// with `lse` gives them. The result is `Σ exp(lᵢ − l) · oᵢ` with `l = ln Σ exp(lᵢ)`, summed in the order of parts. A
/// part without visible cells has `l = −∞` and weight 0.
///
/// Operands: `parts: [dv + 1, H, n_tokens, n_parts]`, and optionally `sinks: [H]` (a logit per head, only in the
/// denominator). The result is `[dv, H, n_tokens]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MergeAttn;

impl OpDef for MergeAttn {
    const NAMES: &'static [&'static str] = &["merge_attn"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(MergeAttn)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let parts = match operands {
            [parts] => parts,
            [parts, sinks] => {
                check_real("sinks", sinks)?;
                check_equal("heads of parts and sinks", &parts.dims[1], &sinks.dims[0])?;
                parts
            }
            _ => {
                return Err(TypeError::Arity {
                    expected: "1 or 2",
                    found: operands.len(),
                });
            }
        };
        check_real("parts", parts)?;
        let [row, heads, tokens, _] = parts.dims.clone();
        let width = row.checked_sub(&Dim::ONE).ok_or(TypeError::Overflow)?;
        Ok(f32_of([width, heads, tokens, Dim::ONE]).into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let rule = Rule::opaque()
            .same(0, &[1, 2])
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, opd(0, 3))
            .role(Role::Whole, res(0));
        match operands.len() {
            2 => rule.eq(opd(1, 0), opd(0, 1)),
            _ => rule,
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        let elements = on.elements(Slot::Operand(0));
        Work {
            flops: 2.0 * elements,
            bytes: 4.0 * (elements + on.elements(Slot::Result(0))),
        }
    }

    size_independent!();
}
