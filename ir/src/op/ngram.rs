use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::local::LocalCtx;
use super::resize::NewSizes;
use super::rule::{Role, Rule, opd, res};
use super::types::{
    InferredTypes, TypeError, check_real, expect_operands, parameter, rank_at_most,
};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::dims::Dim;
use crate::dtype::DType;
use crate::interval::Interval;
use crate::types::TensorType;

/// Table rows selected by the n-grams that end with each token. The hash of an n-gram is the exclusive or, over `j`,
/// of `factors[j]` times the id of the `j`-th token before the last, modulo 2⁶⁴. The row is the table's first row
/// plus the hash modulo the table's length. At a missing predecessor or at the token `end`, all earlier tokens count
/// as `end`.
///
/// Operand: `x: [factors − 1 + n_t, n_s]`, token ids plus 1, or 0 for a missing token: the last tokens before the
/// batch, then the batch's tokens. Result: `i32[tables, n_t, n_s]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NgramRows {
    /// A factor per token of the longest n-grams, at least two.
    pub factors: Vec<u64>,
    /// The rows of each table, bigrams first, with the same number of tables per length.
    pub tables: Vec<Interval>,
    /// The substitute for missing tokens.
    pub end: u64,
}

impl NgramRows {
    /// Rows per table in small models.
    const SMALL: u64 = 2;

    /// Returns the rows selected by one token, given the ids plus 1 of the token and its predecessors, latest first.
    pub fn rows<'a>(
        &'a self,
        ids: impl Iterator<Item = f64> + 'a,
    ) -> impl Iterator<Item = u64> + 'a {
        let per_length = self.tables.len() / self.factors.len().saturating_sub(1).max(1);
        let mut mixed = 0_u64;
        let mut over = false;
        let ids = ids.chain(std::iter::repeat(0.0));
        let lengths = self.factors.iter().zip(ids).enumerate();
        lengths.flat_map(move |(j, (factor, id))| {
            let id = if id >= 1.0 {
                (id - 1.0) as u64
            } else {
                self.end
            };
            over |= j > 0 && id == self.end;
            mixed ^= factor.wrapping_mul(if over { self.end } else { id });
            let first = j.saturating_sub(1) * per_length;
            let tables = if j == 0 { 0 } else { per_length };
            let hash = mixed;
            let selected = self.tables.iter().skip(first).take(tables);
            selected.map(move |t| t.start + hash.checked_rem(t.len).unwrap_or(0))
        })
    }

    /// Returns the end of all tables' rows.
    pub fn end_row(&self) -> u64 {
        self.tables.iter().map(|t| t.end()).max().unwrap_or(0)
    }
}

impl OpDef for NgramRows {
    const NAMES: &'static [&'static str] = &["ngram_rows"];
    const CATEGORY: OpCategory = OpCategory::Light;

    fn attrs(&self) -> Attrs {
        let factors = self.factors.iter().map(|&f| Attr::from(f));
        vec![
            ("factors", Attr::List(factors.collect())),
            ("tables", Attr::from(self.tables.as_slice())),
            ("end", self.end.into()),
        ]
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        let factors = require("factors", attrs.dims("factors")?)?;
        let factors: Option<Vec<u64>> = factors.iter().map(Dim::as_const).collect();
        Ok(NgramRows {
            factors: factors.ok_or(AttrError::Kind {
                name: "factors",
                expected: "a list of non-negative integers",
            })?,
            tables: require("tables", attrs.intervals("tables")?)?,
            end: require("end", attrs.int("end")?)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        let [x] = expect_operands(operands, "1")?;
        check_real("x", x)?;
        rank_at_most(2, "axes beyond tokens and sequences", x)?;
        let lengths = (self.factors.len() as u64).saturating_sub(1);
        parameter("factors", "a list of two or more", lengths > 0)?;
        let tables = self.tables.len() as u64;
        let equal = tables > 0 && tables.is_multiple_of(lengths.max(1));
        parameter("tables", "the same number of tables for each length", equal)?;
        let held = |t: &Interval| {
            let end = t.start.checked_add(t.len);
            t.len > 0 && end.is_some_and(|end| end <= 1 << 31)
        };
        let held = self.tables.iter().all(held);
        parameter(
            "tables",
            "at least one row per table, with row numbers below 2³¹",
            held,
        )?;
        let tokens = x.dims[0].checked_sub(&lengths.into());
        let tokens = tokens.ok_or_else(|| TypeError::Sizes {
            what: "fewer tokens of x than factors reach back",
            left: x.dims[0].clone(),
            right: lengths.into(),
        })?;
        let dims = [tables.into(), tokens, x.dims[1].clone()];
        Ok(TensorType::new(DType::I32, dims).into())
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
            .eq(opd(0, 1), res(2))
            .role(Role::Whole, opd(0, 0))
            .role(Role::Whole, res(0))
            .role(Role::Whole, res(1))
    }

    fn work(&self, on: &dyn Extents) -> Work {
        Work::per_element(on)
    }

    fn localise(&self, _: &LocalCtx<'_>) -> Option<Self> {
        Some(self.clone())
    }

    fn resize(&self, _: &dyn NewSizes) -> Self {
        let table = |(i, t): (u64, &Interval)| Interval {
            start: i * NgramRows::SMALL,
            len: t.len.min(NgramRows::SMALL),
        };
        NgramRows {
            tables: (0..).zip(&self.tables).map(table).collect(),
            ..self.clone()
        }
    }

    fn map_dims(&self, _: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Self> {
        Some(self.clone())
    }
}
