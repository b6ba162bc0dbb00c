use std::collections::BTreeSet;

use tpc_ir::{Code, Op, Output, Place, Severity, Value};

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Device,
    code: Code::warning(
        "TPC0308",
        "every token waits for the host",
        "Devices wait for tensors, caches or layers on the host. If the devices' memory is known, tpc plans \
         alternatives, and this is a note if none is faster.",
    )
    .example("`--n-cpu-moe 10`: ten round trips per token.")
    .cure("use the options in the help, which fit and are faster; without such options, no action needed.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let graph = &plan.compiled.sharded;
    let outputs: BTreeSet<Value> = graph
        .outputs
        .iter()
        .filter_map(|o| match o {
            Output::Named(_, v) => Some(*v),
            Output::State { .. } => None,
        })
        .collect();
    let place = |v: Value| graph.value(v).place;
    // A round trip: the host receives a device value, then a device receives a value that the host computed.
    let (mut trips, mut there) = (0_u64, false);
    let mut layers = BTreeSet::new();
    for (_, i) in graph.insts() {
        if !matches!(i.op, Op::Copy(_)) || outputs.contains(&i.results[0]) {
            continue;
        }
        let (from, to) = (i.operands[0], i.results[0]);
        if place(to) == Place::Host {
            there = true;
        } else if place(from) == Place::Host && !matches!(graph.def_op(from), Op::Input(_)) && there
        {
            there = false;
            trips += 1;
            layers.extend(i.layer);
        }
    }
    if trips == 0 {
        return;
    }
    let d = &plan.report.collectives.decode;
    let message = message!(
        "{} round trips per token, in {} layers; {} copies and collectives carry {}",
        trips,
        layers.len(),
        d.copies + d.all_reduce,
        Quantity(bytes(d.bytes))
    );
    let faster = plan
        .faster
        .filter(|_| is_known(plan))
        .map(|search| search());
    out.push(match faster {
        _ if plan.counsel.is_some() => LINT
            .milder_finding("host", message)
            .help("first make the model fit: see the options of TPC0300"),
        Some(Some(a)) => LINT.finding("host", message).help(message!(
            "this fits and is faster: {}: {}",
            Quantity(a.options.clone()),
            Quantity(a.worth())
        )),
        Some(None) => {
            let help =
                "no action needed: no lossless alternative is faster by more than the error of the estimates";
            LINT.milder_finding("host", message).help(help)
        }
        None => LINT
            .finding("host", message)
            .help("give --topology with the devices' memory to search for alternatives"),
    });
}

fn is_known(plan: &Plan<'_>) -> bool {
    let topology = &plan.placement.topology;
    (0..plan.placement.devices.len()).all(|d| topology.device(d).memory.is_some())
}
