use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::resize::size_independent;
use super::rule::{Expr, Linearity, Rule, opd, res};
use super::types::{
    InferredTypes, TypeError, check_equal, check_finite, check_real, divides, expect_operands,
    f32_of, parameter,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::{RANK, TensorType};

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every kind.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            const NAMES: &'static [&'static str] = &[$($text),*];

            /// Returns the name in text.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            fn from_name(name: &str) -> Self {
                let known = Self::ALL.iter().find(|k| k.name() == name);
                *known.expect("invariant: parse is called with one of NAMES")
            }
        }
    };
}

kinds! {
    /// A function of one number, as in ggml. The reference interpreter has the formulas.
    UnaryKind {
        /// `x · σ(x)`
        Silu = "silu",
        /// GELU, tanh form
        Gelu = "gelu",
        /// GELU, error-function form
        GeluErf = "gelu_erf",
        /// `x · σ(1.702 x)`
        GeluQuick = "gelu_quick",
        /// `max(x, 0)`
        Relu = "relu",
        /// `σ(x)`
        Sigmoid = "sigmoid",
        /// `tanh x`
        Tanh = "tanh",
        /// `eˣ`
        Exp = "exp",
        /// `x²`
        Sqr = "sqr",
        /// `√x`
        Sqrt = "sqrt",
        /// `ln(1 + eˣ)`
        Softplus = "softplus",
        /// `−x`
        Neg = "neg",
        /// `|x|`
        Abs = "abs",
        /// `ln x`
        Log = "log",
        /// `sin x`
        Sin = "sin",
        /// `cos x`
        Cos = "cos",
        /// −1, 0 or 1
        Sgn = "sgn",
        /// 1 above 0, else 0
        Step = "step",
        /// `x` above 0, else `eˣ − 1`
        Elu = "elu",
        /// `eˣ − 1`
        Expm1 = "expm1",
        /// `x · min(1, max(0, (x + 3) / 6))`
        Hardswish = "hardswish",
        /// `min(1, max(0, (x + 3) / 6))`
        Hardsigmoid = "hardsigmoid",
        /// The largest integer up to `x`
        Floor = "floor",
        /// The smallest integer from `x` on
        Ceil = "ceil",
        /// The nearest integer, halves away from 0
        Round = "round",
        /// The integer part
        Trunc = "trunc",
    }
}

impl UnaryKind {
    /// True if `f(0) = 0`.
    pub const fn keeps_zero(self) -> bool {
        match self {
            UnaryKind::Silu
            | UnaryKind::Gelu
            | UnaryKind::GeluErf
            | UnaryKind::GeluQuick
            | UnaryKind::Relu
            | UnaryKind::Tanh
            | UnaryKind::Sqr
            | UnaryKind::Sqrt
            | UnaryKind::Neg
            | UnaryKind::Abs
            | UnaryKind::Sin
            | UnaryKind::Sgn
            | UnaryKind::Step
            | UnaryKind::Elu
            | UnaryKind::Expm1
            | UnaryKind::Hardswish
            | UnaryKind::Floor
            | UnaryKind::Ceil
            | UnaryKind::Round
            | UnaryKind::Trunc => true,
            UnaryKind::Sigmoid
            | UnaryKind::Exp
            | UnaryKind::Softplus
            | UnaryKind::Log
            | UnaryKind::Cos
            | UnaryKind::Hardsigmoid => false,
        }
    }
}

/// `f` of every element. Operand: `x`, any shape; result of the same shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unary {
    /// The function.
    pub kind: UnaryKind,
}

