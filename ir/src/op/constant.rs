use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::local::LocalCtx;
use super::resize::{NewSizes, size_independent};
use super::rule::{Role, Rule, Slot, res};
use super::types::{InferredTypes, TypeError, check_finite, expect_operands, f32_of};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// The normalised Walsh–Hadamard matrix of order `n` (Sylvester's, natural row order), `f32[n, n]`, symmetric and its
/// own inverse. Element `(i, j)` is `(−1)^(number of ones in i & j) / √n`. Without operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hadamard {
    /// The order, a power of two.
    pub n: u64,
}

impl Hadamard {
    /// Larger than any head; the matrix takes at most 64 MiB.
    const MAX: u64 = 4096;
}

impl OpDef for Hadamard {
    const NAMES: &'static [&'static str] = &["hadamard"];
    const CATEGORY: OpCategory = OpCategory::Constant;

    fn attrs(&self) -> Attrs {
        vec![("n", Attr::from(self.n))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let n = require("n", attrs.int("n")?)?;
        if n.is_power_of_two() && n <= Self::MAX {
            return Ok(Hadamard { n });
        }
        Err(AttrError::Kind {
            name: "n",
            expected: "a power of two up to 4096",
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        expect_operands::<0>(operands, "no")?;
        let n = || Dim::constant(self.n);
        Ok(f32_of([n(), n(), Dim::ONE, Dim::ONE]).into())
    }

    /// Requires whole matrices: a rotation contracts whole rows.
    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .role(Role::Whole, res(0))
            .role(Role::Whole, res(1))
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

/// `start + i · step` for `i` from 0 to `n − 1`. Without operands; result `f32[n]`.
#[derive(Clone, Debug)]
pub struct Arange {
    /// The first number.
    pub start: f32,
    /// The difference between consecutive numbers.
    pub step: f32,
    /// Number of elements.
    pub n: Dim,
}

eq_by_bits!(Arange { start, step; n });

impl OpDef for Arange {
    const NAMES: &'static [&'static str] = &["arange"];
    const CATEGORY: OpCategory = OpCategory::Constant;

    fn attrs(&self) -> Attrs {
        vec![
            ("start", Attr::Float(self.start)),
            ("step", Attr::Float(self.step)),
            ("n", Attr::from(&self.n)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Arange {
            start: require("start", attrs.float("start")?)?,
            step: require("step", attrs.float("step")?)?,
            n: require("n", attrs.dim("n")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([("start", self.start), ("step", self.step)])?;
        expect_operands::<0>(operands, "no")?;
        Ok(f32_of([self.n.clone(), Dim::ONE, Dim::ONE, Dim::ONE]).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque().role(Role::Whole, res(0))
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    fn localise(&self, _: &LocalCtx<'_>) -> Option<Self> {
        Some(self.clone())
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        let [n, ..] = to.dims(Slot::Result(0));
        Arange { n, ..self.clone() }
    }

    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(Arange {
            n: f(&self.n)?,
            ..self.clone()
        })
    }
}
