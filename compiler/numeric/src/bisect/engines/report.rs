//! The result of a comparison of two engines.

use schemars::JsonSchema;
use serde::Serialize;
use tpc_core::golden::Distance;
use tpc_ggml::capture::Record;

use super::distinct::Distinct;
use crate::bisect::report::{OpOf, Verdict};

/// The result of a comparison of two engines, op by op.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct EngineComparison {
    /// Ops whose results differ, in the order of the graph. Ops with the same parameters, types and sizes count once.
    pub differences: Vec<OpDifference>,
    /// Errors of each kind of op, in the order of the first op.
    pub kinds: Vec<KindErrors>,
}

/// An op whose results differ.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OpDifference {
    /// The first op.
    pub op: OpOf,
    /// Its operands.
    pub operands: Vec<OpOf>,
    /// The number of ops in the graph with the same parameters, types and sizes.
    pub ops: usize,
    /// `Σ(a − b)² / Σa²`; `None` if an engine did not run the op.
    pub nmse: Option<f64>,
    /// The largest difference of two elements.
    pub max_abs: Option<f64>,
    /// The largest error (NMSE) of results that agree.
    pub tolerance: f64,
    /// The engine that did not run the op: 0 for the first, 1 for the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<usize>,
    /// The reason why the engine did not run the op.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The errors of one kind of op.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KindErrors {
    /// ggml's name of the op.
    pub op: String,
    /// Ops of the graph.
    pub ops: usize,
    /// Ops with different parameters, types or sizes that ran.
    pub distinct: usize,
    /// Distinct ops whose results differ.
    pub differ: usize,
    /// The largest error (NMSE); `None` if no op ran.
    pub nmse: Option<f64>,
    /// The largest error (NMSE) of results that agree.
    pub tolerance: f64,
    /// Distinct ops that did not run, each with its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unrun: Vec<Unrun>,
}

/// An op that did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unrun {
    /// The reason.
    pub reason: UnrunReason,
    /// The engine's own words, if it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A reason why an op did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnrunReason {
    /// The op is too large.
    TooLarge,
    /// An engine stopped before this op.
    EngineStopped,
    /// tpc cannot make operands of a type.
    NoOperands,
    /// An engine does not know the op or a type, or lacks memory.
    Unsupported,
}

impl UnrunReason {
    pub(super) fn because(self, why: Option<String>) -> Unrun {
        Unrun { reason: self, why }
    }
}

pub(super) enum Outcome {
    Ran(Distance),
    Failed(usize, String),
    Unrun(Unrun),
}

impl EngineComparison {
    /// Returns the verdict. Ops that did not run leave it open.
    pub fn verdict(&self) -> Verdict {
        match (
            self.differences.is_empty(),
            self.kinds.iter().all(|k| k.unrun.is_empty()),
        ) {
            (false, _) => Verdict::Differ,
            (true, false) => Verdict::Unknown,
            (true, true) => Verdict::Same,
        }
    }

    pub(super) fn add(
        &mut self,
        records: &[Record],
        op: &Distinct,
        outcome: Outcome,
        tolerance: f64,
    ) {
        let t = &records[op.record];
        let name = t.op.name();
        let at = self.kinds.iter().position(|k| k.op == name);
        let at = at.unwrap_or_else(|| {
            self.kinds.push(KindErrors {
                op: name.to_owned(),
                ops: 0,
                distinct: 0,
                differ: 0,
                nmse: None,
                tolerance,
                unrun: Vec::new(),
            });
            self.kinds.len() - 1
        });
        let kind = &mut self.kinds[at];
        kind.ops += op.ops;
        kind.tolerance = kind.tolerance.max(tolerance);
        let difference = OpDifference {
            op: OpOf::of(t),
            operands: t
                .src
                .iter()
                .flatten()
                .map(|&s| OpOf::of(&records[s]))
                .collect(),
            ops: op.ops,
            nmse: None,
            max_abs: None,
            tolerance,
            failed: None,
            why: None,
        };
        match outcome {
            Outcome::Ran(d) => {
                kind.distinct += 1;
                kind.nmse = Some(kind.nmse.map_or(d.nmse, |n| n.max(d.nmse)));
                // An error that is not a number does not agree.
                let agrees = d.nmse <= tolerance;
                if !agrees {
                    kind.differ += 1;
                    self.differences.push(OpDifference {
                        nmse: Some(d.nmse),
                        max_abs: Some(d.max_abs),
                        ..difference
                    });
                }
            }
            Outcome::Failed(side, why) => {
                kind.distinct += 1;
                kind.differ += 1;
                self.differences.push(OpDifference {
                    failed: Some(side),
                    why: Some(why),
                    ..difference
                });
            }
            Outcome::Unrun(why) => kind.unrun.push(why),
        }
    }
}
