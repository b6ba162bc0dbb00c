use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0606",
        "RoPE scaling is too small for the context",
        "`rope.scaling.original_context_length` × `rope.scaling.factor` is less than `context_length`. Positions \
         beyond the product are neither trained nor scaled.",
    )
    .example("an original context of 4096, a factor of 8, and a context of 131072.")
    .cure("write a larger factor, or use a smaller `context_length` or `-c`."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let key = |name: &str| file.key(&format!("rope.scaling.{name}"));
    let scaled = matches!(file.text(&key("type")), Some("yarn" | "linear"));
    let factor = file.float(&key("factor")).filter(|&f| f > 1.0);
    let original = file.count(&key("original_context_length"));
    let context = file.count(&file.key("context_length"));
    let (true, Some(factor), Some(original), Some(context)) = (scaled, factor, original, context)
    else {
        return;
    };
    let reach = original as f64 * f64::from(factor);
    // The factor may be rounded.
    if original == 0 || reach * 1.01 >= context as f64 {
        return;
    }
    let message = message!(
        "{} positions × {} = {}, but {} is {}",
        original,
        factor,
        Quantity(format!("{reach:.0}")),
        file.key("context_length"),
        context
    );
    let help = message!(
        "write a factor of {}, or use -c {}",
        Quantity(format!("{:.1}", context as f64 / original as f64)),
        Quantity(format!("{reach:.0}"))
    );
    out.push(LINT.finding(key("factor"), message).help(help));
}
