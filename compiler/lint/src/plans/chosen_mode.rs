//! The split mode that `--split-mode auto` chose.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Message, Quantity, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0310",
        "the split mode that `auto` chose",
        "`--split-mode auto` plans the model on one device, split by layers, split by tensors, and by layers \
         among groups that split tensors. It takes the one with the lowest cost: the time of a decoded token, \
         prompts weighted in, and the price of the memory of the fullest device. Only when nothing fits does it \
         take one that does not fit. The message has the times of each.",
    )
    .cure("none is needed; `-sm tensor`, `-sm layer` or `-sm none` choose a mode."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let all = &plan.compiled.candidates;
    let Some(chosen) = all.iter().find(|c| c.chosen) else {
        return;
    };
    let mut sorted: Vec<_> = all.iter().collect();
    sorted.sort_by(|a, b| b.fits.cmp(&a.fits).then(a.cost.total_cmp(&b.cost)));
    let shown: Vec<Message> = sorted
        .iter()
        .map(|c| {
            let room = if c.fits { "" } else { ", does not fit" };
            message!(
                "{} {} ms per token and {} ms per prompt batch{}",
                c.name,
                Quantity(format!("{:.2}", c.estimate.decode_us / 1e3)),
                Quantity(format!("{:.1}", c.estimate.prefill_us / 1e3)),
                room
            )
        })
        .collect();
    let verdict = if chosen.fits {
        message!("{} costs least", chosen.name)
    } else {
        message!("nothing fits; showing {}, the closest", chosen.name)
    };
    let slower = all.iter().any(|c| {
        c.fits == chosen.fits
            && c.estimate.decode_us < chosen.estimate.decode_us
            && c.estimate.prefill_us < chosen.estimate.prefill_us
    });
    let memory = if chosen.fits && slower {
        "; it is slower, but its fullest device holds less"
    } else {
        ""
    };
    let message = message!("{}: {}{}", verdict, Message::join(shown, "; "), memory);
    out.push(LINT.finding("--split-mode", message));
}
