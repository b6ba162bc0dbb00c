use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::local::LocalCtx;
use super::resize::{NewSizes, size_independent};
use super::rule::{Role, Rule, Slot, res};
use super::types::{InferredTypes, TypeError, check_finite, expect_operands, f32_of, parameter};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::interval::Interval;
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

/// `start + i · step` for `i` from 0 to `n − 1`. Without operands; result `f32[n]`, or the held part of it on a device.
#[derive(Clone, Debug)]
pub struct Arange {
    /// The first number.
    pub start: f32,
    /// The difference between consecutive numbers.
    pub step: f32,
    /// Number of elements over all devices.
    pub n: Dim,
    /// The values of `i` that this device holds, in order; `None` for all.
    pub held: Option<Vec<Interval>>,
}

eq_by_bits!(Arange { start, step; n, held });

impl Arange {
    /// Returns `n` numbers from `start`.
    pub const fn new(start: f32, step: f32, n: Dim) -> Arange {
        Arange {
            start,
            step,
            n,
            held: None,
        }
    }

    /// Returns the values of `i` in this device's first `n` elements.
    pub fn indices(&self, n: u64) -> Vec<u64> {
        let all = [Interval { start: 0, len: n }];
        let held = self.held.as_deref().unwrap_or(&all);
        let held = held.iter().flat_map(|r| r.start..r.end());
        held.take(usize::try_from(n).unwrap_or(usize::MAX))
            .collect()
    }

    /// Returns the number of elements of the result.
    fn count(&self) -> Result<Dim, TypeError> {
        let Some(held) = &self.held else {
            return Ok(self.n.clone());
        };
        let n = self.n.as_const();
        let within = |r: &Interval| n.is_some_and(|n| r.start <= n && r.len <= n - r.start);
        parameter("held", "ranges within `n`", held.iter().all(within))?;
        let count = held.iter().try_fold(0_u64, |n, r| n.checked_add(r.len));
        Ok(count.ok_or(TypeError::Overflow)?.into())
    }
}

impl OpDef for Arange {
    const NAMES: &'static [&'static str] = &["arange"];
    const CATEGORY: OpCategory = OpCategory::Constant;

    fn attrs(&self) -> Attrs {
        let mut out = vec![
            ("start", Attr::Float(self.start)),
            ("step", Attr::Float(self.step)),
            ("n", Attr::from(&self.n)),
        ];
        if let Some(held) = &self.held {
            out.push(("held", Attr::from(held.as_slice())));
        }
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Arange {
            start: require("start", attrs.float("start")?)?,
            step: require("step", attrs.float("step")?)?,
            n: require("n", attrs.dim("n")?)?,
            held: attrs.intervals("held")?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([("start", self.start), ("step", self.step)])?;
        expect_operands::<0>(operands, "no")?;
        Ok(f32_of([self.count()?, Dim::ONE, Dim::ONE, Dim::ONE]).into())
    }

    /// Each device computes its own part.
    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let held = match ctx.results[0].sharding.axes[0] {
            None => self.held.clone(),
            Some(_) => Some(ctx.intervals(Slot::Result(0), 0)?),
        };
        Some(Arange {
            held,
            ..self.clone()
        })
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        if self.held.is_some() {
            return self.clone();
        }
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
