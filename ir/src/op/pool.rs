use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::resize::size_independent;
use super::rule::{Linearity, Role, Rule, opd, res};
use super::types::{InferredTypes, TypeError, check_real, expect_operands, f32_of, parameter};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// The pooling function of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// The largest element.
    Max,
    /// The sum divided by the window's area, padding included.
    Avg,
}

impl PoolKind {
    /// Both kinds.
    pub const ALL: [PoolKind; 2] = [PoolKind::Max, PoolKind::Avg];

    const fn word(self) -> &'static str {
        match self {
            PoolKind::Max => "max",
            PoolKind::Avg => "avg",
        }
    }
}

/// Pools windows of axes 0 and 1 to one element each. Windows extend up to `pad` elements beyond both ends.
///
/// Operand: `x: [w, h, channels, n]`; result `[(w + 2 pad[0] − window[0]) / stride[0] + 1, …, channels, n]`, axis 1
/// in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pool2d {
    /// The function.
    pub kind: PoolKind,
    /// Window size in elements, per axis.
    pub window: [u64; 2],
    /// Distance between windows in elements, per axis.
    pub stride: [u64; 2],
    /// Padding in elements beyond each end, per axis.
    pub pad: [u64; 2],
}

fn pair(name: &'static str, attrs: &mut AttrReader) -> Result<[u64; 2], AttrError> {
    let given = require(name, attrs.dims(name)?)?;
    let given: Vec<u64> = given.iter().filter_map(Dim::as_const).collect();
    given.try_into().map_err(|_| AttrError::Kind {
        name,
        expected: "a list of two integers",
    })
}

impl Pool2d {
    fn windows(&self, axis: usize, n: u64) -> Option<u64> {
        let reach = n.checked_add(self.pad[axis].checked_mul(2)?)?;
        let free = reach.checked_sub(self.window[axis])?;
        free.checked_div(self.stride[axis])?.checked_add(1)
    }
}

impl OpDef for Pool2d {
    const NAMES: &'static [&'static str] = &["pool_2d"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        let list = |pair: [u64; 2]| Attr::List(pair.map(Attr::from).to_vec());
        vec![
            ("kind", Attr::Word(self.kind.word().to_owned())),
            ("window", list(self.window)),
            ("stride", list(self.stride)),
            ("pad", list(self.pad)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let word = require("kind", attrs.word("kind")?)?;
        let kind = PoolKind::ALL.into_iter().find(|k| k.word() == word);
        Ok(Pool2d {
            kind: kind.ok_or(AttrError::Kind {
                name: "kind",
                expected: "max or avg",
            })?,
            window: pair("window", attrs)?,
            stride: pair("stride", attrs)?,
            pad: pair("pad", attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        parameter("window", "at least 1", !self.window.contains(&0))?;
        parameter("stride", "at least 1", !self.stride.contains(&0))?;
        let mut out = f32_of(x.dims.clone());
        for axis in 0..2 {
            let windows = x.dims[axis].as_const().and_then(|n| self.windows(axis, n));
            let windows = windows.ok_or_else(|| TypeError::Sizes {
                what: "window exceeds the padded axis",
                left: self.window[axis].into(),
                right: x.dims[axis].clone(),
            })?;
            out.dims[axis] = windows.into();
        }
        Ok(out.into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque().same(0, &[2, 3]);
        for axis in 0..2 {
            rule = rule
                .role(Role::Whole, opd(0, axis))
                .role(Role::Whole, res(axis));
        }
        match self.kind {
            PoolKind::Max => rule,
            PoolKind::Avg => rule.linear(Linearity::Joint),
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
