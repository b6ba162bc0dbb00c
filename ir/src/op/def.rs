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

/// The facts that an op states about itself. An item without a default is a question that every new op answers.
pub trait OpDef: Clone + Eq + Hash + Sized {
    /// Every name under which text may spell this op.
    const NAMES: &'static [&'static str];

    /// The category, which decides how passes treat the op and whether the result shares an operand's memory.
    const CATEGORY: OpCategory;

    /// The name that this instance prints with; one of [`Self::NAMES`].
    fn name(&self) -> &'static str {
        Self::NAMES[0]
    }

    /// The attributes that this instance prints with.
    fn attrs(&self) -> Attrs {
        Vec::new()
    }

    /// The op of that name with these attributes.
    ///
    /// # Errors
    /// When an attribute is missing or of the wrong kind.
    fn parse(name: &str, attrs: &mut AttrReader) -> Result<Self, AttrError>;

    /// The types of the results.
    ///
    /// # Errors
    /// When the operands are too few, too many or of unfit types.
    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError>;

    /// The sharding rule for operands and results of these types (those that [`Self::infer`] accepts).
    fn rule(&self, operands: &[&TensorType], results: &[&TensorType]) -> Rule;

    /// Returns the axes along which query heads are grouped by KV head. The default is for ops without such groups.
    fn head_groupings(&self) -> &'static [HeadGrouping] {
        &[]
    }

    /// Returns the arithmetic and the memory traffic on one device. The work is zero if a transfer moves the op's data or
    /// the result shares an operand's memory.
    fn work(&self, on: &dyn Extents) -> Work;

    /// The op that one device runs on its parts; `None` when attributes cannot be re-based for its part.
    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self>;

    /// The op of a graph whose tensors have other sizes.
    fn resize(&self, to: &dyn NewSizes) -> Self;

    /// Returns the op with `f` applied to every size among its attributes; `None` if `f` returns `None`.
    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self>;
}
