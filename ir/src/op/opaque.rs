//! Ops from elsewhere for which the IR has no rule.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, required};
use super::resize::size_independent;
use super::rule::{Role, Rule, opd, res};
use super::types::{Inferred, TypeError};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::types::{RANK, TensorType};

/// An op without a rule: its operands and its result stay whole. It can be planned around, not executed.
///
/// Operands: any number, any type and shape; result: any type and shape, as declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Opaque {
    /// The op's name where it comes from.
    pub name: String,
    /// Everything else that its source says of it (parameters, offsets, operands left out), as text: ops of one name that
    /// differ in it are different ops. Empty where there is nothing else.
    pub detail: String,
}

impl OpDef for Opaque {
    const NAMES: &'static [&'static str] = &["opaque"];
    const CATEGORY: OpCategory = OpCategory::Heavy;

    fn attrs(&self) -> Attrs {
        let mut attrs = vec![("name", Attr::Str(self.name.clone()))];
        if !self.detail.is_empty() {
            attrs.push(("detail", Attr::Str(self.detail.clone())));
        }
        attrs
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Opaque {
            name: required("name", attrs.str("name")?)?,
            detail: attrs.str("detail")?.unwrap_or_default(),
        })
    }

    fn infer(&self, _: &[&TensorType]) -> Result<Inferred, TypeError> {
        Ok(Inferred::Declared)
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque();
        for axis in 0..RANK {
            rule = rule.role(Role::Whole, res(axis));
            for operand in 0..operands.len() {
                rule = rule.role(Role::Whole, opd(operand, axis));
            }
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
