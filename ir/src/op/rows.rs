use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::cell_parts;
use super::local::LocalCtx;
use super::resize::NewSizes;
use super::rule::{Expr, Linearity, Role, Rule, Slot, opd, res};
use super::types::{
    InferredTypes, TypeError, axis_index, check_equal, check_integer, check_real, check_within,
    expect_operands, f32_of, rank_at_most,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::cells::{CELL_BLOCK, CellParts};
use crate::dims::Dim;
use crate::dtype::DType;
use crate::interval::Interval;
use crate::types::{RANK, TensorType};

/// `out[:, r, i, j] = data[:, index[r, i, j], i, j]`. Operands: `data: [n, rows, p, q]`,
/// `index: [r, p, q]`; result `[n, r, p, q]`, f32 (i32 for integer data).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetRows {
    /// The table rows that `data` holds; `None` for all. Other rows are zero in the result.
    pub window: Option<Interval>,
}

impl OpDef for GetRows {
    const NAMES: &'static [&'static str] = &["get_rows"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        self.window
            .map(|w| ("window", Attr::Interval(w)))
            .into_iter()
            .collect()
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(GetRows {
            window: attrs.interval("window")?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [data, index] = expect_operands(operands, "2")?;
        check_integer("index", index)?;
        check_equal("batches of data and index", &data.dims[2], &index.dims[1])?;
        check_equal("batches of data and index", &data.dims[3], &index.dims[2])?;
        rank_at_most(3, "axes of index beyond the third", index)?;
        if let Some(win) = self.window {
            check_equal(
                "rows of data and of the window",
                &data.dims[1],
                &win.len.into(),
            )?;
        }
        let [r, p, q, _] = index.dims.clone();
        let out = f32_of([data.dims[0].clone(), r, p, q]);
        Ok(if data.dtype.is_integer() {
            out.with_dtype(DType::I32)
        } else {
            out
        }
        .into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .same(0, &[0, 2, 3])
            .eq(opd(1, 0), res(1))
            .eq(opd(1, 1), res(2))
            .eq(opd(1, 2), res(3))
            .role(Role::Gather, opd(0, 1))
            .linear(Linearity::PerOperand(vec![0]))
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        Some(GetRows {
            window: ctx.window(Slot::Operand(0), 1)?,
        })
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        self.clone()
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}

/// Replaces slices of `dst` along `axis` in place: `dst[…, index[i], …] = rows[…, i, …]`, converted to its type.
///
/// Operands: `dst`, any shape; `rows`, the same shape with `n` indices along `axis`; `index: [n]`. Along axis 1,
/// `index` may be `[n, p, q]`, with entries for each batch of `dst: [_, _, p, q]`; `p` or `q` may be 1. The result
/// has the shape of `dst`.
///
/// With `cells`, the indices count the cells of the whole cache. A device writes the cells of its parts and skips
/// others. `index` then has one axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetRows {
    /// The axis of the slices.
    pub axis: u64,
    /// The parts of the cells that `dst` holds; `None` if `dst` is not divided by cells.
    pub cells: Option<CellParts>,
}

impl SetRows {
    /// Returns an update along an axis that is not divided by cells.
    pub const fn along(axis: u64) -> SetRows {
        SetRows { axis, cells: None }
    }
}

/// Batch axes: (axis of the index, axis of the destination).
const BATCHES: [(usize, usize); 2] = [(1, 2), (2, 3)];

impl OpDef for SetRows {
    const NAMES: &'static [&'static str] = &["set_rows"];
    const CATEGORY: OpCategory = OpCategory::Update;

    fn attrs(&self) -> Attrs {
        let mut out = vec![("axis", Attr::from(self.axis))];
        if let Some(cells) = &self.cells {
            cell_parts::attrs(cells, &mut out);
        }
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(SetRows {
            axis: require("axis", attrs.int("axis")?)?,
            cells: cell_parts::parse(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [dst, rows, index] = expect_operands(operands, "3")?;
        check_real("dst", dst)?;
        check_real("rows", rows)?;
        check_integer("index", index)?;
        let axis = axis_index(self.axis)?;
        for i in (0..RANK).filter(|&i| i != axis) {
            check_equal("sizes of dst and rows", &dst.dims[i], &rows.dims[i])?;
        }
        check_equal(
            "slices of rows and entries of index",
            &rows.dims[axis],
            &index.dims[0],
        )?;
        if self.cells.is_some() {
            rank_at_most(1, "axes of index beyond the first", index)?;
        }
        for (of_index, of_dst) in BATCHES {
            let found = &index.dims[of_index];
            if !found.is_one() {
                let wanted = if axis == 1 {
                    &dst.dims[of_dst]
                } else {
                    &Dim::ONE
                };
                check_equal("batches of dst and index", wanted, found)?;
            }
        }
        check_equal("entries of index per batch", &Dim::ONE, &index.dims[3])?;
        Ok((*dst).clone().into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let mut rule = Rule::pointwise()
            .eq(opd(1, axis), opd(2, 0))
            .role(Role::Whole, opd(1, axis));
        rule = match self.cells {
            Some(cells) => (rule.eq(opd(0, axis), cells_axis(&operands[0].dims[axis], cells)))
                .role(Role::Owned, opd(0, axis)),
            None => rule.role(Role::Whole, opd(0, axis)),
        };
        for i in (0..RANK).filter(|&i| i != axis) {
            rule = rule.eq(opd(0, i), opd(1, i));
        }
        for (of_index, of_dst) in BATCHES {
            let has = |t: &&TensorType| !t.dims[of_index].is_one();
            if operands.get(2).is_some_and(has) {
                rule = rule.eq(opd(0, of_dst), opd(2, of_index));
            }
        }
        rule
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let axis = axis_index(self.axis).ok()?;
        Some(SetRows {
            axis: self.axis,
            cells: match self.cells {
                Some(cells) => Some(ctx.cell_parts(Slot::Operand(0), axis, cells)?),
                None => None,
            },
        })
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        self.clone()
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}

/// Returns the factors of an axis of cells: rounds of blocks, parts, and cells of a block. The numbers of factors are
/// 0, 1 and 2.
pub(super) fn cells_axis(size: &Dim, cells: CellParts) -> Expr {
    let block = Dim::constant(CELL_BLOCK as u64);
    let parts = Dim::constant(cells.count);
    let rounds = (block.checked_mul(&parts)).and_then(|unit| size.checked_div(&unit));
    match rounds {
        Some(rounds) => Expr::Product(vec![
            Expr::Fresh(0, rounds),
            Expr::Fresh(1, parts),
            Expr::Fresh(2, block),
        ]),
        None => Expr::Fresh(0, size.clone()),
    }
}

/// Replaces the slice of `dst` from `start` along `axis` by `src`, in place, converted to its type.
///
/// Operands: `dst`, any shape; `src`, the same but shorter along `axis`; result as `dst`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetSlice {
    /// The axis of the slice.
    pub axis: u64,
    /// The first index of the slice.
    pub start: Dim,
}

impl OpDef for SetSlice {
    const NAMES: &'static [&'static str] = &["set_slice"];
    const CATEGORY: OpCategory = OpCategory::Update;

    fn attrs(&self) -> Attrs {
        vec![
            ("axis", Attr::from(self.axis)),
            ("start", Attr::from(&self.start)),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(SetSlice {
            axis: require("axis", attrs.int("axis")?)?,
            start: require("start", attrs.dim("start")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [dst, src] = expect_operands(operands, "2")?;
        check_real("dst", dst)?;
        check_real("src", src)?;
        let axis = axis_index(self.axis)?;
        for i in (0..RANK).filter(|&i| i != axis) {
            check_equal("sizes of dst and src", &dst.dims[i], &src.dims[i])?;
        }
        let end = self
            .start
            .checked_add(&src.dims[axis])
            .ok_or(TypeError::Overflow)?;
        check_within("end of the slice beyond the axis", &end, &dst.dims[axis])?;
        Ok((*dst).clone().into())
    }

    fn rule(&self, operands: &[&TensorType], _: &[&TensorType]) -> Rule {
        let axis = axis_index(self.axis).unwrap_or(0);
        let len = &operands[1].dims[axis];
        let mut rule = Rule::pointwise();
        let sizes = [&operands[0].dims[axis], len, &self.start];
        rule = if sizes.iter().all(|d| d.as_const().is_some()) {
            let part = Expr::Slice(Box::new(opd(0, axis)), self.start.clone(), len.clone());
            rule.eq(part, opd(1, axis))
        } else {
            rule.role(Role::Whole, opd(0, axis))
                .role(Role::Whole, opd(1, axis))
        };
        for i in (0..RANK).filter(|&i| i != axis) {
            rule = rule.eq(opd(0, i), opd(1, i));
        }
        // Rounding to a narrower type is not linear.
        if operands[0].dtype == DType::F32 {
            rule.linear(Linearity::Joint)
        } else {
            rule
        }
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let axis = axis_index(self.axis).ok()?;
        Some(SetSlice {
            axis: self.axis,
            start: ctx.local_index(Slot::Operand(0), axis, &self.start)?,
        })
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    fn resize(&self, to: &dyn NewSizes) -> Self {
        let axis = axis_index(self.axis).unwrap_or(0);
        let len = &to.old(Slot::Operand(1)).dims[axis];
        SetSlice {
            axis: self.axis,
            start: to.start(0, axis, &self.start, len),
        }
    }

    fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(SetSlice {
            axis: self.axis,
            start: f(&self.start)?,
        })
    }
}
