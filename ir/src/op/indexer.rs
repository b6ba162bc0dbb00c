//! Scores of a sparse attention's indexer (DeepSeek 3.2).

use super::attrs::{AttrError, AttrReader};
use super::resize::size_independent;
use super::rule::{Role, Rule, Slot, opd, res};
use super::types::{InferredTypes, TypeError, check_equal, check_real, expect_operands, f32_of};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// `score[c, t] = Σ_h w[h, t] · max(0, q[:, h, t] · k[:, c])` per stream. Operands: `q: [d, heads, tokens, streams]`,
/// `k: [d, 1, cells, streams]`, `w: [heads, tokens, 1, streams]`; result `[cells, tokens, 1, streams]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LightningIndexer;

impl OpDef for LightningIndexer {
    const NAMES: &'static [&'static str] = &["lightning_indexer"];
    /// Light, because the op reads only one key head.
    const CATEGORY: OpCategory = OpCategory::Light;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(LightningIndexer)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [q, k, w] = expect_operands(operands, "3")?;
        check_real("q", q)?;
        check_real("k", k)?;
        check_real("w", w)?;
        check_equal("rows of q and k", &q.dims[0], &k.dims[0])?;
        check_equal("heads of k", &k.dims[1], &Dim::ONE)?;
        check_equal("heads of q and w", &q.dims[1], &w.dims[0])?;
        check_equal("tokens of q and w", &q.dims[2], &w.dims[1])?;
        check_equal("axis 2 of w", &w.dims[2], &Dim::ONE)?;
        check_equal("streams of q and k", &q.dims[3], &k.dims[3])?;
        check_equal("streams of q and w", &q.dims[3], &w.dims[3])?;
        let [cells, tokens] = [k.dims[2].clone(), q.dims[2].clone()];
        Ok(f32_of([cells, tokens, Dim::ONE, q.dims[3].clone()]).into())
    }

    /// The terms of the sum over heads need whole rows.
    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .eq(opd(0, 0), opd(1, 0))
            .eq(opd(0, 1), opd(2, 0))
            .eq(opd(0, 2), res(1))
            .eq(opd(2, 1), res(1))
            .eq(opd(1, 2), res(0))
            .eq(opd(0, 3), res(3))
            .eq(opd(1, 3), res(3))
            .eq(opd(2, 3), res(3))
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, opd(1, 2))
            .role(Role::Reduce, opd(0, 1))
            .role(Role::Reduce, opd(2, 0))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        let (q, k) = (Slot::Operand(0), Slot::Operand(1));
        let cells = on.size(k, 2).unwrap_or(0) as f64;
        let keys = on.dtype(k).element_bytes() * on.elements(k);
        Work {
            flops: 2.0 * on.elements(q) * cells,
            bytes: keys + 4.0 * (on.elements(q) + on.elements(Slot::Result(0))),
        }
    }

    size_independent!();
}
