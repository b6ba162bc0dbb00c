//! The result of `tpc verify --format json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::NumericCheck;
use tpc_core::pipeline::CompiledModel;
use tpc_core::report::BitsReport;
use tpc_core::shrink::{ResizedAxis, ShrunkModel};
use tpc_diag::{Diagnostic, FormatVersion, Verdict};
use tpc_numeric::Agreement;
use tpc_passes::prove::Proof;

/// The verification of a model's plan.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "VerifiedModel")]
pub(crate) struct Report<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The model.
    model: Model<'a>,
    /// `error` if a finding is an error.
    verdict: Verdict,
    /// The proof's size; absent if the proof failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofSize>,
    /// The check by numbers of `--numeric`.
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric: Option<Numeric<'a>>,
    /// Comparison with one device's logits, bit by bit.
    #[serde(skip_serializing_if = "Option::is_none")]
    bits: Option<BitsReport>,
    /// Findings.
    diagnostics: &'a [Diagnostic],
}

/// The verified model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelName")]
struct Model<'a> {
    /// The file.
    path: &'a str,
    /// The name; absent if the model cannot be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// The size of a proof.
#[derive(Serialize, JsonSchema)]
pub(super) struct ProofSize {
    /// The number of sections.
    sections: usize,
    /// The number of distinct sections.
    distinct: usize,
    /// The number of terms of the largest section.
    terms: usize,
}

impl From<&Proof> for ProofSize {
    fn from(p: &Proof) -> ProofSize {
        ProofSize {
            sections: p.sections,
            distinct: p.distinct,
            terms: p.terms,
        }
    }
}

/// The check of a small model by numbers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NumericCheck")]
struct Numeric<'a> {
    /// The layers of the small model.
    layers: Vec<Layer<'a>>,
    /// The changed sizes.
    sizes: Vec<Size<'a>>,
    /// The replaced element types, and the types in their place.
    types: BTreeMap<&'static str, &'static str>,
    /// The agreement of the results; absent if the check failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement: Option<&'a Agreement>,
}

/// A layer of the small model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SmallLayer")]
struct Layer<'a> {
    /// The layer of the model.
    layer: u32,
    /// The equal layers that this layer represents.
    stands_for: &'a [u32],
}

/// A changed size.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChangedSize")]
struct Size<'a> {
    /// The tensor.
    tensor: &'a str,
    /// The axis.
    axis: usize,
    /// The size in the model.
    from: u64,
    /// The size in the small model.
    to: u64,
    /// The part of each device, in the small model.
    parts: &'a [u64],
}

pub(super) fn refusal<'a>(path: &'a str, diagnostics: &'a [Diagnostic]) -> Report<'a> {
    Report {
        tpc: FormatVersion,
        model: Model { path, name: None },
        verdict: Verdict::Error,
        proof: None,
        numeric: None,
        bits: None,
        diagnostics,
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(
        path: &'a str,
        verdict: Verdict,
        compiled: &'a CompiledModel,
        check: Option<&'a NumericCheck>,
        diagnostics: &'a [Diagnostic],
    ) -> Report<'a> {
        let name = Some(compiled.model.summary.name.as_str());
        let proof = compiled.proof.as_ref().ok();
        Report {
            tpc: FormatVersion,
            model: Model { path, name },
            verdict,
            proof: proof.map(ProofSize::from),
            numeric: check.map(Numeric::new),
            bits: Some(BitsReport::new(compiled)),
            diagnostics,
        }
    }
}

impl<'a> Numeric<'a> {
    fn new(check: &'a NumericCheck) -> Numeric<'a> {
        let ShrunkModel {
            layers,
            sizes,
            types,
            ..
        } = &check.shrunk;
        let layer = |(layer, all): &'a (u32, Vec<u32>)| Layer {
            layer: *layer,
            stands_for: all,
        };
        let size = |r: &'a ResizedAxis| Size {
            tensor: &r.tensor,
            axis: r.axis,
            from: r.from,
            to: r.to,
            parts: &r.parts,
        };
        Numeric {
            layers: layers.iter().map(layer).collect(),
            sizes: sizes.iter().map(size).collect(),
            types: types.iter().map(|(a, b)| (a.name(), b.name())).collect(),
            agreement: check.agreement.as_ref(),
        }
    }
}
