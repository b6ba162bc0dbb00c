use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::resize::size_independent;
use super::rule::{Linearity, Role, Rule, opd};
use super::types::{
    InferredTypes, TypeError, check_equal, check_finite, check_integer, check_real, f32_of,
    parameter,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::TensorType;

/// The pairs of elements that rotate together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopeMode {
    /// Neighbours: `2i` and `2i + 1`.
    Norm,
    /// Halves: `i` and `i + n_dims/2`.
    Neox,
    /// Same as [`RopeMode::Neox`], with four positions per token (time, height, width and a fourth): each section of
    /// consecutive pairs uses one position.
    Mrope {
        /// Number of pairs per position; the pattern repeats.
        sections: [u64; 4],
    },
    /// Same as [`RopeMode::Mrope`], but the first three positions alternate pair by pair, each up to its section.
    Imrope {
        /// Number of pairs per position; the pattern repeats.
        sections: [u64; 4],
    },
}

impl RopeMode {
    const fn word(self) -> &'static str {
        match self {
            RopeMode::Norm => "norm",
            RopeMode::Neox => "neox",
            RopeMode::Mrope { .. } => "mrope",
            RopeMode::Imrope { .. } => "imrope",
        }
    }

    /// Returns the pairs per position for modes with four positions.
    pub const fn sections(self) -> Option<[u64; 4]> {
        match self {
            RopeMode::Norm | RopeMode::Neox => None,
            RopeMode::Mrope { sections } | RopeMode::Imrope { sections } => Some(sections),
        }
    }

    /// Returns the positions per token.
    pub const fn positions(self) -> u64 {
        match self.sections() {
            None => 1,
            Some(_) => 4,
        }
    }

    fn attr(attrs: &mut AttrReader) -> Result<RopeMode, AttrError> {
        let word = require("mode", attrs.word("mode")?)?;
        Ok(match word.as_str() {
            "norm" => RopeMode::Norm,
            "neox" => RopeMode::Neox,
            "mrope" => RopeMode::Mrope {
                sections: sections(attrs)?,
            },
            "imrope" => RopeMode::Imrope {
                sections: sections(attrs)?,
            },
            _ => {
                return Err(AttrError::Kind {
                    name: "mode",
                    expected: "norm, neox, mrope or imrope",
                });
            }
        })
    }
}

fn sections(attrs: &mut AttrReader) -> Result<[u64; 4], AttrError> {
    let given = require("sections", attrs.dims("sections")?)?;
    let numbers: Option<Vec<u64>> = given.iter().map(Dim::as_const).collect();
    numbers
        .and_then(|n| n.try_into().ok())
        .ok_or(AttrError::Kind {
            name: "sections",
            expected: "a list of four numbers",
        })
}

/// Rotates the first `n_dims` elements of every row by position-dependent angles; YaRN follows ggml.
///
/// Operands: `x: [d, heads, n_tokens]`, `positions: [n_tokens]`, and optionally `factors: [n_dims / 2]`, the divisors
/// of the frequencies. With sections, `positions: [4 · n_tokens]` has the times of all tokens, then heights, widths
/// and fourth positions. The result has the shape of `x`.
#[derive(Clone, Debug)]
pub struct Rope {
    /// The pairing of elements.
    pub mode: RopeMode,
    /// Number of rotated elements; the rest of the row is copied.
    pub n_dims: u64,
    /// Training context length, for YaRN's ramp.
    pub n_ctx_orig: u64,
    /// Base of the frequencies.
    pub freq_base: f32,
    /// Factor on positions.
    pub freq_scale: f32,
    /// YaRN's extrapolation mix; 0 disables YaRN.
    pub ext_factor: f32,
    /// Factor on the rotated elements.
    pub attn_factor: f32,
    /// Upper corner of YaRN's ramp, in rotations.
    pub beta_fast: f32,
    /// Lower corner of YaRN's ramp, in rotations.
    pub beta_slow: f32,
}

