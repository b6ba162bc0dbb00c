use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use super::bits::eq_by_bits;
use super::block::BlockInput;
use super::cell_parts;
use super::local::LocalCtx;
use super::resize::{NewSizes, size_independent};
use super::rows::cells_axis;
use super::rule::{Rule, Slot, res};
use super::types::{InferredTypes, TypeError, check_finite, expect_operands};
use super::work::{Extents, Work};
use super::{OpCategory, OpDef};
use crate::cells::CellParts;
use crate::dims::Dim;
use crate::dtype::DType;
use crate::interval::Interval;
use crate::types::TensorType;

fn no_operands(operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
    expect_operands::<0>(operands, "no")?;
    Ok(InferredTypes::Declared)
}

/// Returns the intervals per axis that a device holds; `Some(None)` for the whole tensor. An axis of run-time size is
/// whole and has an empty list.
fn local_parts(ctx: &LocalCtx<'_>, by_cells: bool) -> Option<Option<Vec<Vec<Interval>>>> {
    let t = ctx.results[0];
    let symbolic = |a: usize| t.ty.dims[a].as_const().is_none();
    if !(0..4).any(|a| t.sharding.axes[a].is_some() && !(by_cells && symbolic(a))) {
        return Some(None);
    }
    let whole = |a: usize| symbolic(a) && (by_cells || t.sharding.axes[a].is_none());
    (0..4)
        .map(|a| match ctx.intervals(Slot::Result(0), a) {
            None if whole(a) => Some(Vec::new()),
            held => held,
        })
        .collect::<Option<Vec<_>>>()
        .map(Some)
}

fn parts_attr(parts: Option<&[Vec<Interval>]>) -> Option<(&'static str, Attr)> {
    parts.map(|p| {
        (
            "parts",
            Attr::List(p.iter().map(|r| Attr::from(r.as_slice())).collect()),
        )
    })
}

macro_rules! stored_op {
    ($op:ident, $spelling:literal, $name:ident) => {
        impl OpDef for $op {
            const NAMES: &'static [&'static str] = &[$spelling];
            const CATEGORY: OpCategory = OpCategory::Stored;

            fn attrs(&self) -> Attrs {
                let mut out = vec![(stringify!($name), Attr::Str(self.$name.clone()))];
                out.extend(parts_attr(self.parts.as_deref()));
                out
            }

            fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
                Ok($op {
                    $name: require(stringify!($name), attrs.str(stringify!($name))?)?,
                    parts: attrs.interval_lists("parts")?,
                })
            }

            fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
                no_operands(operands)
            }

            fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
                Rule::opaque()
            }

            fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
                Some($op {
                    $name: self.$name.clone(),
                    parts: local_parts(ctx, false)?,
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
    };
}

/// A tensor of the model file, or the packed part of it on a device. Without operands; result: any type and shape, as
/// declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weight {
    /// The tensor's name in the file.
    pub tensor: String,
    /// The stored intervals of each axis; `None` for the whole tensor.
    pub parts: Option<Vec<Vec<Interval>>>,
}

stored_op!(Weight, "weight", tensor);

impl Weight {
    fn run(&self) -> Option<Interval> {
        match self.parts.as_ref()?.first()?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// Returns the first stored index along axis 0 of the file's tensor; 0 if the part has several runs.
    pub fn row_start(&self) -> u64 {
        self.run().map_or(0, |run| run.start)
    }

    /// Returns the alignment of row ends in the file's tensor, in elements: a [granule](DType::granule) for a part of
    /// one run, otherwise a block.
    pub fn row_granule(&self, dtype: DType) -> u64 {
        match self.run() {
            Some(_) => dtype.granule(),
            None => dtype.block_len(),
        }
    }

    /// True if rows begin or end inside the file's blocks of type `dtype`.
    pub fn cuts_blocks(&self, dtype: DType) -> bool {
        let block = dtype.block_len();
        let is_cut =
            |run: Interval| !run.start.is_multiple_of(block) || !run.len.is_multiple_of(block);
        self.run().is_some_and(is_cut)
    }
}

/// A position-dependent factor on queries.
#[derive(Clone, Copy, Debug)]
pub struct Temperature {
    /// Weight of the logarithm, or the power.
    pub scale: f32,
    /// Number of positions per step, at least 1.
    pub length: u64,
    /// Summand added to the position.
    pub offset: f32,
    /// The formula.
    pub curve: TemperatureCurve,
}

eq_by_bits!(Temperature { scale, offset; length, curve });

/// The formula of a [`Temperature`], with `x = (position + offset) / length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemperatureCurve {
    /// `1 + scale · ln(1 + ⌊x⌋)`
    Logarithm,
    /// `(1 + x)` to the power `scale`
    Power,
}

