use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::resize::size_independent;
use super::rule::Rule;
use super::types::{InferredTypes, TypeError, check_finite, check_real, expect_operands, f32_of};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::types::TensorType;

fn curve(operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
    let [x] = expect_operands(operands, "1")?;
    check_real("x", x)?;
    Ok(f32_of(x.dims.clone()).into())
}

/// `max(x, 0) + slope · min(x, 0)`. Operand: `x`, any shape; result of the same shape.
#[derive(Clone, Debug)]
pub struct LeakyRelu {
    /// Slope below 0.
    pub slope: f32,
}

eq_by_bits!(LeakyRelu { slope });

impl OpDef for LeakyRelu {
    const NAMES: &'static [&'static str] = &["leaky_relu"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("slope", Attr::Float(self.slope))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(LeakyRelu {
            slope: require("slope", attrs.float("slope")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([("slope", self.slope)])?;
        curve(operands)
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise().zero()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// The expanded integral of ELU (arXiv 2411.13010): `alpha_p · x² + beta · x` above 0, and
/// `alpha_n · (e^min(x, eps) − 1 − x) + beta · x` up to 0. Operand: `x`, any shape; result of the same shape.
#[derive(Clone, Debug)]
pub struct Xielu {
    /// Factor of the lower branch.
    pub alpha_n: f32,
    /// Factor of the upper branch.
    pub alpha_p: f32,
    /// Slope at 0.
    pub beta: f32,
    /// Bound of the exponent.
    pub eps: f32,
}

eq_by_bits!(Xielu {
    alpha_n,
    alpha_p,
    beta,
    eps
});

impl OpDef for Xielu {
    const NAMES: &'static [&'static str] = &["xielu"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![
            ("alpha_n", Attr::Float(self.alpha_n)),
            ("alpha_p", Attr::Float(self.alpha_p)),
            ("beta", Attr::Float(self.beta)),
            ("eps", Attr::Float(self.eps)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Xielu {
            alpha_n: require("alpha_n", attrs.float("alpha_n")?)?,
            alpha_p: require("alpha_p", attrs.float("alpha_p")?)?,
            beta: require("beta", attrs.float("beta")?)?,
            eps: require("eps", attrs.float("eps")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_finite([
            ("alpha_n", self.alpha_n),
            ("alpha_p", self.alpha_p),
            ("beta", self.beta),
            ("eps", self.eps),
        ])?;
        curve(operands)
    }

    /// Zeros are not kept: if `eps` is below 0, f(0) is not 0.
    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// The constant `value` for every element. Operand: `x`, any shape, not read; the result has the same type and shape.
#[derive(Clone, Debug)]
pub struct Fill {
    /// The number.
    pub value: f32,
}

eq_by_bits!(Fill { value });

impl OpDef for Fill {
    const NAMES: &'static [&'static str] = &["fill"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("value", Attr::Float(self.value))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Fill {
            value: require("value", attrs.float("value")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        Ok((*x).clone().into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
