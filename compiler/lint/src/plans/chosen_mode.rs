use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes;
use tpc_core::pipeline::Candidate;
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0310",
        "the split mode that `auto` chose",
        "`--split-mode auto` plans one device, layers, tensors, and layers among groups that split tensors. It \
         chooses the mode with the lowest cost of decoding, prompts and memory on the fullest device. It considers \
         modes that do not fit only if no mode fits.",
    )
    .cure("no action needed; choose a mode with `-sm tensor`, `-sm layer` or `-sm none`."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let all = &plan.compiled.candidates;
    let Some(chosen) = all.iter().find(|c| c.chosen) else {
        return;
    };
    let mut sorted: Vec<_> = all.iter().collect();
    sorted.sort_by(|a, b| {
        let first = b.chosen.cmp(&a.chosen).then(b.fits.cmp(&a.fits));
        first.then(a.cost.total_cmp(&b.cost))
    });
    let shown: Vec<Message> = sorted
        .iter()
        .map(|c| {
            let room = if c.fits { "" } else { ", does not fit" };
            message!(
                "{} {} ms per token, {} ms per prompt batch, {} on the fullest device{}",
                c.name,
                Quantity(format!("{:.2}", c.estimate.decode_us / 1e3)),
                Quantity(format!("{:.1}", c.estimate.prefill_us / 1e3)),
                Quantity(bytes(c.fullest)),
                room
            )
        })
        .collect();
    let verdict = match chosen.fits {
        true => message!(
            "{} has the lowest cost of tokens, prompts and memory",
            chosen.name
        ),
        false => message!("no mode fits; showing {}, the closest", chosen.name),
    };
    // A candidate of equal fit has a lower estimate than the chosen mode.
    let beaten =
        |c: &&Candidate| c.fits == chosen.fits && c.estimate.decode_us < chosen.estimate.decode_us;
    let equal = match all.iter().filter(beaten).any(|c| c.within_error) {
        true => "; times within the error of the estimates count as equal",
        false => "",
    };
    let message = message!("{}: {}{}", verdict, Message::join(shown, "; "), equal);
    out.push(
        LINT.finding("--split-mode", message)
            .help("no action needed; -sm chooses another mode"),
    );
}
