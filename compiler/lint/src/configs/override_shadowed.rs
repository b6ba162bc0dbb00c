use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::placement::Override;
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0813",
        "an override loses tensors to an earlier one",
        "The first `--override-tensor` that matches a tensor counts, so an earlier override takes tensors from a \
         later one. tpc does not report an earlier override with fewer matches, which is a deliberate exception.",
    )
    .example("`-ot 'ffn=CPU' -ot 'blk\\.0\\.=dev0'`: the feed-forward weights of block 0 stay on the host.")
    .cure("put the more specific override first."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let overrides = &plan.placement.overrides;
    let tensors = plan.tensors();
    let matched = |o: &Override| {
        let names = tensors.iter().filter(|n| o.matches(n) == Ok(true));
        names.count()
    };
    let counts: Vec<usize> = overrides.iter().map(matched).collect();
    for (i, later) in overrides.iter().enumerate() {
        let mut lost: Vec<(&str, usize)> = Vec::new();
        let mut kept = 0_usize;
        for name in tensors.iter().filter(|n| later.matches(n) == Ok(true)) {
            let first = overrides.iter().position(|o| o.matches(name) == Ok(true));
            match first {
                // An earlier, narrower override is a deliberate exception.
                Some(j) if j < i && counts[j] < counts[i] => {}
                Some(j) if j < i && overrides[j].target != later.target => lost.push((name, j)),
                Some(j) if j < i => {}
                _ => kept += 1,
            }
        }
        // Another lint reports overrides without effect.
        let Some((name, j)) = lost.first().filter(|_| kept > 0) else {
            continue;
        };
        let message = message!(
            "{} of the {} tensors that `{}` matches, such as {}, are placed by `{}`",
            lost.len(),
            lost.len() + kept,
            later.pattern,
            name,
            overrides[*j].pattern
        );
        let help = message!("put `{}` first if it is an exception", later.pattern);
        out.push(LINT.finding(&later.pattern, message).help(help));
    }
}
