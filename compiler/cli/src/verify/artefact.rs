//! `tpc verify` for artefacts: reads the model again, and proves the artefact's graph.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_artefact::{Artefact, WindowRecord, codes};
use tpc_core::pipeline::{Origin, PlanInput};
use tpc_core::placement::{Placement, parse_spec_type};
use tpc_diag::{Diagnostic, FormatVersion, codes as common};
use tpc_gguf::GgufFile;
use tpc_passes::prove::{Proof, prove};

use super::json::ProofSize;
use super::{Args, bits};
use crate::artefact::{self, Named};
use crate::output::{self, Failure, Format};
use crate::progress::Progress;

/// The verification of an artefact.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "VerifiedArtefact")]
pub(crate) struct Report<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// The file.
    artefact: &'a str,
    /// `proved`; without the model, `verified`.
    #[schemars(extend("enum" = ["proved", "verified"]))]
    verdict: &'static str,
    /// The proof's size; absent without the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofSize>,
}

pub(super) fn run(args: &Args, named: &Named<'_>) -> Result<(), Failure> {
    let read = artefact::read(named.artefact)?;
    artefact::options_are_free(named.files(), &read, &args.placement)?;
    if args.numeric {
        let message = "--numeric needs a model, not an artefact";
        let d = Diagnostic::new(&common::COMMAND_LINE, "--numeric", message);
        return Err(Failure::usage(
            d.help("leave out --numeric, or give the model"),
        ));
    }
    let name = named.artefact.display().to_string();
    let proof = match named.model(&read)? {
        Some(file) => {
            let _progress = Progress::start(format!("proving {name}"));
            Some(proved(&read, &file).map_err(|d| failure(&name, d))?)
        }
        None => None,
    };
    match args.format {
        Format::Text => {
            let mut out = text(&name, &read, proof.as_ref());
            if args.bits {
                let company = tpc_engine::artefact::company_of(&read);
                out.push('\n');
                out.push_str(&bits::text(&read.program().graph, company));
            }
            output::result(&out)?;
        }
        Format::Json => output::json(&Report {
            tpc: FormatVersion,
            artefact: &name,
            verdict: if proof.is_some() {
                "proved"
            } else {
                "verified"
            },
            proof: proof.as_ref().map(ProofSize::from),
        })?,
    }
    if proof.is_none() {
        output::diagnostic(&artefact::without_model(named, &read));
    }
    Ok(())
}

fn failure(name: &str, all: Vec<Diagnostic>) -> Failure {
    let named = |d: Diagnostic| match d.code == &codes::NOT_THE_MODEL {
        true => Diagnostic {
            entity: name.into(),
            ..d
        },
        false => d,
    };
    Failure::from_diagnostics(all.into_iter().map(named).collect())
}

/// Proves that an artefact computes its model. The model's graph is built from the header and the artefact's options.
fn proved(read: &Artefact, file: &GgufFile) -> Result<Proof, Vec<Diagnostic>> {
    let manifest = read.manifest();
    let other = |what: &str, found: &str, model: &str| {
        let message = format!("{what}: the artefact has {found}, the model {model}");
        let d = Diagnostic::new(&codes::NOT_THE_MODEL, "artefact", message);
        vec![d.help("compile the model again: tpc compile MODEL -o FILE.tpc")]
    };
    if let Some(m) = tpc_engine::artefact::of_model(read, file) {
        let message = format!("{}: found {}, wanted {}", m.field, m.found, m.wanted);
        let d = Diagnostic::new(m.code, "artefact", message);
        return Err(vec![
            d.help("give the model that was compiled: --model PATH"),
        ]);
    }
    let options = &manifest.options;
    let types = options.caches.types();
    let [cache_type_k, cache_type_v] =
        types.ok_or_else(|| other("caches", "an unknown type", "none"))?;
    let placement = Placement {
        cache_type_k,
        cache_type_v,
        ctx_size: Some(options.caches.context),
        ubatch_size: options.ubatch,
        parallel: options.parallel,
        drafting: parse_spec_type(&options.drafting).map_err(|d| vec![d])?,
        ..Placement::on(Vec::new())
    };
    let PlanInput { model, .. } = Origin::File(file).prepare(&placement)?;
    let window = model.summary.window.map(WindowRecord::from);
    if window != manifest.model.window {
        let shown =
            |w: Option<WindowRecord>| w.map_or_else(|| "none".to_owned(), |w| format!("{w:?}"));
        return Err(other(
            "window",
            &shown(manifest.model.window),
            &shown(window),
        ));
    }
    prove(&model.graph, &read.program().graph).map_err(|r| {
        let mut message = r.to_string();
        for (who, what) in [("artefact has", &r.found), ("model says  ", &r.expected)] {
            if let Some(what) = what {
                let _ = write!(message, "\n  the {who}  {what}");
            }
        }
        let d = Diagnostic::new(&codes::NOT_THE_MODEL, "artefact", message);
        vec![d.help("compile the model again: tpc compile MODEL -o FILE.tpc")]
    })
}

fn text(name: &str, read: &Artefact, proof: Option<&Proof>) -> String {
    let model = &read.manifest().model.name;
    let program = read.program();
    let work = format!(
        "{} launches on {} devices, memory and order verified",
        program.launches.len(),
        read.manifest().devices.len()
    );
    match proof {
        Some(p) => format!(
            "proved: {name} computes {model}\n\n  {work}\n  {} sections, {} of them different; the largest took {} terms\n",
            p.sections, p.distinct, p.terms
        ),
        None => format!("verified: {name}, a program of {model}\n\n  {work}\n"),
    }
}
