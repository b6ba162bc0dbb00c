//! Copies and collectives: the only ops across places.
//!
//! A collective on a group's value has one operand and one result. In per-device programs it has one of each per
//! participant, in rank order.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::resize::size_independent;
use super::rule::{Linearity, Rule};
use super::types::{InferredTypes, TypeError, axis_index, check_equal, expect_operands};
use super::work::{Extents, Work};
use super::{Collective, OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::{RANK, TensorType};

/// A copy of the operand at the place of the result. From the host to a group, the result is mirrored or split, and
/// each device fetches its part. From a group to the host, a split value becomes whole.
///
/// Operand: `x`, any type and shape; the result has the same type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Copy;

impl OpDef for Copy {
    const NAMES: &'static [&'static str] = &["copy"];
    const CATEGORY: OpCategory = OpCategory::Copy;

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Copy)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        Ok((*x).clone().into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise()
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

fn check_not_empty(operands: &[&TensorType]) -> Result<(), TypeError> {
    if operands.is_empty() {
        Err(TypeError::Arity {
            expected: "1 or more",
            found: 0,
        })
    } else {
        Ok(())
    }
}

fn check_same_types(operands: &[&TensorType], except: Option<usize>) -> Result<(), TypeError> {
    check_not_empty(operands)?;
    for t in &operands[1..] {
        for i in (0..RANK).filter(|&i| Some(i) != except) {
            check_equal(
                "sizes of the participants",
                &operands[0].dims[i],
                &t.dims[i],
            )?;
        }
    }
    Ok(())
}

/// The sum over the participants in rank order, on each participant.
///
/// Operands: one per participant, of one shape; results: one per participant, of that shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllReduce;

impl OpDef for AllReduce {
    const NAMES: &'static [&'static str] = &["all_reduce"];
    const CATEGORY: OpCategory = OpCategory::Collective(Collective::AllReduce);

    fn parse(_: &str, _: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(AllReduce)
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        check_same_types(operands, None)?;
        Ok(InferredTypes::Types(
            operands.iter().map(|t| (*t).clone()).collect(),
        ))
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::pointwise().linear(Linearity::Joint)
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

/// The participants' parts concatenated along `axis`, on each participant.
///
/// Operands: one per participant, of one shape except along `axis`; results: one per participant, with all indices
/// along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllGather {
    /// The axis.
    pub axis: u64,
}

impl OpDef for AllGather {
    const NAMES: &'static [&'static str] = &["all_gather"];
    const CATEGORY: OpCategory = OpCategory::Collective(Collective::AllGather);

    fn attrs(&self) -> Attrs {
        vec![("axis", Attr::from(self.axis))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(AllGather {
            axis: require("axis", attrs.int("axis")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let axis = axis_index(self.axis)?;
        check_same_types(operands, Some(axis))?;
        let len = Dim::sum(operands.iter().map(|t| &t.dims[axis])).ok_or(TypeError::Overflow)?;
        Ok(InferredTypes::Types(
            operands
                .iter()
                .map(|t| t.with_dim(axis, len.clone()))
                .collect(),
        ))
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let rest: Vec<usize> = (0..RANK).filter(|&i| i != axis).collect();
        Rule::opaque().same(0, &rest)
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

fn counts_attr(counts: &[u64]) -> Attr {
    Attr::List(counts.iter().map(|&n| Attr::from(n)).collect())
}

fn parse_counts(attrs: &mut AttrReader) -> Result<Vec<u64>, AttrError> {
    let kind = AttrError::Kind {
        name: "counts",
        expected: "a list of non-negative integers",
    };
    attrs
        .dims("counts")?
        .unwrap_or_default()
        .iter()
        .map(|d| d.as_const().ok_or(kind.clone()))
        .collect()
}

fn cut(operands: &[&TensorType], axis: usize, counts: &[u64]) -> Result<(), TypeError> {
    if counts.len() != operands.len() {
        return Err(TypeError::Arity {
            expected: "equally many counts and",
            found: operands.len(),
        });
    }
    let sum = counts
        .iter()
        .try_fold(0_u64, |a, &b| a.checked_add(b))
        .ok_or(TypeError::Overflow)?;
    operands
        .iter()
        .try_for_each(|t| check_equal("sum of counts and axis", &sum.into(), &t.dims[axis]))
}

/// The sum over the participants, split along `axis`: participant `p` keeps `counts[p]` indices.
///
/// Operands: one per participant, of one shape; results: one per participant, with its count of indices along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceScatter {
    /// The axis.
    pub axis: u64,
    /// Indices per participant; empty for a value on a group, whose sharding states them.
    pub counts: Vec<u64>,
}

impl OpDef for ReduceScatter {
    const NAMES: &'static [&'static str] = &["reduce_scatter"];
    const CATEGORY: OpCategory = OpCategory::Collective(Collective::ReduceScatter);

    fn attrs(&self) -> Attrs {
        vec![
            ("axis", Attr::from(self.axis)),
            ("counts", counts_attr(&self.counts)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(ReduceScatter {
            axis: require("axis", attrs.int("axis")?)?,
            counts: parse_counts(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let axis = axis_index(self.axis)?;
        check_same_types(operands, None)?;
        if self.counts.is_empty() {
            let [x] = expect_operands(operands, "1")?;
            return Ok((*x).clone().into());
        }
        cut(operands, axis, &self.counts)?;
        Ok(InferredTypes::Types(
            operands
                .iter()
                .zip(&self.counts)
                .map(|(t, &n)| t.with_dim(axis, n.into()))
                .collect(),
        ))
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let rest: Vec<usize> = (0..RANK).filter(|&i| i != axis).collect();
        Rule::opaque().same(0, &rest).linear(Linearity::Joint)
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

/// An exchange of parts along `join` for parts along `cut`. Every participant cuts its operand along `cut` by
/// `counts`. Participant `p` concatenates the `p`-th pieces along `join`.
///
/// Operands: one per participant, of one shape except along `join`; results: one per participant, with all indices
/// along `join` and `counts[p]` along `cut`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllToAll {
    /// The axis that becomes split.
    pub cut: u64,
    /// The axis that becomes whole.
    pub join: u64,
    /// Indices along `cut` per participant; empty for a value on a group, whose sharding states them.
    pub counts: Vec<u64>,
}

impl OpDef for AllToAll {
    const NAMES: &'static [&'static str] = &["all_to_all"];
    const CATEGORY: OpCategory = OpCategory::Collective(Collective::AllToAll);

    fn attrs(&self) -> Attrs {
        vec![
            ("cut", Attr::from(self.cut)),
            ("join", Attr::from(self.join)),
            ("counts", counts_attr(&self.counts)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(AllToAll {
            cut: require("cut", attrs.int("cut")?)?,
            join: require("join", attrs.int("join")?)?,
            counts: parse_counts(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let (cut_axis, join) = (axis_index(self.cut)?, axis_index(self.join)?);
        if cut_axis == join {
            return Err(TypeError::Axis(self.join));
        }
        check_same_types(operands, Some(join))?;
        if self.counts.is_empty() {
            let [x] = expect_operands(operands, "1")?;
            return Ok((*x).clone().into());
        }
        cut(operands, cut_axis, &self.counts)?;
        let len = Dim::sum(operands.iter().map(|t| &t.dims[join])).ok_or(TypeError::Overflow)?;
        let local = |n: u64| {
            operands[0]
                .with_dim(join, len.clone())
                .with_dim(cut_axis, n.into())
        };
        Ok(InferredTypes::Types(
            self.counts.iter().map(|&n| local(n)).collect(),
        ))
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let (cut, join) = (
            axis_index(self.cut).unwrap_or(0),
            axis_index(self.join).unwrap_or(0),
        );
        let rest: Vec<usize> = (0..RANK).filter(|&i| i != cut && i != join).collect();
        Rule::opaque().same(0, &rest)
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}
