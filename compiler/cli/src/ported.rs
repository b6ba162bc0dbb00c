//! A captured graph by the rules of the engine that it is ported to.

use std::path::Path;

use tpc_ir::DType;

use super::output::Failure;
use super::source::read_capture;
use tpc_core::placement::{Placement, Target};
use tpc_diag::Diagnostic;
use tpc_ggml::capture::Record;
use tpc_ggml::meta::{self, Setup};
use tpc_lint::{Finding, merged};

/// What that engine would make of a capture with this placement.
pub(super) fn findings(
    graph: Option<&Path>,
    architecture: Option<&str>,
    placement: &Placement,
) -> Result<Vec<Finding>, Failure> {
    let Some(path) = graph else {
        let d = Diagnostic::error("TPC0400", "--target", "needs a captured graph");
        return Err(Failure::usage(
            d.help("tpc lint --graph CAPTURE.jsonl --target ggml-meta"),
        ));
    };
    let captured = read_capture(path)?;
    let setup = setup(&captured.records, placement, architecture)?;
    Ok(merged(meta::diagnose(&captured.records, &setup)))
}

/// What the engine would be asked for with these options.
fn setup(
    records: &[Record],
    placement: &Placement,
    architecture: Option<&str>,
) -> Result<Setup, Failure> {
    let mut setup = Setup::new(placement.devices.len());
    setup.proportions = placement.tensor_split.clone().unwrap_or_default();
    setup.architecture = architecture.map(str::to_owned);
    // Caches are of the capture's type where no option says another.
    let given = |t: DType| (t != DType::F16).then_some(t);
    setup.cache_type_k = given(placement.cache_type_k);
    setup.cache_type_v = given(placement.cache_type_v);
    setup.caches_on_host = placement.kv_on_host;
    for t in records.iter().filter(|t| t.op == "NONE") {
        let mut to_host = meta::is_expert_of(&t.name, placement.n_cpu_moe);
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
