use super::attrs::{AttrError, AttrReader};
use super::head_groups::HeadGrouping;
use super::resize::size_independent;
use super::rule::{Expr, Linearity, Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, check_equal, check_real, divides, expect_operands, f32_of,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::types::TensorType;

/// `out[m, n] = Σₖ a[k, m] · b[k, n]` per batch.
///
/// Operands: `a: [k, m, p, q]`, `b: [k, n, P, Q]`, with `p` dividing `P` and `q` dividing `Q` (batch `i` of `b` uses
/// batch `i / (P/p)` of `a`); result `[m, n, P, Q]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MulMat;

impl OpDef for MulMat {
    const NAMES: &'static [&'static str] = &["mul_mat"];
    const CATEGORY: OpCategory = OpCategory::Product;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(MulMat)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [a, b] = expect_operands(operands, "2")?;
        check_real("a", a)?;
        check_real("b", b)?;
        check_equal("rows of a and b", &a.dims[0], &b.dims[0])?;
        divides(
            "batches of a do not divide batches of b",
            &a.dims[2],
            &b.dims[2],
        )?;
        divides(
            "batches of a do not divide batches of b",
            &a.dims[3],
            &b.dims[3],
        )?;
        Ok(f32_of([
            a.dims[1].clone(),
            b.dims[1].clone(),
            b.dims[2].clone(),
            b.dims[3].clone(),
        ])
        .into())
    }

    fn head_groupings(&self) -> &'static [HeadGrouping] {
        &[
            HeadGrouping {
                query: (1, 2),
                kv: &[(0, 2)],
                per_query: &[],
                results: &[2],
            },
            HeadGrouping {
                query: (1, 3),
                kv: &[(0, 3)],
                per_query: &[],
                results: &[3],
            },
        ]
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque()
            .eq(opd(0, 0), opd(1, 0))
            .eq(opd(0, 1), res(0))
            .same(1, &[2, 3])
            .eq(opd(1, 1), res(1))
            .role(Role::Reduce, opd(0, 0))
            .linear(Linearity::PerOperand(vec![0, 1]));
        for axis in [2, 3] {
            let (a, b) = (&operands[0].dims[axis], &operands[1].dims[axis]);
            if a == b {
                rule = rule.eq(opd(0, axis), opd(1, axis));
            } else if let Some(rep) = b.checked_div(a) {
                rule = rule.eq(
                    opd(1, axis),
                    Expr::Product(vec![opd(0, axis), Expr::Fresh(axis, rep)]),
                );
            }
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        let x = Slot::Operand(1);
        let columns = on.total_elements(x) / on.size(x, 0).unwrap_or(1).max(1) as f64;
        let out = on.elements(Slot::Result(0));
        Work {
            flops: 2.0 * on.elements(Slot::Operand(0)) * columns,
            bytes: on.stored_bytes(0) + 4.0 * (on.elements(x) + out),
        }
    }

    size_independent!();
}