impl Rope {
    /// Returns a rotation with ggml's defaults: base 10,000, unscaled, trained with 4096 tokens.
    pub const fn with_defaults(mode: RopeMode, n_dims: u64) -> Rope {
        Rope {
            mode,
            n_dims,
            n_ctx_orig: 4096,
            freq_base: 10_000.0,
            freq_scale: 1.0,
            ext_factor: 0.0,
            attn_factor: 1.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
        }
    }
}

eq_by_bits!(Rope { freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow; mode, n_dims, n_ctx_orig });

impl OpDef for Rope {
    const NAMES: &'static [&'static str] = &["rope"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        let mut out = vec![("mode", Attr::Word(self.mode.word().to_owned()))];
        if let Some(sections) = self.mode.sections() {
            let list = sections.into_iter().map(Attr::from).collect();
            out.push(("sections", Attr::List(list)));
        }
        out.extend([
            ("n_dims", Attr::from(self.n_dims)),
            ("n_ctx_orig", Attr::from(self.n_ctx_orig)),
            ("freq_base", Attr::Float(self.freq_base)),
            ("freq_scale", Attr::Float(self.freq_scale)),
            ("ext_factor", Attr::Float(self.ext_factor)),
            ("attn_factor", Attr::Float(self.attn_factor)),
            ("beta_fast", Attr::Float(self.beta_fast)),
            ("beta_slow", Attr::Float(self.beta_slow)),
        ]);
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Rope {
            mode: RopeMode::attr(attrs)?,
            n_dims: require("n_dims", attrs.int("n_dims")?)?,
            n_ctx_orig: require("n_ctx_orig", attrs.int("n_ctx_orig")?)?,
            freq_base: require("freq_base", attrs.float("freq_base")?)?,
            freq_scale: require("freq_scale", attrs.float("freq_scale")?)?,
            ext_factor: require("ext_factor", attrs.float("ext_factor")?)?,
            attn_factor: require("attn_factor", attrs.float("attn_factor")?)?,
            beta_fast: require("beta_fast", attrs.float("beta_fast")?)?,
            beta_slow: require("beta_slow", attrs.float("beta_slow")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([
            ("freq_base", self.freq_base),
            ("freq_scale", self.freq_scale),
            ("ext_factor", self.ext_factor),
            ("attn_factor", self.attn_factor),
            ("beta_fast", self.beta_fast),
            ("beta_slow", self.beta_slow),
        ])?;
        parameter("freq_base", "above 0", self.freq_base > 0.0)?;
        let (x, positions) = match operands {
            [x, p] => (x, p),
            [x, p, factors] => {
                check_real("factors", factors)?;
                check_equal(
                    "frequency factors and half of n_dims",
                    &factors.dims[0],
                    &(self.n_dims / 2).into(),
                )?;
                (x, p)
            }
            _ => {
                return Err(TypeError::Arity {
                    expected: "2 or 3",
                    found: operands.len(),
                });
            }
        };
        check_real("x", x)?;
        check_integer("positions", positions)?;
        let needed = x.dims[2].checked_mul(&self.mode.positions().into());
        check_equal(
            "positions required by x and positions given",
            &needed.ok_or(TypeError::Overflow)?,
            &positions.dims[0],
        )?;
        if self.mode.sections().is_some_and(|s| s == [0; 4]) {
            let (left, right) = (Dim::ZERO, Dim::ONE);
            return Err(TypeError::Sizes {
                what: "the sections hold no pair",
                left,
                right,
            });
        }
        if !self.n_dims.is_multiple_of(2) || x.dims[0].as_const().is_none_or(|d| d < self.n_dims) {
            let (left, right) = (self.n_dims.into(), x.dims[0].clone());
            return Err(TypeError::Sizes {
                what: "n_dims is odd or exceeds the row",
                left,
                right,
            });
        }
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::pointwise()
            .role(Role::Whole, opd(0, 0))
            .linear(Linearity::PerOperand(vec![0]));
        rule = match self.mode.sections() {
            None => rule.eq(opd(1, 0), opd(0, 2)),
            // The device that has a token needs all four positions.
            Some(_) => rule
                .role(Role::Whole, opd(1, 0))
                .role(Role::Whole, opd(0, 2)),
        };
        if operands.len() == 3 {
            rule.role(Role::Whole, opd(2, 0))
        } else {
            rule
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
