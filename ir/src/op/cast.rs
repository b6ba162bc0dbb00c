use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::resize::size_independent;
use super::rule::Rule;
use super::types::{InferredTypes, TypeError, check_real, expect_operands};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dtype::DType;
use crate::types::TensorType;

/// Conversion to another floating-point type, rounded to nearest, ties to even; `ggml_cast`.
///
/// Operand: `x`, any shape, of a real type; result of the same shape and type `to`: `f32`, `f16` or `bf16`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The type of the result.
    pub to: DType,
}

impl Cast {
    /// The types of results.
    pub const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
}

impl OpDef for Cast {
    const NAMES: &'static [&'static str] = &["cast"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        vec![("to", Attr::Word(self.to.name().to_owned()))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let word = require("to", attrs.word("to")?)?;
        let to = DType::from_name(&word).filter(|to| Cast::TYPES.contains(to));
        to.map(|to| Cast { to }).ok_or(AttrError::Kind {
            name: "to",
            expected: "f32, f16 or bf16",
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        let dims = x.dims.clone();
        Ok(TensorType {
            dtype: self.to,
            dims,
        }
        .into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        // A sum of rounded terms is not the rounded sum.
        Rule::pointwise().zero()
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
