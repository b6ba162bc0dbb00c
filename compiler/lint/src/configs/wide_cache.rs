use tpc_ir::Code;
use tpc_ir::DType;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_core::report::DeviceReport;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0803",
        "the KV cache is in f32",
        "f16 takes half the memory and half the time to read. It changes the logits less than quantised weights do.",
    )
    .example("`-ctk f32 -ctv f32` left over from a comparison of logits.")
    .cure("use f16 or q8_0."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let kinds = [
        ("--cache-type-k", plan.placement.cache_type_k),
        ("--cache-type-v", plan.placement.cache_type_v),
    ];
    let wide: Vec<&str> = kinds
        .iter()
        .filter(|k| k.1 == DType::F32)
        .map(|k| k.0)
        .collect();
    let held = |d: &DeviceReport| d.kv_bytes;
    let total: u64 = plan
        .report
        .devices
        .iter()
        .chain([&plan.report.host])
        .map(held)
        .sum();
    if let Some(first) = wide.first().filter(|_| total > 0) {
        let message = message!(
            "the KV cache of {} is in f32: {}",
            Quantity(bytes(total)),
            wide.join(", ")
        );
        let help = "use f16 (half of that) or q8_0 (about a quarter)";
        out.push(LINT.finding(*first, message).help(help));
    }
}
