//! The rules of ops: the accepted states of the sources, and the state of the result.
//!
//! A rule sees a call as ggml does: the op, sizes and strides, and the states of the sources. A read reduces a
//! partial sum, so a rule sees partial sums as mirrored unless it asks for the original state.

mod attention;
mod elementwise;
mod matrix;
mod move_axes;
mod reshape;
mod rows;
mod whole;

use tpc_ir::{DType, RANK};

use super::fault::FaultKind;
use super::states::{MAX_SEGMENTS, Split, SplitState};
use crate::op::{GgmlOp, OpKind, SplitRule};

#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(in crate::meta) ne: [u64; RANK],
    pub(in crate::meta) nb: [u64; RANK],
    pub(in crate::meta) dtype: DType,
    pub(in crate::meta) state: &'a SplitState,
}

#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(in crate::meta) op: &'a GgmlOp,
    pub(in crate::meta) ne: [u64; RANK],
    /// The strides of the result, in bytes.
    pub(in crate::meta) nb: [u64; RANK],
    pub(in crate::meta) dtype: DType,
    /// The offset of a view in its source, in bytes.
    pub(in crate::meta) offset: u64,
    pub(in crate::meta) src: Vec<Option<Source<'a>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(in crate::meta) kind: FaultKind,
    pub(in crate::meta) why: String,
}

pub(super) type InferredState = Result<SplitState, Rejection>;

/// A rule for a group of ops.
pub struct StateRule {
    rule: SplitRule,
    /// The accepted states and the state of the result, in words.
    pub says: &'static str,
    apply: fn(&Call<'_>) -> InferredState,
}

impl StateRule {
    /// Returns the ops of the rule, in ggml's order.
    pub fn ops(&self) -> impl Iterator<Item = OpKind> {
        let all = OpKind::ALL.iter().copied();
        all.filter(|op| op.facts().split_rule == self.rule)
    }
}

/// All rules. ggml aborts at an op without a rule.
pub const RULES: &[&StateRule] = &[
    &matrix::PRODUCT,
    &matrix::EXPERTS,
    &elementwise::BINARY,
    &elementwise::ADD_ID,
    &elementwise::SAME,
    &elementwise::GATED,
    &rows::WHOLE_ROWS,
    &rows::ROPE,
    &rows::GET,
    &rows::SET,
    &move_axes::CONCAT,
    &move_axes::PAD,
    &move_axes::PERMUTE,
    &reshape::RESHAPE,
    &reshape::VIEW,
    &reshape::COPY,
    &attention::FLASH,
    &attention::CONVOLUTION,
    &attention::DELTA_NET,
    &whole::WHOLE,
];

fn rule(op: &GgmlOp) -> Option<&'static StateRule> {
    let kind = op.kind()?;
    let rule = kind.facts().split_rule;
    RULES.iter().copied().find(|r| r.rule == rule)
}

/// Returns the state of the result.
pub(super) fn apply(call: &Call<'_>) -> InferredState {
    let Some(rule) = rule(call.op) else {
        return reject(FaultKind::Unknown, "ggml has no rule for this op");
    };
    let state = (rule.apply)(call)?;
    if let SplitState::Split(s) = &state {
        check(call, s)?;
    }
    Ok(state)
}

/// Checks that the parts add up to the axis, in whole blocks and with few enough segments.
pub(super) fn check(call: &Call<'_>, s: &Split) -> Result<(), Rejection> {
    if s.len() != call.ne[s.axis] {
        let why = format!("the parts of {s} do not add up to {}", call.ne[s.axis]);
        return Err(Rejection {
            kind: FaultKind::Sizes,
            why,
        });
    }
    let pieces: u64 = s.segments.iter().map(|g| g.repeat.max(1)).sum();
    if s.segments.len() > MAX_SEGMENTS {
        let why = format!("the axis has {pieces} pieces, more than {MAX_SEGMENTS} segments");
        return reject(FaultKind::Sizes, why);
    }
    let block = call.dtype.block_len();
    let straddles =
        |seg: &super::states::Segment| seg.sizes.iter().any(|n| !n.is_multiple_of(block));
    if s.axis == 0 && s.segments.iter().any(straddles) {
        let why = format!("{s} cuts blocks of {block} in {}", call.dtype);
        return Err(Rejection {
            kind: FaultKind::Blocks,
            why,
        });
    }
    Ok(())
}

fn reject<T>(kind: FaultKind, why: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection {
        kind,
        why: why.into(),
    })
}

impl<'a> Call<'a> {
    /// Returns the state of source `i` as a reader sees it. An absent source counts as mirrored.
    pub(super) fn seen(&self, i: usize) -> &'a SplitState {
        match self.src.get(i).copied().flatten() {
            Some(s) => s.state.seen(),
            None => &SplitState::Mirrored,
        }
    }

    fn source(&self, i: usize) -> Result<Source<'a>, Rejection> {
        match self.src.get(i).copied().flatten() {
            Some(s) => Ok(s),
            None => reject(FaultKind::States, format!("source {i} is missing")),
        }
    }

    fn whole_from(&self, first: usize) -> bool {
        (first..self.src.len()).all(|i| self.seen(i).is_whole())
    }

    fn states(&self) -> String {
        let of = |s: &Option<Source<'_>>| s.map(|s| s.state.to_string());
        let all: Vec<String> = self.src.iter().filter_map(of).collect();
        all.join(" · ")
    }

    fn refused<T>(&self, kind: FaultKind, takes: &str) -> Result<T, Rejection> {
        reject(kind, format!("{} of {}: {takes}", self.op, self.states()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Family;

    #[test]
    fn every_op_but_leaves_and_generic_names_has_one_rule() {
        for &op in OpKind::ALL {
            let rules = RULES.iter().filter(|r| r.ops().any(|o| o == op)).count();
            let none = matches!(op.family(), Family::Leaf | Family::Generic);
            assert_eq!(rules, usize::from(!none), "{op}");
        }
    }
}