impl Temperature {
    /// Returns the factor at a position.
    pub fn at(&self, position: u32) -> f32 {
        let scale = f64::from(self.scale);
        match self.curve {
            TemperatureCurve::Logarithm => {
                let steps = ((position as f32 + self.offset) / self.length as f32).floor();
                (1.0 + scale * (f64::from(steps) + 1.0).ln()) as f32
            }
            TemperatureCurve::Power => {
                let x = (f64::from(position) + f64::from(self.offset)) / self.length as f64;
                (scale * x.ln_1p()).exp() as f32
            }
        }
    }
}

/// The content of an input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// Token ids, `i32[n_tokens]`.
    Tokens,
    /// Id of the token `n ≥ 1` positions after each token, `i32[n_tokens]`.
    NextTokens(u32),
    /// Position of each token in its sequence, `i32[n_tokens]`.
    Positions,
    /// The four positions per token for rope with sections, `i32[4 · n_tokens]`: times of all tokens, then heights,
    /// widths and fourth positions.
    PositionsMrope,
    /// The KV-cache cell of each token, `i64[n_tokens]`.
    CacheRows,
    /// The cell of each token in the cache of sliding-window layers.
    CacheRowsSwa,
    /// 0 if a token attends to a cell, else −∞, `f32[n_kv, n_tokens]`.
    Mask,
    /// The mask for layers with a [`Window`](crate::Window), `f32[n_kv_swa, n_tokens]`.
    MaskSwa,
    /// 0 if two tokens of the batch share a sequence, else −∞, `f32[n_tokens, n_tokens]`. Tokens of a model with this
    /// mask attend to later tokens too.
    MaskBatch,
    /// Same as [`Self::MaskBatch`], but −∞ also for tokens more than so many positions apart.
    MaskBatchNear(u64),
    /// Positions in the batch of the output tokens, `i32[n_outputs]`.
    OutputRows,
    /// The recurrent-state cell of each sequence, `i32[n_seqs]`.
    StateCells,
    /// Factor on each sequence's recurrent state, `f32[1, n_seqs]`: 1 to continue, 0 to start with a cleared cell.
    StateKept,
    /// Factor on each token's queries, `f32[1, 1, n_tokens]`.
    Temperature(Temperature),
    /// Data about blocks of tokens, for each token or cell.
    Block(BlockInput),
    /// Another input, by name.
    Other(String),
}

impl InputKind {
    /// True for a mask of the batch's tokens, which attend to later tokens too.
    pub const fn is_batch_mask(&self) -> bool {
        matches!(self, InputKind::MaskBatch | InputKind::MaskBatchNear(_))
    }

    const NAMED: [(&'static str, InputKind); 11] = [
        ("tokens", InputKind::Tokens),
        ("positions", InputKind::Positions),
        ("positions_mrope", InputKind::PositionsMrope),
        ("cache_rows", InputKind::CacheRows),
        ("cache_rows_swa", InputKind::CacheRowsSwa),
        ("mask", InputKind::Mask),
        ("mask_swa", InputKind::MaskSwa),
        ("mask_batch", InputKind::MaskBatch),
        ("output_rows", InputKind::OutputRows),
        ("state_cells", InputKind::StateCells),
        ("state_kept", InputKind::StateKept),
    ];
}

const TEMPERATURE: &str = "temperature";

const MASK_BATCH_NEAR: &str = "mask_batch_near";
const TEMPERATURE_POWER: &str = "temperature_power";

const NEXT_TOKENS: &str = "next_tokens";

/// A value that the caller provides per batch. Without operands; result: the type of its kind, or any type as declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// The content.
    pub kind: InputKind,
}

