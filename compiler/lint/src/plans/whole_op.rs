use std::collections::BTreeMap;

use tpc_ir::{Code, Inst, Place, Unreduced, Value};
use tpc_passes::plan::timeline;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::report::describe;
use tpc_diag::{Diagnostic, Quantity, message};

/// The fraction of a token's time that devices may repeat without a finding.
const QUIET: f64 = 0.05;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::note(
        "TPC0340",
        "every device repeats the same ops",
        "Ops of one kind with whole operands and results take more than a twentieth of the time of a decoded token. \
         More devices do not make them faster. The message names the slowest op.",
    )
    .example("the router of a model with an unsplit width, or products of a weight that an override mirrors.")
    .cure("run `tpc plan --why TENSOR` to see why a weight is not split."),
    check: Check::Plan(check),
};

struct Kind {
    us: f64,
    count: usize,
    longest: (f64, Inst),
}

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let compiled = plan.compiled;
    if !compiled.mode.splits_tensors() {
        return;
    }
    let graph = &compiled.sharded;
    let whole = |v: &Value| {
        let data = graph.value(*v);
        let shared = matches!(data.place, Place::Group(g) if graph.group(g).devices.len() > 1);
        shared && !data.sharding.is_split() && data.sharding.unreduced == Unreduced::None
    };
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for event in timeline(graph, &compiled.request, &compiled.decode_batch()) {
        let data = graph.inst(event.inst);
        // Only transfers have bytes.
        let alike = event.bytes.is_empty() && data.results.iter().chain(&data.operands).all(whole);
        if !alike {
            continue;
        }
        let us = event.us.iter().copied().fold(0.0, f64::max);
        let kind = kinds.entry(describe::op_name(&data.op)).or_insert(Kind {
            us: 0.0,
            count: 0,
            longest: (0.0, event.inst),
        });
        kind.us += us;
        kind.count += 1;
        if us > kind.longest.0 {
            kind.longest = (us, event.inst);
        }
    }
    let total = plan.report.estimate.decode_us;
    for (op, kind) in kinds.iter().filter(|(_, k)| k.us > QUIET * total) {
        let message = message!(
            "every device repeats {} `{}`, {} of {} ms per token; the slowest is {}",
            kind.count,
            op,
            Quantity(format!("{:.2}", kind.us / 1e3)),
            Quantity(format!("{:.2}", total / 1e3)),
            Quantity(describe::inst(graph, kind.longest.1))
        );
        out.push(
            LINT.finding(*op, message)
                .help("run `tpc plan --why TENSOR` to see why a weight is not split"),
        );
    }
}
