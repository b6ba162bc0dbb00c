//! The result of a comparison of two graphs.

use schemars::JsonSchema;
use serde::Serialize;
use tpc_ggml::capture::Record;

pub use super::structure::Change;
use super::structure::parameters;

/// The result of a comparison of two graphs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bisection {
    /// The first op whose value differs; `None` if all results agree.
    pub first: Option<FirstDifference>,
    /// Ops with another structure in each graph, in the order of the second graph.
    pub structure: Vec<StructureDifference>,
    /// Counts of ops and results.
    pub counts: Counts,
    /// Largest error of a result; `None` if no pair of results has values.
    pub results_nmse: Option<f64>,
    /// Ops that tpc does not know. A stand-in ran instead: a fixed linear function of the operands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<String>,
}

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "BisectVerdict")]
pub enum Verdict {
    /// All results agree.
    Same,
    /// A value differs.
    Differ,
    /// No value differs, but some values were not computed.
    Unknown,
}

impl Bisection {
    /// Returns the verdict.
    pub const fn verdict(&self) -> Verdict {
        match self.first {
            Some(_) => Verdict::Differ,
            None if self.counts.results_unknown > 0 => Verdict::Unknown,
            None => Verdict::Same,
        }
    }
}

/// Counts of ops and results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// Ops of both graphs that are equal for all inputs.
    pub equal: usize,
    /// Ops of both graphs with another structure, whose values agree.
    pub agree: usize,
    /// Ops of both graphs whose values differ.
    pub differ: usize,
    /// Ops of both graphs with another structure and without values.
    pub unknown: usize,
    /// Ops of the first graph only.
    pub only_a: usize,
    /// Ops of the second graph only.
    pub only_b: usize,
    /// Results of both graphs.
    pub results: usize,
    /// Results of both graphs whose values differ.
    pub results_differ: usize,
    /// Results of both graphs without values.
    pub results_unknown: usize,
    /// Ops that did not run, because the run would take too long or too much memory.
    pub left_out: usize,
}

/// An op of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OpOf {
    /// The tensor's name.
    pub tensor: String,
    /// ggml's name of the op; `NONE` for a leaf.
    pub op: String,
    /// The line in the capture, from 1.
    pub line: usize,
    /// The element type.
    #[serde(rename = "type")]
    pub dtype: &'static str,
    /// The sizes.
    pub ne: [u64; 4],
    /// The parameters by name.
    pub parameters: Vec<(String, String)>,
}

impl OpOf {
    pub(super) fn of(t: &Record) -> OpOf {
        OpOf {
            tensor: t.name.clone(),
            op: t.op.name().to_owned(),
            line: t.line,
            dtype: t.dtype.name(),
            ne: t.ne(),
            parameters: parameters(t),
        }
    }
}

/// The relation of the first different op to the graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// Both graphs have the op.
    Changed,
    /// Only the first graph has the op.
    Missing,
    /// Only the second graph has the op.
    Added,
}

/// The first op whose value differs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FirstDifference {
    /// The relation of the op to the graphs.
    pub relation: Relation,
    /// The op in the first graph.
    pub a: Option<OpOf>,
    /// The op in the second graph.
    pub b: Option<OpOf>,
    /// `Σ(a − b)² / Σa²`; `None` if the value is unknown.
    pub nmse: Option<f64>,
    /// The largest difference of two elements.
    pub max_abs: Option<f64>,
    /// The first op of both graphs whose value differs, if only one graph has the op.
    pub reader: Option<OpOf>,
    /// Differences of the op's structure.
    pub changes: Vec<Change>,
    /// The operands.
    pub inputs: Vec<InputOf>,
}

/// An operand of the first different op.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InputOf {
    /// The position.
    pub source: usize,
    /// The operand in the first graph.
    pub a: Option<OpOf>,
    /// The operand in the second graph.
    pub b: Option<OpOf>,
    /// True if the values agree; `None` if only one graph has the operand, or the values are unknown.
    pub agrees: Option<bool>,
    /// The error of the values.
    pub nmse: Option<f64>,
}

/// An op with another structure in each graph.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StructureDifference {
    /// The op in the first graph.
    pub a: Option<OpOf>,
    /// The op in the second graph.
    pub b: Option<OpOf>,
    /// The differences; empty if only one graph has the op.
    pub changes: Vec<Change>,
    /// True if the values agree; `None` if only one graph has the op, or the values are unknown.
    pub agrees: Option<bool>,
}
