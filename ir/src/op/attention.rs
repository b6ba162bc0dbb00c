use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::head_groups::HeadGrouping;
use super::local::LocalCtx;
use super::resize::NewSizes;
use super::rule::{Expr, Linearity, Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, check_equal, check_finite, check_real, divides, f32_of, parameter,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::interval::Interval;
use crate::types::TensorType;

/// `softmax(scale · x + slope · mask)` over axis 0. With ALiBi, `slope` depends on the head (axis 2); otherwise it is
/// 1.
///
/// Operands: `x: [n, rows, H, …]`, optionally `mask: [n, rows, …]`, whose further axes repeat, and optionally
/// `sinks: [H]` (a logit per head, only in the denominator). The result has the shape of `x`.
#[derive(Clone, Debug)]
pub struct SoftMax {
    /// Factor on `x`.
    pub scale: f32,
    /// ALiBi's largest slope exponent; 0 without ALiBi.
    pub max_bias: f32,
    /// The heads that this device holds; `None` for all heads or without ALiBi.
    pub heads: Option<HeadWindow>,
}

eq_by_bits!(SoftMax { scale, max_bias; heads });

impl SoftMax {
    /// Returns a softmax with this scale and without ALiBi.
    pub const fn with_scale(scale: f32) -> SoftMax {
        SoftMax {
            scale,
            max_bias: 0.0,
            heads: None,
        }
    }
}

impl OpDef for SoftMax {
    const NAMES: &'static [&'static str] = &["soft_max"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        let mut out = vec![("scale", Attr::Float(self.scale))];
        alibi_attrs(self.max_bias, self.heads.as_ref(), &mut out);
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(SoftMax {
            scale: attrs.float("scale")?.unwrap_or(1.0),
            max_bias: attrs.float("max_bias")?.unwrap_or(0.0),
            heads: HeadWindow::parse(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([("scale", self.scale), ("max_bias", self.max_bias)])?;
        let (x, mask, sinks) = match operands {
            [x] => (x, None, None),
            [x, mask] => (x, Some(mask), None),
            [x, mask, sinks] => (x, Some(mask), Some(sinks)),
            _ => {
                return Err(TypeError::Arity {
                    expected: "1 to 3",
                    found: operands.len(),
                });
            }
        };
        check_real("x", x)?;
        if let Some(mask) = mask {
            check_real("mask", mask)?;
            check_equal("axis 0 of x and mask", &x.dims[0], &mask.dims[0])?;
            check_equal("axis 1 of x and mask", &x.dims[1], &mask.dims[1])?;
        }
        if let Some(sinks) = sinks {
            check_real("sinks", sinks)?;
            check_equal("axis 2 of x and sinks", &x.dims[2], &sinks.dims[0])?;
        }
        if let Some(window) = &self.heads {
            window.check(&x.dims[2])?;
        }
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::pointwise().role(Role::Whole, opd(0, 0));
        if operands.len() > 1 {
            rule = rule.eq(opd(1, 0), opd(0, 0)).eq(opd(1, 1), opd(0, 1));
            rule = mask_axis_rule(rule, operands, (1, 2), 2);
            rule = mask_axis_rule(rule, operands, (1, 3), 3);
        }
        match operands.len() > 2 {
            true => rule.eq(opd(2, 0), opd(0, 2)),
            false => rule,
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let heads = HeadWindow::of_part(self.max_bias, ctx)?;
        Some(SoftMax {
            heads: heads.or_else(|| self.heads.clone()),
            ..self.clone()
        })
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        self.clone()
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}

/// Adds the rule for a mask axis that repeats along an axis of operand 0. Axes of equal sizes are split in the same
/// way; otherwise both axes are whole unless the mask's size is 1.
fn mask_axis_rule(rule: Rule, operands: &[&TensorType], mask: (usize, usize), axis: usize) -> Rule {
    let (of_mask, of_x) = (&operands[mask.0].dims[mask.1], &operands[0].dims[axis]);
    if of_mask == of_x {
        return rule.eq(opd(mask.0, mask.1), opd(0, axis));
    }
    whole_unless_one(rule, operands, mask, axis)
}

fn whole_unless_one(
    rule: Rule,
    operands: &[&TensorType],
    (mask, own): (usize, usize),
    axis: usize,
) -> Rule {
    match operands[mask].dims[own].is_one() {
        true => rule,
        false => rule
            .role(Role::Whole, opd(mask, own))
            .role(Role::Whole, opd(0, axis)),
    }
}

/// The heads that an op sees, for attributes that depend on a head's index in the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeadWindow {
    /// The heads, in order.
    pub heads: Vec<Interval>,
    /// Number of heads of the model.
    pub total: u64,
}

impl HeadWindow {
    fn parse(attrs: &mut AttrReader) -> Result<Option<HeadWindow>, AttrError> {
        let Some(heads) = attrs.intervals("heads")? else {
            return Ok(None);
        };
        Ok(Some(HeadWindow {
            heads,
            total: require("of", attrs.int("of")?)?,
        }))
    }

    /// Returns the window of a device's part of operand 0, whose axis 2 has the heads; `Some(None)` for all heads or
    /// without ALiBi.
    fn of_part(max_bias: f32, ctx: &LocalCtx<'_>) -> Option<Option<HeadWindow>> {
        let x = ctx.tensor(Slot::Operand(0));
        if max_bias <= 0.0 || x.sharding.axes[2].is_none() {
            return Some(None);
        }
        Some(Some(HeadWindow {
            heads: ctx.intervals(Slot::Operand(0), 2)?,
            total: x.ty.dims[2].as_const()?,
        }))
    }

    fn check(&self, heads: &Dim) -> Result<(), TypeError> {
        let total = self.total;
        let within = |h: &Interval| h.end() <= total && h.len <= total;
        parameter("heads", "ranges within `of`", self.heads.iter().all(within))?;
        let count = self
            .heads
            .iter()
            .try_fold(0_u64, |n, h| n.checked_add(h.len));
        let count = count.ok_or(TypeError::Overflow)?;
        check_equal(
            "heads of the operand and of the window",
            heads,
            &count.into(),
        )
    }
}

fn alibi_attrs(max_bias: f32, heads: Option<&HeadWindow>, out: &mut Attrs) {
    if max_bias.to_bits() != 0 {
        out.push(("max_bias", Attr::Float(max_bias)));
    }
    if let Some(h) = heads {
        out.push(("heads", Attr::from(h.heads.as_slice())));
        out.push(("of", Attr::from(h.total)));
    }
}

/// Scaled dot-product attention with grouped heads: query head `h` uses KV head `h / (H / Hk)`.
///
/// Operands: `q: [dk, n_tokens, H]`, `k: [dk, n_kv, Hk]`, `v: [dv, n_kv, Hk]`, `mask: [n_kv, n_tokens]`, and
/// optionally `sinks: [H]` (a logit per head, only in the denominator). The result is `[dv, H, n_tokens]`.
///
/// With `lse`, a row of the result has one more element: the natural logarithm of the sum of the exponentials of its
/// scores. For a row without visible cells, it is −∞ and the other elements are 0. [`MergeAttn`](super::MergeAttn)
/// joins such rows.
#[derive(Clone, Debug)]
pub struct FlashAttn {
    /// Factor on the dot products.
    pub scale: f32,
    /// ALiBi's largest slope exponent; 0 without ALiBi.
    pub max_bias: f32,
    /// Bound `c` of `c · tanh(x / c)` on the logits; 0 disables it.
    pub softcap: f32,
    /// The heads that this device holds; `None` for all heads or without ALiBi.
    pub heads: Option<HeadWindow>,
    /// True if each row ends with its log-sum-exp.
    pub lse: bool,
}

eq_by_bits!(FlashAttn { scale, max_bias, softcap; heads, lse });

impl OpDef for FlashAttn {
    const NAMES: &'static [&'static str] = &["flash_attn"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn attrs(&self) -> Attrs {
        let mut out = vec![("scale", Attr::Float(self.scale))];
        if self.softcap.to_bits() != 0 {
            out.push(("softcap", Attr::Float(self.softcap)));
        }
        alibi_attrs(self.max_bias, self.heads.as_ref(), &mut out);
        if self.lse {
            out.push(("lse", Attr::from(1)));
        }
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(FlashAttn {
            scale: require("scale", attrs.float("scale")?)?,
            max_bias: attrs.float("max_bias")?.unwrap_or(0.0),
            softcap: attrs.float("softcap")?.unwrap_or(0.0),
            heads: HeadWindow::parse(attrs)?,
            lse: match attrs.int("lse")? {
                None | Some(0) => false,
                Some(1) => true,
                Some(_) => {
                    return Err(AttrError::Kind {
                        name: "lse",
                        expected: "0 or 1",
                    });
                }
            },
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([
            ("scale", self.scale),
            ("max_bias", self.max_bias),
            ("softcap", self.softcap),
        ])?;
        let (q, k, v, mask) = match operands {
            [q, k, v, mask] => (q, k, v, mask),
            [q, k, v, mask, sinks] => {
                check_real("sinks", sinks)?;
                check_equal("heads of q and sinks", &q.dims[2], &sinks.dims[0])?;
                (q, k, v, mask)
            }
            _ => {
                return Err(TypeError::Arity {
                    expected: "4 or 5",
                    found: operands.len(),
                });
            }
        };
        for (what, t) in [("q", q), ("k", k), ("v", v), ("mask", mask)] {
            check_real(what, t)?;
        }
        if let Some(window) = &self.heads {
            window.check(&q.dims[2])?;
        }
        check_equal("head size of q and k", &q.dims[0], &k.dims[0])?;
        check_equal("cells of k and v", &k.dims[1], &v.dims[1])?;
        check_equal("KV heads of k and v", &k.dims[2], &v.dims[2])?;
        divides("KV heads do not divide heads", &k.dims[2], &q.dims[2])?;
        check_equal("cells of k and mask", &k.dims[1], &mask.dims[0])?;
        check_equal("tokens of q and mask", &q.dims[1], &mask.dims[1])?;
        check_equal("streams of q and k", &q.dims[3], &k.dims[3])?;
        check_equal("streams of k and v", &k.dims[3], &v.dims[3])?;
        let row = match self.lse {
            true => v.dims[0]
                .checked_add(&Dim::ONE)
                .ok_or(TypeError::Overflow)?,
            false => v.dims[0].clone(),
        };
        Ok(f32_of([row, q.dims[2].clone(), q.dims[1].clone(), q.dims[3].clone()]).into())
    }

    fn head_groupings(&self) -> &'static [HeadGrouping] {
        &[HeadGrouping {
            query: (0, 2),
            kv: &[(1, 2), (2, 2)],
            per_query: &[(4, 0)],
            results: &[1],
        }]
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque()
            .eq(opd(0, 0), opd(1, 0))
            .eq(opd(1, 1), opd(2, 1))
            .eq(opd(1, 2), opd(2, 2))
            .eq(opd(0, 3), opd(1, 3))
            .eq(opd(1, 3), opd(2, 3))
            .eq(opd(3, 0), opd(1, 1))
            .eq(opd(3, 1), opd(0, 1))
            .eq(opd(0, 2), res(1))
            .eq(opd(0, 1), res(2))
            .eq(opd(0, 3), res(3))
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, opd(1, 1));
        rule = match self.lse {
            true => rule.role(Role::Whole, opd(2, 0)).role(Role::Whole, res(0)),
            false => (rule.eq(opd(2, 0), res(0))).linear(Linearity::PerOperand(vec![2])),
        };
        let (h, hk) = (&operands[0].dims[2], &operands[1].dims[2]);
        rule = match h.checked_div(hk) {
            Some(g) if !g.is_one() => {
                rule.eq(opd(0, 2), Expr::Product(vec![opd(1, 2), Expr::Fresh(0, g)]))
            }
            _ => rule.eq(opd(0, 2), opd(1, 2)),
        };
        // Heads are split by group, so a mask must not be split along its heads.
        rule = whole_unless_one(rule, operands, (3, 2), 2);
        rule = mask_axis_rule(rule, operands, (3, 3), 3);
        if operands.len() == 5 {
            rule.eq(opd(4, 0), opd(0, 2))
        } else {
            rule
        }
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let heads = HeadWindow::of_part(self.max_bias, ctx)?;
        Some(FlashAttn {
            heads: heads.or_else(|| self.heads.clone()),
            ..self.clone()
        })
    }

    fn work(&self, on: &dyn Extents) -> Work {
        let (q, k, v) = (Slot::Operand(0), Slot::Operand(1), Slot::Operand(2));
        let cells = on.size(k, 1).unwrap_or(0) as f64;
        let bytes = |slot: Slot| on.elements(slot) * on.dtype(slot).element_bytes();
        Work {
            flops: 4.0 * on.elements(q) * cells,
            bytes: bytes(k) + bytes(v) + 4.0 * (on.elements(q) + on.elements(Slot::Result(0))),
        }
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        self.clone()
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}
