//! Normalisation over axis 0, in one step or, for a split axis, in two.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::local::LocalCtx;
use super::resize::{NewSizes, size_independent};
use super::rule::{Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, check_equal, check_real, expect_operands, f32_of, parameter,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// The divisor of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// `x / √(mean(x²) + eps)`
    Rms,
    /// `(x − mean) / √(var + eps)`
    Layer,
    /// `x / max(√Σx², eps)`
    L2,
}

impl NormKind {
    /// Every kind.
    pub const ALL: [NormKind; 3] = [NormKind::Rms, NormKind::Layer, NormKind::L2];

    const fn word(self) -> &'static str {
        match self {
            NormKind::Rms => "rms",
            NormKind::Layer => "layer",
            NormKind::L2 => "l2",
        }
    }

    fn attr(attrs: &mut AttrReader) -> Result<NormKind, AttrError> {
        let word = require("kind", attrs.word("kind")?)?;
        let kind = NormKind::ALL.into_iter().find(|k| k.word() == word);
        kind.ok_or(AttrError::Kind {
            name: "kind",
            expected: "rms, layer or l2",
        })
    }

    /// Returns the count of numbers per row in the statistic: `Σx²`, or `Σx` and `Σx²`.
    pub const fn stats(self) -> u64 {
        match self {
            NormKind::Rms | NormKind::L2 => 1,
            NormKind::Layer => 2,
        }
    }
}

/// Normalises every row (axis 0).
///
/// Operand: `x: [n, …]`; result of the same shape.
#[derive(Clone, Debug)]
pub struct Norm {
    /// The norm.
    pub kind: NormKind,
    /// The epsilon: added under the root; for L2, the smallest divisor.
    pub eps: f32,
}

eq_by_bits!(Norm { eps; kind });

impl OpDef for Norm {
    const NAMES: &'static [&'static str] = &["rms_norm", "norm", "l2_norm"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn name(&self) -> &'static str {
        match self.kind {
            NormKind::Rms => "rms_norm",
            NormKind::Layer => "norm",
            NormKind::L2 => "l2_norm",
        }
    }

    fn attrs(&self) -> Attrs {
        vec![("eps", Attr::Float(self.eps))]
    }

    fn parse(name: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let kind = match name {
            "rms_norm" => NormKind::Rms,
            "l2_norm" => NormKind::L2,
            _ => NormKind::Layer,
        };
        Ok(Norm {
            kind,
            eps: require("eps", attrs.float("eps")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        parameter(
            "eps",
            "finite and at least 0",
            self.eps.is_finite() && self.eps >= 0.0,
        )?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise().role(Role::Norm, opd(0, 0))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// The statistic of every row; an unreduced sum if axis 0 is split.
///
/// Operand: `x: [n, …]`; result `[1, …]`, or `[2, …]` for a layer norm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NormStats {
    /// The norm.
    pub kind: NormKind,
}

impl OpDef for NormStats {
    const NAMES: &'static [&'static str] = &["norm_stats"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("kind", Attr::Word(self.kind.word().to_owned()))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(NormStats {
            kind: NormKind::attr(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok(f32_of(x.with_dim(0, Dim::constant(self.kind.stats())).dims).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .same(0, &[1, 2, 3])
            .role(Role::Reduce, opd(0, 0))
            .role(Role::Whole, res(0))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// Normalises rows, or parts of rows, by the statistic of whole rows.
///
/// Operands: `x: [n or fewer, …]`; the result of [`NormStats`], `[1 or 2, …]`; result as `x`.
#[derive(Clone, Debug)]
pub struct NormApply {
    /// The norm.
    pub kind: NormKind,
    /// The epsilon: added under the root; for L2, the smallest divisor.
    pub eps: f32,
    /// Number of elements in a whole row.
    pub n: u64,
}

eq_by_bits!(NormApply { eps; kind, n });

impl OpDef for NormApply {
    const NAMES: &'static [&'static str] = &["norm_apply"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![
            ("kind", Attr::Word(self.kind.word().to_owned())),
            ("eps", Attr::Float(self.eps)),
            ("n", Attr::from(self.n)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(NormApply {
            kind: NormKind::attr(attrs)?,
            eps: require("eps", attrs.float("eps")?)?,
            n: require("n", attrs.int("n")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x, stats] = expect_operands(operands, "2")?;
        parameter(
            "eps",
            "finite and at least 0",
            self.eps.is_finite() && self.eps >= 0.0,
        )?;
        parameter("n", "at least 1", self.n > 0)?;
        check_real("x", x)?;
        check_equal(
            "numbers of the statistic",
            &stats.dims[0],
            &Dim::constant(self.kind.stats()),
        )?;
        for i in 1..4 {
            check_equal("rows of x and of the statistic", &x.dims[i], &stats.dims[i])?;
        }
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::pointwise().role(Role::Whole, opd(1, 0));
        for i in 1..4 {
            rule = rule.eq(opd(1, i), res(i));
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn localise(&self, _: &LocalCtx<'_>) -> Option<Self> {
        Some(self.clone())
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        let [n, ..] = to.dims(Slot::Operand(0));
        NormApply {
            n: n.as_const().unwrap_or(self.n),
            ..self.clone()
        }
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}
