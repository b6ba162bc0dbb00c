//! Hyper-connections (DeepSeek 4), which mix several residual streams.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::resize::size_independent;
use super::rule::{Role, Rule, opd, res};
use super::types::{
    InferredTypes, TypeError, check_equal, check_real, expect_operands, f32_of, parameter,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// Mixes `hc` residual streams per token by a nearly doubly stochastic matrix. The logits are
/// `scale[2] · mixes[2·hc..] + base[2·hc..]`. They go through a softmax over destinations, plus `eps`. Then columns are
/// divided by their sums plus `eps`, followed by rows and columns `iterations − 1` times.
///
/// Operands: `mixes: [(2 + hc)·hc, tokens]`, `scale: [3 or more]`, `base: [(2 + hc)·hc]`; result `[hc, hc, tokens]`,
/// destinations along axis 0.
#[derive(Clone, Debug)]
pub struct HcComb {
    /// Summand added to divisors.
    pub eps: f32,
    /// Column normalisations, at least 1.
    pub iterations: u64,
}

eq_by_bits!(HcComb { eps; iterations });

impl HcComb {
    const MAX_ITERATIONS: u64 = 1024;
}

fn streams(n: u64) -> Option<u64> {
    let hc = (n + 1).isqrt().checked_sub(1)?;
    (hc > 0 && (2 + hc) * hc == n).then_some(hc)
}

impl OpDef for HcComb {
    const NAMES: &'static [&'static str] = &["hc_comb"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![
            ("eps", Attr::Float(self.eps)),
            ("iterations", self.iterations.into()),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(HcComb {
            eps: require("eps", attrs.float("eps")?)?,
            iterations: require("iterations", attrs.int("iterations")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [mixes, scale, base] = expect_operands(operands, "3")?;
        for (what, t) in [("mixes", mixes), ("scale", scale), ("base", base)] {
            check_real(what, t)?;
        }
        let eps = self.eps.is_finite() && self.eps >= 0.0;
        parameter("eps", "finite and at least 0", eps)?;
        let iterations = (1..=Self::MAX_ITERATIONS).contains(&self.iterations);
        parameter("iterations", "an integer from 1 to 1024", iterations)?;
        check_equal("entries of mixes and base", &mixes.dims[0], &base.dims[0])?;
        let misfit = |what, found: &Dim, least: u64| TypeError::Sizes {
            what,
            left: found.clone(),
            right: least.into(),
        };
        let n = mixes.dims[0].as_const().filter(|&n| n < 1 << 32);
        let hc = n.and_then(streams);
        let hc = hc.ok_or_else(|| misfit("entries of mixes, (2 + hc)·hc", &mixes.dims[0], 24))?;
        if scale.dims[0].as_const().is_none_or(|n| n < 3) {
            return Err(misfit("entries of scale", &scale.dims[0], 3));
        }
        for axis in [2, 3] {
            check_equal("one matrix per token", &mixes.dims[axis], &Dim::ONE)?;
        }
        Ok(f32_of([hc.into(), hc.into(), mixes.dims[1].clone(), Dim::ONE]).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .eq(opd(0, 1), res(2))
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, opd(1, 0))
            .role(Role::Whole, opd(2, 0))
            .role(Role::Whole, res(0))
            .role(Role::Whole, res(1))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
