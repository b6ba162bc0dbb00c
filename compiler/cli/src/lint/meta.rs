//! Checks a captured graph with the rules of ggml's multi-device back end (`--target ggml-meta`).

use std::path::Path;

use tpc_ir::DType;

use crate::output::Failure;
use crate::source::read_capture;
use tpc_core::placement::{Placement, Target};
use tpc_diag::{Diagnostic, codes};
use tpc_ggml::capture::Record;
use tpc_ggml::meta::{self, Setup};
use tpc_lint::{Finding, merge};

/// Returns the ops that the engine refuses or computes wrongly with this placement. K and V caches have the capture's
/// types by default.
pub(super) fn findings(
    graph: Option<&Path>,
    architecture: Option<&str>,
    placement: &Placement,
    cache_types: [Option<DType>; 2],
) -> Result<Vec<Finding>, Failure> {
    let Some(path) = graph else {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--target", "missing captured graph");
        return Err(Failure::usage(d.help(
            "add a graph: tpc lint --graph CAPTURE.jsonl --target ggml-meta",
        )));
    };
    let captured = read_capture(path)?;
    let mut setup = setup(&captured.records, placement)?;
    setup.architecture = architecture.map(str::to_owned);
    [setup.cache_type_k, setup.cache_type_v] = cache_types;
    Ok(merge(meta::diagnose(&captured.records, &setup)))
}

fn setup(records: &[Record], placement: &Placement) -> Result<Setup, Failure> {
    let mut setup = Setup::new(placement.devices.len());
    setup.proportions = placement.tensor_split.clone().unwrap_or_default();
    setup.caches_on_host = placement.kv_on_host;
    for t in records.iter().filter(|t| t.is_leaf()) {
        let mut to_host =
            meta::expert_layer(&t.name).is_some_and(|layer| placement.host_experts.contains(layer));
        for o in &placement.overrides {
            if o.matches(&t.name).map_err(Failure::usage)? {
                to_host = o.target == Target::Host;
                break;
            }
        }
        if to_host {
            setup.on_host.push(t.name.clone());
        }
    }
    Ok(setup)
}
