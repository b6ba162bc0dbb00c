//! Finiteness: finds values without infinite or undefined elements.
//!
//! `0 · x = 0` holds only if `x` is finite: `0 · ∞` and `0 / 0` are NaN, and spoil every sum. A rule that drops a
//! product with zero therefore requires that the other factor is finite ("a number").
//!
//! The proof assumes that weights, states and inputs are finite, except attention masks, which may have −∞. It also
//! assumes that the model never applies an op outside its domain: it never divides by zero. Hence:
//!
//! - A value of the model is finite unless computed from a mask or an infinite parameter.
//! - A total op gives finite results for finite operands.
//! - A partial op, such as a division, does so if the model applies it to an operand that contains this one.
//! - For a selection by index, the restricted operand is the index. The model must use the same index on a table with
//!   at most as many rows. A table with 0 rows is all zeros but has no row to select.

use tpc_ir::op::{
    AddId, BinaryKind, BlockPart, GetRows, InputKind, MulMatId, OpCategory, Unary, UnaryKind,
};
use tpc_ir::{Dim, Graph, Op, TensorType};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// The divisor of a division must not be zero.
    Divisor,
    /// The operand of a logarithm must be above zero.
    Logarithm,
    /// The operand of a root must not be below zero.
    Root,
    /// The operand of a norm with epsilon 0 or less must not have a row of zeros.
    Row,
    /// The index of a selection must be below this number of rows or experts.
    Index(Dim),
}

impl Domain {
    pub(super) fn contains(&self, other: &Domain) -> bool {
        match (self, other) {
            (Domain::Index(rows), Domain::Index(fewer)) => {
                rows == fewer
                    || rows
                        .as_const()
                        .zip(fewer.as_const())
                        .is_some_and(|(n, m)| n >= m)
            }
            _ => self == other,
        }
    }
}

/// Returns the domain of a partial op and the restricted operand; `None` for total ops. Ops with a window are total,
/// because the window selects the device's rows.
pub(super) fn domain<'a>(
    op: &Op,
    ty: impl Fn(usize) -> Option<&'a TensorType>,
) -> Option<(Domain, usize)> {
    let below = |table: usize, axis: usize, index: usize| {
        let rows = ty(table).map_or(Dim::ZERO, |t| t.dims[axis].clone());
        Some((Domain::Index(rows), index))
    };
    match op {
        Op::Binary(b) if b.kind == BinaryKind::Div => Some((Domain::Divisor, 1)),
        Op::Unary(Unary { kind }) => match kind {
            UnaryKind::Log => Some((Domain::Logarithm, 0)),
            UnaryKind::Sqrt => Some((Domain::Root, 0)),
            _ => None,
        },
        Op::Norm(n) if n.eps <= 0.0 => Some((Domain::Row, 0)),
        Op::NormApply(n) if n.eps <= 0.0 => Some((Domain::Row, 1)),
        Op::GetRows(GetRows { window: None }) => below(0, 1, 1),
        Op::MulMatId(MulMatId { window: None }) => below(0, 2, 2),
        Op::AddId(AddId { window: None }) => below(1, 1, 2),
        _ => None,
    }
}

/// True if a defined op gives finite results, given which operands are finite.
pub(super) fn gives_numbers(op: &Op, is_number: impl Fn(usize) -> bool, operands: usize) -> bool {
    let all = || (0..operands).all(&is_number);
    match op {
        // The softmax of a row of −∞ alone is undefined; models never have such a row.
        Op::SoftMax(o) => o.scale.is_finite() && o.max_bias.is_finite(),
        Op::TopK(_) | Op::ArgSort(_) => true,
        // These ops hide elements with −∞.
        Op::TopMask(_) | Op::TopKMask(_) => false,
        Op::FlashAttn(o) => {
            let parameters = [o.scale, o.max_bias, o.softcap];
            let masked = (0..operands).all(|k| k == FLASH_ATTN_MASK || is_number(k));
            masked && parameters.iter().all(|p| p.is_finite())
        }
        Op::Fill(o) => o.value.is_finite(),
        Op::Tri(o) => o.fill.is_finite() && all(),
        Op::Scale(o) => o.scale.is_finite() && o.bias.is_finite() && all(),
        // One bound may be infinite if it does not limit any number.
        Op::Clamp(o) => o.min < f32::INFINITY && o.max > f32::NEG_INFINITY && all(),
        Op::LeakyRelu(o) => o.slope.is_finite() && all(),
        _ => all(),
    }
}

const FLASH_ATTN_MASK: usize = 3;

/// True, per value of the model, if the value depends on no mask or infinite parameter.
pub(super) fn numbers(model: &Graph) -> Vec<bool> {
    let mut numbers = vec![true; model.values().len()];
    for (inst, is_mask) in masks(model) {
        for v in &model.inst(inst).results {
            numbers[v.index()] = !is_mask;
        }
    }
    for (_, data) in model.insts() {
        let is_number = |k: usize| numbers[data.operands[k].index()];
        let given = gives_numbers(&data.op, is_number, data.operands.len());
        for v in &data.results {
            let known = numbers[v.index()];
            numbers[v.index()] = known && given;
        }
    }
    numbers
}

/// Returns the inputs; true for masks, by kind or by use in attention or softmax.
fn masks(model: &Graph) -> Vec<(tpc_ir::Inst, bool)> {
    let mut read = vec![false; model.values().len()];
    for (_, data) in model.insts().rev() {
        let mask = match &data.op {
            Op::FlashAttn(_) => data.operands.get(FLASH_ATTN_MASK),
            Op::SoftMax(_) => data.operands.get(1),
            _ => None,
        };
        if let Some(v) = mask {
            read[v.index()] = true;
        }
        let passes = matches!(
            data.op.category(),
            OpCategory::Layout
                | OpCategory::Selection
                | OpCategory::Repetition
                | OpCategory::Assembly
                | OpCategory::Copy
        ) || matches!(data.op, Op::Scale(_) | Op::Binary(_) | Op::Cast(_));
        if passes && data.results.iter().any(|v| read[v.index()]) {
            for v in &data.operands {
                read[v.index()] = true;
            }
        }
    }
    let inputs = model.insts().filter_map(|(inst, data)| {
        let Op::Input(input) = &data.op else {
            return None;
        };
        let by_kind = match input.kind {
            InputKind::Mask
            | InputKind::MaskSwa
            | InputKind::MaskBatch
            | InputKind::MaskBatchNear(_) => true,
            InputKind::Block(block) => matches!(block.part, BlockPart::Seen | BlockPart::Tail),
            _ => false,
        };
        let by_use = data.results.iter().any(|v| read[v.index()]);
        Some((inst, by_kind || by_use))
    });
    inputs.collect()
}
