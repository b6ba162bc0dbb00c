use super::attrs::{Attr, AttrError, AttrReader, Attrs};
use super::local::LocalCtx;
use super::resize::NewSizes;
use super::rule::{Linearity, Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, check_equal, check_integer, check_real, divides, expect_operands,
    f32_of, rank_at_most,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::interval::Interval;
use crate::types::TensorType;

fn window_attr(window: Option<Interval>) -> Attrs {
    window
        .map(|w| ("window", Attr::Interval(w)))
        .into_iter()
        .collect()
}

/// `out[:, u, t] = w[:, :, ids[u, t]] · x[:, u, t]`. Operands: `w: [k, m, n_expert]`,
/// `x: [k, n_used or 1, n_tokens]`, `ids: [n_used, n_tokens]`; result `[m, n_used, n_tokens]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MulMatId {
    /// The experts that `w` holds; `None` for all. Rows of other experts are zero in the result.
    pub window: Option<Interval>,
}

impl OpDef for MulMatId {
    const NAMES: &'static [&'static str] = &["mul_mat_id"];
    const CATEGORY: OpCategory = OpCategory::Product;

    fn attrs(&self) -> Attrs {
        window_attr(self.window)
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(MulMatId {
            window: attrs.interval("window")?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [w, x, ids] = expect_operands(operands, "3")?;
        check_real("w", w)?;
        check_real("x", x)?;
        check_integer("ids", ids)?;
        for (what, rank, t) in [
            ("axes of w beyond the third", 3, w),
            ("axes of x beyond the third", 3, x),
            ("axes of ids beyond the second", 2, ids),
        ] {
            rank_at_most(rank, what, t)?;
        }
        check_equal("rows of w and x", &w.dims[0], &x.dims[0])?;
        check_equal("tokens of x and ids", &x.dims[2], &ids.dims[1])?;
        divides(
            "rows per token of x do not divide rows of ids",
            &x.dims[1],
            &ids.dims[0],
        )?;
        if let Some(win) = self.window {
            check_equal(
                "experts of w and of the window",
                &w.dims[2],
                &win.len.into(),
            )?;
        }
        Ok(f32_of([
            w.dims[1].clone(),
            ids.dims[0].clone(),
            ids.dims[1].clone(),
            crate::Dim::ONE,
        ])
        .into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque()
            .eq(opd(0, 0), opd(1, 0))
            .eq(opd(0, 1), res(0))
            .eq(opd(2, 0), res(1))
            .eq(opd(2, 1), res(2))
            .eq(opd(1, 2), res(2))
            .role(Role::Reduce, opd(0, 0))
            .role(Role::Expert, opd(0, 2))
            .linear(Linearity::PerOperand(vec![0, 1]));
        if operands[1].dims[1] == operands[2].dims[0] {
            rule = rule.eq(opd(1, 1), opd(2, 0));
        } else {
            rule = rule.role(Role::Whole, opd(1, 1));
        }
        rule
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        Some(MulMatId {
            window: ctx.window(Slot::Operand(0), 2)?,
        })
    }

    fn work(&self, on: &dyn Extents) -> Work {
        let w = Slot::Operand(0);
        let experts = on.size(w, 2).unwrap_or(1) as f64;
        let draws = on.total_elements(Slot::Operand(2));
        let (touched, products, held) = match on.expert_load(draws) {
            Some(share) => (
                share.busiest.min(share.own),
                share.busiest,
                share.own.max(1.0),
            ),
            None => (draws.min(experts), draws, experts),
        };
        Work {
            flops: 2.0 * on.elements(w) / held * products,
            bytes: on.stored_bytes(0) / held * touched + 4.0 * on.elements(Slot::Result(0)),
        }
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        self.clone()
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}

/// `out[:, u, t] = x[:, u, t] + bias[:, ids[u, t]]`. Operands: `x: [m, n_used, n_tokens]`, `bias: [m, n_expert]`,
/// `ids: [n_used, n_tokens]`; result as `x`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddId {
    /// The experts that `bias` holds; `None` for all. Rows of other experts are unchanged.
    pub window: Option<Interval>,
}

impl OpDef for AddId {
    const NAMES: &'static [&'static str] = &["add_id"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        window_attr(self.window)
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(AddId {
            window: attrs.interval("window")?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x, bias, ids] = expect_operands(operands, "3")?;
        check_real("x", x)?;
        check_real("bias", bias)?;
        check_integer("ids", ids)?;
        for (what, rank, t) in [
            ("axes of x beyond the third", 3, x),
            ("axes of bias beyond the second", 2, bias),
            ("axes of ids beyond the second", 2, ids),
        ] {
            rank_at_most(rank, what, t)?;
        }
        check_equal("rows of x and bias", &x.dims[0], &bias.dims[0])?;
        check_equal("experts per token of x and ids", &x.dims[1], &ids.dims[0])?;
        check_equal("tokens of x and ids", &x.dims[2], &ids.dims[1])?;
        if let Some(win) = self.window {
            check_equal(
                "experts of bias and of the window",
                &bias.dims[1],
                &win.len.into(),
            )?;
        }
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise()
            .eq(opd(1, 0), opd(0, 0))
            .eq(opd(2, 0), opd(0, 1))
            .eq(opd(2, 1), opd(0, 2))
            .role(Role::Expert, opd(1, 1))
            .linear(Linearity::AdditiveFirst)
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        Some(AddId {
            window: ctx.window(Slot::Operand(1), 1)?,
        })
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        self.clone()
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}
