use tpc_ir::{Code, Severity};

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_core::placement::SplitMode;
use tpc_core::report::NOTED_COPIES;
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::warning(
        "TPC0313",
        "much of the model is stored more than once",
        "More than three per cent of the model's bytes are copies: whole tensors, shared edge blocks and KV heads, or \
         weights that several pipeline stages use. The message gives the bytes of each cause. `tpc plan -v` names the \
         tensors, the factors, and the cost of splits that store less.",
    )
    .cure("use a number of devices that divides heads and blocks, or `-sm layer`.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let r = plan.report;
    let share = r.mirrored_bytes as f64 / (r.model.bytes as f64).max(1.0);
    if share <= NOTED_COPIES {
        return;
    }
    // A layer split copies only weights that both the first and the last stage use.
    if plan.compiled.mode == SplitMode::Layer {
        let message = message!(
            "copies take {}, {} % of the model: weights that several devices use, such as an embedding table that is \
             also the output matrix",
            Quantity(bytes(r.mirrored_bytes)),
            Quantity(format!("{:.1}", share * 100.0))
        );
        let note = LINT.milder_finding("plan", message);
        out.push(note.help("no action needed: the copy avoids a transfer between devices"));
        return;
    }
    let m = &r.mirrored;
    let causes = [
        ("whole tensors", m.whole_bytes),
        ("shared edge blocks", m.edge_block_bytes),
        ("shared KV heads", m.shared_head_bytes),
    ];
    let shown: Vec<Message> = causes
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(what, n)| message!("{} {}", what, Quantity(bytes(*n))))
        .collect();
    let message = message!(
        "copies take {}, {} % of the model: {}",
        Quantity(bytes(r.mirrored_bytes)),
        Quantity(format!("{:.1}", share * 100.0)),
        Message::join(shown, ", ")
    );
    out.push(
        LINT.finding("plan", message)
            .help("use a number of devices that divides heads and blocks, or -sm layer"),
    );
}
