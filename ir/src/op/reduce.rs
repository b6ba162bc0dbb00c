use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::local::LocalCtx;
use super::resize::{NewSizes, size_independent};
use super::rule::{Linearity, Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, axis_index, check_real, expect_operands, f32_of, parameter,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::dtype::DType;
use crate::types::{RANK, TensorType};

/// The sum along `axis`.
///
/// Operand: `x`, any shape; result as `x`, with one index along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    /// The summed axis.
    pub axis: u64,
}

impl OpDef for Sum {
    const NAMES: &'static [&'static str] = &["sum"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("axis", Attr::from(self.axis))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Sum {
            axis: require("axis", attrs.int("axis")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok(f32_of(x.with_dim(axis_index(self.axis)?, Dim::ONE).dims).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let mut rule = Rule::opaque()
            .role(Role::Reduce, opd(0, axis))
            .linear(Linearity::Joint);
        for i in (0..RANK).filter(|&i| i != axis) {
            rule = rule.eq(opd(0, i), res(i));
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// The sum of every row divided by `n`.
///
/// Operand: `x: [row, …]`, possibly a device's part of the row. Result: `[1, …]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mean {
    /// Elements of a whole row.
    pub n: Dim,
}

impl OpDef for Mean {
    const NAMES: &'static [&'static str] = &["mean"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("n", Attr::from(&self.n))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Mean {
            n: require("n", attrs.dim("n")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        parameter("n", "at least 1", !self.n.is_zero())?;
        Sum { axis: 0 }.infer(operands)
    }

    fn rule(&self, operands: &[&TensorType], results: &[&TensorType]) -> Rule {
        Sum { axis: 0 }.rule(operands, results)
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn localise(&self, _: &LocalCtx<'_>) -> Option<Self> {
        Some(self.clone())
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        let [n, ..] = to.dims(Slot::Operand(0));
        Mean { n }
    }

    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(Mean { n: f(&self.n)? })
    }
}

/// The indices of the `k` largest elements of every row, largest first, equal elements by index.
///
/// Operand: `x: [n, …]`; result `i32[k, …]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// Number of indices per row.
    pub k: u64,
}

impl OpDef for TopK {
    const NAMES: &'static [&'static str] = &["top_k"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("k", Attr::from(self.k))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(TopK {
            k: require("k", attrs.int("k")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        if x.dims[0].as_const().is_some_and(|n| n < self.k) {
            let (left, right) = (self.k.into(), x.dims[0].clone());
            return Err(TypeError::Sizes {
                what: "k exceeds the row",
                left,
                right,
            });
        }
        Ok(x.with_dim(0, self.k.into()).with_dtype(DType::I32).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        whole_rows()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// A mask of every row: 0 at its `k` largest elements, −∞ elsewhere; among equal elements, the lowest indices win.
/// Rows of at most `k` elements are all 0.
///
/// Operand: `x`, any shape; result f32 of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopMask {
    /// Number of elements per row.
    pub k: u64,
}

impl OpDef for TopMask {
    const NAMES: &'static [&'static str] = &["top_mask"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("k", Attr::from(self.k))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(TopMask {
            k: require("k", attrs.int("k")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise().role(Role::Whole, opd(0, 0))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

fn whole_rows() -> Rule {
    Rule::opaque()
        .same(0, &[1, 2, 3])
        .role(Role::Whole, opd(0, 0))
        .role(Role::Whole, res(0))
}

/// The order of a sorted row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SortOrder {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl SortOrder {
    /// Both orders.
    pub const ALL: [SortOrder; 2] = [SortOrder::Ascending, SortOrder::Descending];

    const fn word(self) -> &'static str {
        match self {
            SortOrder::Ascending => "asc",
            SortOrder::Descending => "desc",
        }
    }
}

/// The indices that sort every row; equal elements by index.
///
/// Operand: `x`, any shape; result i32 of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArgSort {
    /// The order.
    pub order: SortOrder,
}

impl OpDef for ArgSort {
    const NAMES: &'static [&'static str] = &["argsort"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("order", Attr::Word(self.order.word().to_owned()))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let word = require("order", attrs.word("order")?)?;
        let order = SortOrder::ALL.into_iter().find(|o| o.word() == word);
        order.map(|order| ArgSort { order }).ok_or(AttrError::Kind {
            name: "order",
            expected: "asc or desc",
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok((*x).clone().with_dtype(DType::I32).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        whole_rows()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
