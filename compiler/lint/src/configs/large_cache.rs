use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0812",
        "the KV cache is larger than the model",
        "Without `--ctx-size` the KV cache has the model's full context and takes more memory than all weights. Few \
         uses need that many cells.",
    )
    .example("a model of 5 GB with a context of 131072, whose cache takes 16 GB.")
    .cure("give `-c` with the number of tokens needed, or use smaller cache types."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    if plan.placement.ctx_size.is_some() {
        return;
    }
    let all = || plan.report.devices.iter().chain([&plan.report.host]);
    let cache: u64 = all().map(|d| d.kv_bytes).sum();
    let cells = plan.compiled.caches.n_ctx;
    if cache <= plan.report.model.bytes || cells <= 8192 {
        return;
    }
    let message = message!(
        "the KV cache of {} cells takes {}, the model {}",
        cells,
        Quantity(bytes(cache)),
        Quantity(bytes(plan.report.model.bytes))
    );
    let help = "give -c with the number of tokens needed; -ctk q8_0 -ctv q8_0 takes about half";
    out.push(LINT.finding("--ctx-size", message).help(help));
}
