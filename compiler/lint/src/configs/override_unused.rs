use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0311",
        "a placement option does not match any tensor",
        "The regex of an `--override-tensor` matches no tensor, or only tensors that an earlier override places. Or \
         `--n-cpu-moe` is given for layers without experts.",
    )
    .example("`-ot 'blk\\.99\\..*=CPU'` for a model of 32 layers.")
    .cure("correct the pattern; the help names the nearest tensor, or the option that comes first."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let placement = plan.placement;
    let names = plan.tensors();
    for (o, &placed) in placement
        .overrides
        .iter()
        .zip(&plan.compiled.resolved.override_matches)
    {
        if placed > 0 {
            continue;
        }
        let matched = names.iter().find(|n| o.matches(n) == Ok(true));
        let d = match matched {
            Some(name) => LINT.finding(
                &o.pattern,
                message!("has no effect: earlier overrides place all tensors that it matches, such as {}", name),
            )
            .help("put this override first, or leave it out"),
            None => {
                let literal: String = o
                    .pattern
                    .chars()
                    .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
                    .collect();
                let near = names.iter().max_by_key(|n| common(n, &literal));
                let d = LINT.finding(
                    &o.pattern,
                    message!("does not match any of the model's {} tensors", names.len()),
                );
                match near {
                    Some(n) => d.help(message!("the nearest tensor is {}", n)),
                    None => d,
                }
            }
        };
        out.push(d);
    }
    if !placement.host_experts.is_none() && plan.compiled.resolved.host_expert_tensors == 0 {
        let d = LINT.finding(
            "--n-cpu-moe",
            "has no effect: these layers are without experts, or overrides place them",
        );
        out.push(d.help("leave out --n-cpu-moe; `-ngl N` keeps whole layers on the host"));
    }
}

fn common(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut longest = 0;
    let mut row = vec![0_usize; b.len() + 1];
    for &x in a {
        for j in (0..b.len()).rev() {
            row[j + 1] = if x == b[j] { row[j] + 1 } else { 0 };
            longest = longest.max(row[j + 1]);
        }
    }
    longest
}
