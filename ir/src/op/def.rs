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

/// The properties of an op.
pub trait OpDef: Clone + Eq + Hash + Sized {
    /// The names of this op in text.
    const NAMES: &'static [&'static str];

    /// The category; passes and memory sharing depend on it.
    const CATEGORY: OpCategory;

    /// Returns the printed name, one of [`Self::NAMES`].
    fn name(&self) -> &'static str {
        Self::NAMES[0]
    }

    /// Returns the printed attributes.
    fn attrs(&self) -> Attrs {
        Vec::new()
    }

    /// Parses the op of that name.
    ///
    /// # Errors
    /// Returns an error if an attribute is missing or of the wrong kind.
    fn parse(name: &str, attrs: &mut AttrReader) -> Result<Self, AttrError>;

    /// Infers the types of the results.
    ///
    /// # Errors
    /// Returns an error if the number or the types of the operands are wrong.
    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError>;

    /// Returns the sharding rule for types that [`Self::infer`] accepts.
    fn rule(&self, operands: &[&TensorType], results: &[&TensorType]) -> Rule;

    /// Returns the axes along which query heads are grouped by KV head, if any.
    fn head_groupings(&self) -> &'static [HeadGrouping] {
        &[]
    }

    /// Returns the arithmetic and the memory traffic on one device; zero for transfers, views and updates.
    fn work(&self, on: &dyn Extents) -> Work;

    /// Returns the op that one device runs on its parts; `None` if the attributes cannot be adapted.
    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self>;

    /// Returns the op for tensors of other sizes.
    fn resize(&self, to: &dyn NewSizes) -> Self;

    /// Applies `f` to every size among the attributes; `None` if `f` returns `None`.
    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self>;
}