impl OpDef for Unary {
    const NAMES: &'static [&'static str] = UnaryKind::NAMES;
    const CATEGORY: OpCategory = OpCategory::Light;

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn parse(name: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Unary {
            kind: UnaryKind::from_name(name),
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let rule = Rule::pointwise();
        let rule = if self.kind.keeps_zero() {
            rule.zero()
        } else {
            rule
        };
        if self.kind == UnaryKind::Neg {
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

kinds! {
    /// An arithmetic function of two numbers.
    BinaryKind {
        /// `a + b`
        Add = "add",
        /// `a − b`
        Sub = "sub",
        /// `a · b`
        Mul = "mul",
        /// `a / b`
        Div = "div",
    }
}

/// Element-wise arithmetic. `b` repeats over `a`: index `i` of an axis uses index `i mod n` of the `n` indices of
/// `b`.
///
/// Operands: `a`, any shape; `b`, whose sizes divide the sizes of `a`. The result has the shape of `a`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// The function.
    pub kind: BinaryKind,
}

fn broadcast(rule: Rule, operand: usize, axis: usize, part: &Dim, whole: &Dim) -> Rule {
    if part == whole {
        return rule.eq(opd(0, axis), opd(operand, axis));
    }
    match whole.checked_div(part) {
        Some(rep) => {
            let fresh = Expr::Fresh(operand * RANK + axis, rep);
            rule.eq(opd(0, axis), Expr::Product(vec![fresh, opd(operand, axis)]))
        }
        None => rule,
    }
}

impl OpDef for Binary {
    const NAMES: &'static [&'static str] = BinaryKind::NAMES;
    const CATEGORY: OpCategory = OpCategory::Light;

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn parse(name: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Binary {
            kind: BinaryKind::from_name(name),
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [a, b] = expect_operands(operands, "2")?;
        check_real("a", a)?;
        check_real("b", b)?;
        for i in 0..RANK {
            divides(
                "size of b does not divide size of a",
                &b.dims[i],
                &a.dims[i],
            )?;
        }
        Ok(f32_of(a.dims.clone()).into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::pointwise();
        for i in 0..RANK {
            rule = broadcast(rule, 1, i, &operands[1].dims[i], &operands[0].dims[i]);
        }
        match self.kind {
            BinaryKind::Add | BinaryKind::Sub => rule.linear(Linearity::Additive).zero(),
            BinaryKind::Mul => rule.linear(Linearity::PerOperand(vec![0, 1])).zero(),
            BinaryKind::Div => rule.linear(Linearity::PerOperand(vec![0])),
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// `scale · x + bias`. Operand: `x`, any shape; result of the same shape.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Factor.
    pub scale: f32,
    /// Summand.
    pub bias: f32,
}

eq_by_bits!(Scale { scale, bias });

impl OpDef for Scale {
    const NAMES: &'static [&'static str] = &["scale"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        let mut out = vec![("scale", Attr::Float(self.scale))];
        if self.bias.to_bits() != 0 {
            out.push(("bias", Attr::Float(self.bias)));
        }
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Scale {
            scale: require("scale", attrs.float("scale")?)?,
            bias: attrs.float("bias")?.unwrap_or(0.0),
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_finite([("scale", self.scale), ("bias", self.bias)])?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let rule = Rule::pointwise();
        // Zero times infinity is NaN.
        if self.bias == 0.0 && self.scale.is_finite() {
            rule.linear(Linearity::Joint).zero()
        } else {
            rule
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// `min(max(x, min), max)`. Operand: `x`, any shape; result of the same shape.
#[derive(Clone, Debug)]
pub struct Clamp {
    /// Lower bound.
    pub min: f32,
    /// Upper bound.
    pub max: f32,
}

eq_by_bits!(Clamp { min, max });

impl OpDef for Clamp {
    const NAMES: &'static [&'static str] = &["clamp"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![
            ("min", Attr::Float(self.min)),
            ("max", Attr::Float(self.max)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Clamp {
            min: require("min", attrs.float("min")?)?,
            max: require("max", attrs.float("max")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        parameter("min", "at most `max`", self.min <= self.max)?;
        check_real("x", x)?;
        Ok(f32_of(x.dims.clone()).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let rule = Rule::pointwise();
        if self.min <= 0.0 && self.max >= 0.0 {
            rule.zero()
        } else {
            rule
        }
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

kinds! {
    /// A gated activation `f(gate) · up`.
    GluKind {
        /// `silu(gate) · up`
        Swiglu = "swiglu",
        /// `gelu(gate) · up`, tanh form
        Geglu = "geglu",
        /// `gelu(gate) · up`, error-function form
        GegluErf = "geglu_erf",
        /// `gelu_quick(gate) · up`
        GegluQuick = "geglu_quick",
        /// `relu(gate) · up`
        Reglu = "reglu",
        /// gpt-oss: `g · σ(alpha g) · (clamp(up, ±limit) + 1)` with `g = min(gate, limit)`
        SwigluOai = "swiglu_oai",
        /// DeepSeek 4: `silu(min(gate, limit)) · clamp(up, ±limit)`
        SwigluClamp = "swiglu_clamp",
    }
}

impl GluKind {
    /// True if the kind has a slope `alpha`.
    pub const fn takes_alpha(self) -> bool {
        matches!(self, GluKind::SwigluOai)
    }

    /// True if the kind has a bound `limit`.
    pub const fn takes_limit(self) -> bool {
        matches!(self, GluKind::SwigluOai | GluKind::SwigluClamp)
    }
}

/// A gated activation.
///
/// Operands: `gate` and `up`, both `[n, …]`, or one operand `[2·n, …]` with `gate` first along axis 0; result `[n, …]`.
#[derive(Clone, Debug)]
pub struct Glu {
    /// The activation.
    pub kind: GluKind,
    /// Slope of `swiglu_oai`.
    pub alpha: f32,
    /// Bound of `swiglu_oai` and `swiglu_clamp`.
    pub limit: f32,
}

eq_by_bits!(Glu { alpha, limit; kind });

impl Glu {
    /// Returns a gated activation without parameters.
    pub const fn new(kind: GluKind) -> Glu {
        Glu {
            kind,
            alpha: 0.0,
            limit: 0.0,
        }
    }
}

impl OpDef for Glu {
    const NAMES: &'static [&'static str] = GluKind::NAMES;
    const CATEGORY: OpCategory = OpCategory::Light;

    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn attrs(&self) -> Attrs {
        match self.kind {
            GluKind::SwigluOai => vec![
                ("alpha", Attr::Float(self.alpha)),
                ("limit", Attr::Float(self.limit)),
            ],
            GluKind::SwigluClamp => vec![("limit", Attr::Float(self.limit))],
            GluKind::Swiglu
            | GluKind::Geglu
            | GluKind::GegluErf
            | GluKind::GegluQuick
            | GluKind::Reglu => Vec::new(),
        }
    }

    fn parse(name: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let mut glu = Glu::new(GluKind::from_name(name));
        if glu.kind.takes_alpha() {
            glu.alpha = require("alpha", attrs.float("alpha")?)?;
        }
        if glu.kind.takes_limit() {
            glu.limit = require("limit", attrs.float("limit")?)?;
        }
        Ok(glu)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        if self.kind.takes_alpha() {
            check_finite([("alpha", self.alpha)])?;
        }
        if self.kind.takes_limit() {
            parameter("limit", "0 or more", self.limit >= 0.0)?;
        }
        for x in operands {
            check_real("operand", x)?;
        }
        match operands {
            [both] => {
                let half = divides(
                    "axis 0 is not a multiple of 2",
                    &Dim::constant(2),
                    &both.dims[0],
                )?;
                Ok(f32_of(both.with_dim(0, half).dims).into())
            }
            [gate, up] => {
                for i in 0..RANK {
                    check_equal("sizes of gate and up", &gate.dims[i], &up.dims[i])?;
                }
                Ok(f32_of(gate.dims.clone()).into())
            }
            _ => Err(TypeError::Arity {
                expected: "1 or 2",
                found: operands.len(),
            }),
        }
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        if operands.len() == 1 {
            return Rule::opaque()
                .eq(opd(0, 0), Expr::Sum(vec![res(0), res(0)]))
                .same(0, &[1, 2, 3])
                .zero();
        }
        Rule::pointwise().same(1, &[0, 1, 2, 3]).zero()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
