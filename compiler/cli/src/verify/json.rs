//! The result of `tpc verify --format json`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::NumericCheck;
use tpc_core::pipeline::CompiledModel;
use tpc_core::shrink::{ResizedAxis, ShrunkModel};
use tpc_diag::Diagnostic;
use tpc_numeric::Agreement;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    tpc: u32,
    model: Model<'a>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofSize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numeric: Option<Numeric<'a>>,
    diagnostics: &'a [Diagnostic],
}

#[derive(Serialize)]
struct Model<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct ProofSize {
    sections: usize,
    distinct: usize,
    terms: usize,
}

#[derive(Serialize)]
struct Numeric<'a> {
    layers: Vec<Layer<'a>>,
    sizes: Vec<Size<'a>>,
    types: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agreement: Option<&'a Agreement>,
}

#[derive(Serialize)]
struct Layer<'a> {
    layer: u32,
    stands_for: &'a [u32],
}

#[derive(Serialize)]
struct Size<'a> {
    tensor: &'a str,
    axis: usize,
    from: u64,
    to: u64,
    parts: &'a [u64],
}

pub(super) fn refusal<'a>(path: &'a str, diagnostics: &'a [Diagnostic]) -> Report<'a> {
    Report {
        tpc: 1,
        model: Model { path, name: None },
        verdict: "error",
        proof: None,
        numeric: None,
        diagnostics,
    }
}

impl<'a> Report<'a> {
    pub(super) fn new(
        path: &'a str,
        verdict: &'static str,
        compiled: &'a CompiledModel,
        check: Option<&'a NumericCheck>,
        diagnostics: &'a [Diagnostic],
    ) -> Report<'a> {
        let name = Some(compiled.model.summary.name.as_str());
        let proof = compiled.proof.as_ref().ok();
        Report {
            tpc: 1,
            model: Model { path, name },
            verdict,
            proof: proof.map(|p| ProofSize {
                sections: p.sections,
                distinct: p.distinct,
                terms: p.terms,
            }),
            numeric: check.map(Numeric::new),
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