impl OpDef for Input {
    const NAMES: &'static [&'static str] = &["input"];
    const CATEGORY: OpCategory = OpCategory::Input;

    fn attrs(&self) -> Attrs {
        match InputKind::NAMED.iter().find(|(_, k)| *k == self.kind) {
            Some((n, _)) => vec![("kind", Attr::Word((*n).to_owned()))],
            None => match &self.kind {
                InputKind::Other(name) => vec![("name", Attr::Str(name.clone()))],
                InputKind::Block(input) => input.attrs(),
                InputKind::NextTokens(ahead) => vec![
                    ("kind", Attr::Word(NEXT_TOKENS.to_owned())),
                    ("ahead", Attr::from(u64::from(*ahead))),
                ],
                InputKind::MaskBatchNear(distance) => vec![
                    ("kind", Attr::Word(MASK_BATCH_NEAR.to_owned())),
                    ("distance", Attr::from(*distance)),
                ],
                InputKind::Temperature(t) => {
                    let kind = match t.curve {
                        TemperatureCurve::Logarithm => TEMPERATURE,
                        TemperatureCurve::Power => TEMPERATURE_POWER,
                    };
                    vec![
                        ("kind", Attr::Word(kind.to_owned())),
                        ("scale", Attr::Float(t.scale)),
                        ("length", Attr::from(t.length)),
                        ("offset", Attr::Float(t.offset)),
                    ]
                }
                _ => Vec::new(),
            },
        }
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        if let Some(name) = attrs.str("name")? {
            return Ok(Input {
                kind: InputKind::Other(name),
            });
        }
        let word = require("kind", attrs.word("kind")?)?;
        let curve = match word.as_str() {
            TEMPERATURE => Some(TemperatureCurve::Logarithm),
            TEMPERATURE_POWER => Some(TemperatureCurve::Power),
            _ => None,
        };
        if let Some(curve) = curve {
            let length = require("length", attrs.int("length")?)?;
            if length == 0 {
                return Err(AttrError::Kind {
                    name: "length",
                    expected: "at least 1",
                });
            }
            let kind = InputKind::Temperature(Temperature {
                scale: require("scale", attrs.float("scale")?)?,
                length,
                offset: require("offset", attrs.float("offset")?)?,
                curve,
            });
            return Ok(Input { kind });
        }
        if word == MASK_BATCH_NEAR {
            let kind = InputKind::MaskBatchNear(require("distance", attrs.int("distance")?)?);
            return Ok(Input { kind });
        }
        if word == NEXT_TOKENS {
            let ahead = require("ahead", attrs.int("ahead")?)?;
            let ahead = u32::try_from(ahead).ok().filter(|&n| n > 0);
            let kind = ahead.map(InputKind::NextTokens).ok_or(AttrError::Kind {
                name: "ahead",
                expected: "an integer, at least 1",
            })?;
            return Ok(Input { kind });
        }
        if let Some(input) = BlockInput::parse(&word, attrs)? {
            let kind = InputKind::Block(input);
            return Ok(Input { kind });
        }
        let known = InputKind::NAMED.into_iter().find(|(n, _)| *n == word);
        known.map(|(_, kind)| Input { kind }).ok_or(AttrError::Kind {
            name: "kind",
            expected: "tokens, positions, positions_mrope, cache_rows, cache_rows_swa, mask, mask_swa, mask_batch, mask_batch_near, output_rows, \
                       state_cells, state_kept, temperature, temperature_power, next_tokens, block_seen, block_tail, block_last or block_start",
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        if let InputKind::Temperature(t) = &self.kind {
            check_finite([("scale", t.scale), ("offset", t.offset)])?;
        }
        no_operands(operands)
    }

    fn rule(&self, _: &[&TensorType], _: &[&TensorType]) -> Rule {
        Rule::opaque()
    }

    fn work(&self, _: &dyn Extents) -> Work {
        Work::NONE
    }

    size_independent!();
}

/// A value kept between batches (KV cache, recurrent state), initially zero. Without operands; result: any type and
/// shape, as declared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The name, unique in the graph (`cache_k_l0`).
    pub name: String,
    /// The stored intervals of each axis; `None` for the whole state. An axis of run-time size is whole and has an
    /// empty list.
    pub parts: Option<Vec<Vec<Interval>>>,
    /// The stored parts of the cells, which the last axis counts; `None` if the state is not divided by cells.
    pub cells: Option<CellParts>,
}

impl State {
    /// Returns a whole state.
    pub fn named(name: impl Into<String>) -> State {
        State {
            name: name.into(),
            parts: None,
            cells: None,
        }
    }

    /// Returns the axis that is divided by cells.
    fn cells_of(&self, ty: &TensorType) -> Option<(usize, CellParts)> {
        let axis = (0..4).rev().find(|&a| !ty.dims[a].is_one())?;
        Some((axis, self.cells?))
    }
}

impl OpDef for State {
    const NAMES: &'static [&'static str] = &["state"];
    const CATEGORY: OpCategory = OpCategory::Stored;

    fn attrs(&self) -> Attrs {
        let mut out = vec![("name", Attr::Str(self.name.clone()))];
        out.extend(parts_attr(self.parts.as_deref()));
        if let Some(cells) = &self.cells {
            cell_parts::attrs(cells, &mut out);
        }
        out
    }

    fn parse(_: &str, attrs: &mut AttrReader) -> Result<Self, AttrError> {
        Ok(State {
            name: require("name", attrs.str("name")?)?,
            parts: attrs.interval_lists("parts")?,
            cells: cell_parts::parse(attrs)?,
        })
    }

    fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
        no_operands(operands)
    }

    fn rule(&self, _: &[&TensorType], results: &[&TensorType]) -> Rule {
        match results
            .first()
            .and_then(|ty| Some((ty, self.cells_of(ty)?)))
        {
            Some((ty, (axis, cells))) => {
                Rule::opaque().eq(res(axis), cells_axis(&ty.dims[axis], cells))
            }
            None => Rule::opaque(),
        }
    }

    fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Self> {
        let cells = match self.cells_of(ctx.results[0].ty) {
            Some((axis, cells)) => Some(ctx.cell_parts(Slot::Result(0), axis, cells)?),
            None => None,
        };
        Some(State {
            name: self.name.clone(),
            parts: local_parts(ctx, self.cells.is_some())?,
            cells,
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
