//! Ops whose elements depend on their position along an axis, which must not be split.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::resize::size_independent;
use super::rule::{Linearity, Role, Rule, opd, res};
use super::types::{InferredTypes, TypeError, check_equal, check_real, expect_operands, f32_of};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// Prefix sums of every row.
///
/// Operand: `x`, any shape; result of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cumsum;

impl OpDef for Cumsum {
    const NAMES: &'static [&'static str] = &["cumsum"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Cumsum)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise()
            .role(Role::Whole, opd(0, 0))
            .linear(Linearity::Joint)
            .zero()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// The side of a diagonal that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Elements below the diagonal.
    Lower,
    /// Elements below and on the diagonal.
    LowerDiag,
    /// Elements above the diagonal.
    Upper,
    /// Elements above and on the diagonal.
    UpperDiag,
}

impl Side {
    /// Every side.
    pub const ALL: [Side; 4] = [Side::Lower, Side::LowerDiag, Side::Upper, Side::UpperDiag];

    const fn word(self) -> &'static str {
        match self {
            Side::Lower => "lower",
            Side::LowerDiag => "lower_diag",
            Side::Upper => "upper",
            Side::UpperDiag => "upper_diag",
        }
    }
}

/// The matrix of axes 0 and 1 with one side of a diagonal kept and the rest replaced by `fill`. On the diagonal, the
/// index along axis 0 is `offset` more than the index along axis 1.
///
/// Operand: `x: [n, m, …]`; result of the same shape.
#[derive(Clone, Debug)]
pub struct Tri {
    /// The kept side.
    pub keep: Side,
    /// Distance from the main diagonal, to the right.
    pub offset: u64,
    /// The replacement for all other elements.
    pub fill: f32,
}

eq_by_bits!(Tri { fill; keep, offset });

impl OpDef for Tri {
    const NAMES: &'static [&'static str] = &["tri"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![
            ("keep", Attr::Word(self.keep.word().to_owned())),
            ("offset", self.offset.into()),
            ("fill", Attr::Float(self.fill)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let word = require("keep", attrs.word("keep")?)?;
        let keep = Side::ALL.into_iter().find(|s| s.word() == word);
        Ok(Tri {
            keep: keep.ok_or(AttrError::Kind {
                name: "keep",
                expected: "lower, lower_diag, upper or upper_diag",
            })?,
            offset: require("offset", attrs.int("offset")?)?,
            fill: require("fill", attrs.float("fill")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let rule = Rule::pointwise()
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, opd(0, 1));
        if self.fill == 0.0 {
            rule.linear(Linearity::Joint)
        } else {
            rule
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// Matrices with the operand's rows on their diagonals, and 0 elsewhere.
///
/// Operand: `x: [n, 1, p, q]`; result `[n, n, p, q]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diag;

impl OpDef for Diag {
    const NAMES: &'static [&'static str] = &["diag"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Diag)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        check_equal("rows of a diagonal", &x.dims[1], &Dim::ONE)?;
        Ok(f32_of(x.with_dim(1, x.dims[0].clone()).dims).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .same(0, &[2, 3])
            .eq(opd(0, 0), res(0))
            .eq(res(0), res(1))
            .role(Role::Whole, opd(0, 0))
            .linear(Linearity::Joint)
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
