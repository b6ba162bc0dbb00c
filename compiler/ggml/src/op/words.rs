//! The use of the words of `op_params`: every word of a record is decoded, kept as it is, known to have no effect, or
//! makes the record one that its op cannot be.

use super::arity::is_unary_kind;
use super::params::RopeMode;
use super::table::{Family, GgmlOp, OpKind};

/// What becomes of a word of `op_params`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordUse {
    /// It is decoded into the op's parameters, or kept with an op without a rule.
    Read,
    /// It has no effect on what the op computes, for this reason.
    Ignored(&'static str),
    /// ggml's op has no such word: a record in which it is not 0 says something unknown.
    Unknown,
}

use WordUse::{Ignored, Read, Unknown};

const KIND: &str = "the name of the op says it";
const LAYOUT: &str = "strides and offset of the view say it";
const IN_PLACE: &str = "whether the result is a view says it";
const HINT: &str = "a hint to the back end: the precision or the method of its sums";
const BOUND: &str = "a bound of the visible cells, which the mask says";
const LEGACY: &str = "a field that ggml writes and does not read";
const OTHER_KIND: &str = "a field of another kind of the op";

/// The words up to `n` are read, and no others.
const fn first(n: usize, index: usize) -> WordUse {
    if index < n { Read } else { Unknown }
}

impl GgmlOp {
    /// What becomes of the word at this position of the op's `op_params`.
    pub fn word_use(&self, index: usize) -> WordUse {
        let Some(kind) = self.kind() else {
            return Read;
        };
        match kind {
            OpKind::None => Ignored("a leaf computes nothing"),
            _ if kind.family() == Family::View => Ignored(LAYOUT),
            _ if is_unary_kind(kind) && index == 0 => Ignored(KIND),
            OpKind::Xielu => first(5, index),
            _ if is_unary_kind(kind) => Unknown,
            _ if kind.family() == Family::Gated => gated(kind, index),
            OpKind::Rope | OpKind::RopeBack => self.rotation(index),
            _ => of_kind(kind, index),
        }
    }

    fn rotation(&self, index: usize) -> WordUse {
        let has_sections = match self {
            GgmlOp::Rope(p) | GgmlOp::RopeBack(p) => {
                !matches!(p.mode, RopeMode::Norm | RopeMode::Neox)
            }
            _ => true,
        };
        match index {
            0 | 3 => Ignored(LEGACY),
            11..=14 if !has_sections => Ignored(OTHER_KIND),
            1..=15 => Read,
            _ => Unknown,
        }
    }
}

fn gated(kind: OpKind, index: usize) -> WordUse {
    match (index, kind) {
        (0, _) => Ignored(KIND),
        (1, _) | (2, OpKind::SwigluOai) | (3, OpKind::SwigluOai | OpKind::SwigluClamp) => Read,
        (2 | 3, _) => Ignored(OTHER_KIND),
        _ => Unknown,
    }
}

/// The use of a word of an op that is neither a leaf, a view, a kind of another op, nor a rotation.
fn of_kind(kind: OpKind, index: usize) -> WordUse {
    match (kind, index) {
        (OpKind::MulMat | OpKind::MulMatId, 0..=3) | (OpKind::FlashAttnExt, 3) => Ignored(HINT),
        (OpKind::FlashAttnExt, 4) => Ignored(BOUND),
        (OpKind::Acc | OpKind::Set, 4) | (OpKind::DiagMaskInf | OpKind::DiagMaskZero, 1) => {
            Ignored(IN_PLACE)
        }
        (OpKind::Pad, _) => first(9, index),
        (OpKind::Pool2d, _) => first(7, index),
        (OpKind::Acc | OpKind::Set | OpKind::Roll, _) => first(4, index),
        (OpKind::Arange | OpKind::FlashAttnExt, _) => first(3, index),
        (
            OpKind::Scale
            | OpKind::Clamp
            | OpKind::SoftMax
            | OpKind::GroupNorm
            | OpKind::Dsv4HcComb
            | OpKind::Dsv4HcPre,
            _,
        ) => first(2, index),
        (
            OpKind::Concat
            | OpKind::Norm
            | OpKind::RmsNorm
            | OpKind::L2Norm
            | OpKind::DiagMaskInf
            | OpKind::DiagMaskZero
            | OpKind::Argsort
            | OpKind::LeakyRelu
            | OpKind::Tri
            | OpKind::Fill
            | OpKind::SsmScan
            | OpKind::GatedDeltaNet,
            _,
        ) => first(1, index),
        _ if kind.has_rule() => Unknown,
        // Kept word by word with an op without a rule.
        _ => Read,
    }
}

impl OpKind {
    /// Whether the op without parameters is lowered to ops of the IR, so that a parameter that it does not have would be
    /// lost. The lowering asserts the same.
    const fn has_rule(self) -> bool {
        matches!(
            self,
            OpKind::Dup
                | OpKind::Cpy
                | OpKind::Cont
                | OpKind::Add
                | OpKind::Add1
                | OpKind::AddId
                | OpKind::Sub
                | OpKind::Mul
                | OpKind::Div
                | OpKind::Sqr
                | OpKind::Sqrt
                | OpKind::Log
                | OpKind::Sin
                | OpKind::Cos
                | OpKind::Sum
                | OpKind::SumRows
                | OpKind::Cumsum
                | OpKind::Mean
                | OpKind::Argmax
                | OpKind::Repeat
                | OpKind::RepeatBack
                | OpKind::MulMat
                | OpKind::MulMatId
                | OpKind::OutProd
                | OpKind::GetRows
                | OpKind::SetRows
                | OpKind::Diag
                | OpKind::TopK
                | OpKind::SsmConv
                | OpKind::LightningIndexer
                | OpKind::Dsv4HcPost
                | OpKind::OptStepAdamw
        )
    }
}
