//! The facts that every op states.

use std::hash::Hash;

use super::attrs::{AttrError, AttrReader, Attrs};
use super::category::OpCategory;
use super::head_groups::HeadGrouping;
use super::local::LocalCtx;
use super::resize::NewSizes;
use super::rule::Rule;
use super::types::{InferredTypes, TypeError};
use super::work::{Extents, Work};
use crate::dims::Dim;
use crate::types::TensorType;

/// The properties that an op defines. Every op must define the items without a default.
pub trait OpDef: Clone + Eq + Hash + Sized {
    /// Every name under which text may spell this op.
    const NAMES: &'static [&'static str];

    /// The category, which decides how passes treat the op and whether the result shares an operand's memory.
    const CATEGORY: OpCategory;

    /// Returns the printed name of this instance; one of [`Self::NAMES`].
    fn name(&self) -> &'static str {
        Self::NAMES[0]
    }

    /// Returns the printed attributes of this instance.
    fn attrs(&self) -> Attrs {
        Vec::new()
    }

    /// Parses the op of that name with these attributes.
    ///
    /// # Errors
    /// Returns an error if an attribute is missing or of the wrong kind.
    fn parse(name: &str, attrs: &mut AttrReader) -> Result<Self, AttrError>;

    /// Infers the types of the results.
    ///
    /// # Errors
    /// Returns an error if the number or the types of the operands are wrong.
    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError>;

    /// Returns the sharding rule for operands and results of types that [`Self::infer`] accepts.
    fn rule(&self, operands: &[&TensorType], results: &[&TensorType]) -> Rule;

    /// Returns the axes along which query heads are grouped by KV head. The default is for ops without such groups.
    fn head_groupings(&self) -> &'static [HeadGrouping] {
        &[]
    }

    /// Returns the arithmetic and the memory traffic on one device. The work is zero if a transfer moves the op's data or
    /// the result shares an operand's memory.
    fn work(&self, on: &dyn Extents) -> Work;

    /// Returns the op that one device runs on its parts; `None` if attributes cannot be adapted to its part.
    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self>;

    /// Returns the op for tensors of other sizes.
    fn resize(&self, to: &dyn NewSizes) -> Self;

    /// Returns the op with `f` applied to every size among its attributes; `None` if `f` returns `None`.
    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self>;
}
