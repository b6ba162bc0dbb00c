use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::local::LocalCtx;
use super::resize::{NewSizes, size_independent};
use super::rule::{Expr, Linearity, Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, axis_index, check_equal, check_within, divides, expect_operands,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::types::{RANK, TensorType};

fn dims_attr(dims: &[Dim; RANK]) -> Attrs {
    let rank = dims.iter().rposition(|d| !d.is_one()).map_or(1, |i| i + 1);
    vec![(
        "dims",
        Attr::List(dims[..rank].iter().map(Attr::from).collect()),
    )]
}

fn parse_dims(attrs: &mut AttrReader) -> Result<[Dim; RANK], AttrError> {
    let given = require("dims", attrs.dims("dims")?)?;
    if given.len() > RANK {
        return Err(AttrError::Kind {
            name: "dims",
            expected: "a list of at most four sizes",
        });
    }
    let mut dims = [Dim::ONE, Dim::ONE, Dim::ONE, Dim::ONE];
    for (d, g) in dims.iter_mut().zip(given) {
        *d = g;
    }
    Ok(dims)
}

fn map_all(dims: &[Dim; RANK], f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<[Dim; RANK]> {
    let [a, b, c, d] = dims;
    Some([f(a)?, f(b)?, f(c)?, f(d)?])
}

/// A view with other sizes and the same order of elements.
///
/// Operand: `x`, any type and shape; result `dims`, with the same number of elements and the same type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The new sizes.
    pub dims: [Dim; RANK],
}

impl OpDef for Reshape {
    const NAMES: &'static [&'static str] = &["reshape"];
    const CATEGORY: OpCategory = OpCategory::Layout;

    fn attrs(&self) -> Attrs {
        dims_attr(&self.dims)
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Reshape {
            dims: parse_dims(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        let old = x.elements().ok_or(TypeError::Overflow)?;
        let new = Dim::product(&self.dims).ok_or(TypeError::Overflow)?;
        check_equal("elements before and after", &old, &new)?;
        Ok(TensorType {
            dtype: x.dtype,
            dims: self.dims.clone(),
        }
        .into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let flat = |axis: fn(usize) -> Expr| Expr::Product((0..RANK).rev().map(axis).collect());
        Rule::opaque()
            .eq(flat(|a| opd(0, a)), flat(res))
            .linear(Linearity::Joint)
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        Some(Reshape {
            dims: ctx.local_type(Slot::Result(0))?.dims,
        })
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        Reshape {
            dims: to.dims(Slot::Result(0)),
        }
    }

    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(Reshape {
            dims: map_all(&self.dims, f)?,
        })
    }
}

/// A view with axis `i` of the operand as axis `axes[i]` of the result.
///
/// Operand: `x`, any type and shape; result of the same type, sizes permuted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permute {
    /// The axis of the result for each axis of the operand.
    pub axes: [u64; RANK],
}

impl OpDef for Permute {
    const NAMES: &'static [&'static str] = &["permute"];
    const CATEGORY: OpCategory = OpCategory::Layout;

    fn attrs(&self) -> Attrs {
        vec![(
            "axes",
            Attr::List(self.axes.iter().map(|&a| Attr::from(a)).collect()),
        )]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let wrong = AttrError::Kind {
            name: "axes",
            expected: "a permutation of [0, 1, 2, 3]",
        };
        let given = require("axes", attrs.dims("axes")?)?;
        let given: Vec<u64> = given.iter().filter_map(Dim::as_const).collect();
        let mut sorted = given.clone();
        sorted.sort_unstable();
        match <[u64; RANK]>::try_from(given) {
            Ok(axes) if sorted == [0, 1, 2, 3] => Ok(Permute { axes }),
            _ => Err(wrong),
        }
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        let mut out = (*x).clone();
        let mut seen = [false; RANK];
        for (i, &to) in self.axes.iter().enumerate() {
            let to_axis = axis_index(to)?;
            if std::mem::replace(&mut seen[to_axis], true) {
                return Err(TypeError::Axis(to));
            }
            out.dims[to_axis] = x.dims[i].clone();
        }
        Ok(out.into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque().linear(Linearity::Joint);
        for (i, &to) in self.axes.iter().enumerate() {
            rule = rule.eq(opd(0, i), res(axis_index(to).unwrap_or(0)));
        }
        rule
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

/// A view of `len` indices from `start` along `axis`.
///
/// Operand: `x`, any type and shape; result as `x`, with `len` indices along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The axis.
    pub axis: u64,
    /// First index.
    pub start: Dim,
    /// Number of indices.
    pub len: Dim,
}

impl OpDef for Slice {
    const NAMES: &'static [&'static str] = &["slice"];
    const CATEGORY: OpCategory = OpCategory::Selection;

    fn attrs(&self) -> Attrs {
        vec![
            ("axis", Attr::from(self.axis)),
            ("start", Attr::from(&self.start)),
            ("len", Attr::from(&self.len)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Slice {
            axis: require("axis", attrs.int("axis")?)?,
            start: require("start", attrs.dim("start")?)?,
            len: require("len", attrs.dim("len")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        let axis = axis_index(self.axis)?;
        let end = self
            .start
            .checked_add(&self.len)
            .ok_or(TypeError::Overflow)?;
        check_within("end of the slice beyond the axis", &end, &x.dims[axis])?;
        Ok(x.with_dim(axis, self.len.clone()).into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let rule = Rule::opaque().linear(Linearity::Joint);
        // An axis of run-time size (the input of a convolution) has unknown factor boundaries, so it is not split.
        let inside = operands[0].dims[axis].as_const().is_none() && !self.start.is_zero();
        let mut rule = if inside {
            rule.role(Role::Whole, opd(0, axis))
                .role(Role::Whole, res(axis))
        } else {
            rule.eq(
                Expr::Slice(Box::new(opd(0, axis)), self.start.clone(), self.len.clone()),
                res(axis),
            )
        };
        for i in (0..RANK).filter(|&i| i != axis) {
            rule = rule.eq(opd(0, i), res(i));
        }
        rule
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let axis = axis_index(self.axis).ok()?;
        let start = ctx.local_index(Slot::Operand(0), axis, &self.start)?;
        Some(Slice {
            axis: self.axis,
            start,
            len: ctx.local_type(Slot::Result(0))?.dims[axis].clone(),
        })
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        let axis = axis_index(self.axis).unwrap_or(0);
        Slice {
            axis: self.axis,
            start: to.start(0, axis, &self.start, &self.len),
            len: to.dims(Slot::Result(0))[axis].clone(),
        }
    }

    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(Slice {
            axis: self.axis,
            start: f(&self.start)?,
            len: f(&self.len)?,
        })
    }
}

/// The operands concatenated along `axis`.
///
/// Operands: one or more, of one type and, except along `axis`, one shape. The result has all their indices along
/// `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    /// The axis.
    pub axis: u64,
}

impl OpDef for Concat {
    const NAMES: &'static [&'static str] = &["concat"];
    const CATEGORY: OpCategory = OpCategory::Assembly;

    fn attrs(&self) -> Attrs {
        vec![("axis", Attr::from(self.axis))]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Concat {
            axis: require("axis", attrs.int("axis")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let Some((first, rest)) = operands.split_first() else {
            return Err(TypeError::Arity {
                expected: "1 or more",
                found: 0,
            });
        };
        let axis = axis_index(self.axis)?;
        let mut len = first.dims[axis].clone();
        for t in rest {
            for i in (0..RANK).filter(|&i| i != axis) {
                check_equal("sizes across the concatenation", &first.dims[i], &t.dims[i])?;
            }
            if t.dtype != first.dtype {
                return Err(TypeError::Elements {
                    what: "operand",
                    expected: "of one type",
                    found: t.dtype,
                });
            }
            len = len.checked_add(&t.dims[axis]).ok_or(TypeError::Overflow)?;
        }
        Ok(first.with_dim(axis, len).into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let parts = (0..operands.len())
            .filter(|&o| !operands[o].dims[axis].is_zero())
            .map(|o| opd(o, axis));
        let mut rule = Rule::opaque()
            .eq(res(axis), Expr::Sum(parts.collect()))
            .linear(Linearity::Joint);
        for o in 0..operands.len() {
            for i in (0..RANK).filter(|&i| i != axis) {
                rule = rule.eq(opd(o, i), res(i));
            }
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}

/// The operand repeated as a whole along each axis.
///
/// Operand: `x`, any type and shape; result `dims` of the same type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Repeat {
    /// The new sizes, multiples of the old.
    pub dims: [Dim; RANK],
}

impl OpDef for Repeat {
    const NAMES: &'static [&'static str] = &["repeat"];
    const CATEGORY: OpCategory = OpCategory::Repetition;

    fn attrs(&self) -> Attrs {
        dims_attr(&self.dims)
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Repeat {
            dims: parse_dims(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        for (from, to) in x.dims.iter().zip(&self.dims) {
            divides("size does not divide its repetition", from, to)?;
        }
        Ok(TensorType {
            dtype: x.dtype,
            dims: self.dims.clone(),
        }
        .into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let mut rule = Rule::opaque().linear(Linearity::Joint);
        for i in 0..RANK {
            let (from, to) = (&operands[0].dims[i], &self.dims[i]);
            rule = match to.checked_div(from) {
                Some(rep) if from != to => {
                    rule.eq(res(i), Expr::Product(vec![Expr::Fresh(i, rep), opd(0, i)]))
                }
                _ => rule.eq(res(i), opd(0, i)),
            };
        }
        rule
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        Some(Repeat {
            dims: ctx.local_type(Slot::Result(0))?.dims,
        })
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        Repeat {
            dims: to.dims(Slot::Result(0)),
        }
    }

    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(Repeat {
            dims: map_all(&self.dims, f)?,
        })
    }
}

/// The operand between zeros along `axis`.
///
/// Operand: `x`, any shape; result as `x`, with `before + after` more indices along `axis`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// The axis.
    pub axis: u64,
    /// Zeros before.
    pub before: u64,
    /// Zeros after.
    pub after: u64,
}

impl OpDef for Pad {
    const NAMES: &'static [&'static str] = &["pad"];
    const CATEGORY: OpCategory = OpCategory::Assembly;

    fn attrs(&self) -> Attrs {
        vec![
            ("axis", Attr::from(self.axis)),
            ("before", self.before.into()),
            ("after", self.after.into()),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(Pad {
            axis: require("axis", attrs.int("axis")?)?,
            before: attrs.int("before")?.unwrap_or(0),
            after: attrs.int("after")?.unwrap_or(0),
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        let axis = axis_index(self.axis)?;
        let zeros = self
            .before
            .checked_add(self.after)
            .ok_or(TypeError::Overflow)?;
        let size = x.dims[axis]
            .checked_add(&zeros.into())
            .ok_or(TypeError::Overflow)?;
        Ok(x.with_dim(axis, size).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let mut rule = Rule::opaque()
            .role(Role::Whole, opd(0, axis))
            .role(Role::Whole, res(axis))
            .linear(Linearity::Joint);
        for i in (0..RANK).filter(|&i| i != axis) {
            rule = rule.eq(opd(0, i), res(i));
        }
        rule
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    size_independent!();
}
