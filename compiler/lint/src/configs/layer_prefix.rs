use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use crate::numbers;
use tpc_diag::{Diagnostic, message};
use tpc_gguf::TensorName;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0814",
        "an override matches more layers than it names",
        "The pattern of an `--override-tensor` ends with a layer's number, so it also matches layers whose numbers \
         begin with it.",
    )
    .example("`blk\\.1=CPU` also places blocks 10 to 19.")
    .cure("write a dot after the number: `blk\\.1\\.`."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let tensors = plan.tensors();
    for o in &plan.placement.overrides {
        // A number at the pattern's end, or before a wildcard.
        let end = o.pattern.trim_end_matches(['*', '.', '+', '$', ')']);
        let stem = end.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = &end[stem.len()..];
        let open = o.pattern.strip_prefix(end).unwrap_or_default();
        let closed = open.starts_with("\\.") || open.starts_with('$');
        let names_layer = stem.ends_with("blk.") || stem.ends_with("blk\\.");
        if number.is_empty() || closed || !names_layer {
            continue;
        }
        let layers = tensors.iter().filter(|n| o.matches(n) == Ok(true));
        let mut layers: Vec<u32> = layers
            .filter_map(|n| Some(TensorName::parse(n).block()?.0))
            .collect();
        layers.sort_unstable();
        layers.dedup();
        let more: Vec<u32> = layers
            .into_iter()
            .filter(|l| l.to_string() != number)
            .collect();
        if !more.is_empty() {
            let message = message!("`{}` also matches blocks {}", o.pattern, numbers(&more));
            let help = message!("`{}\\.` matches only block {}", end, number);
            out.push(LINT.finding(&o.pattern, message).help(help));
        }
    }
}
