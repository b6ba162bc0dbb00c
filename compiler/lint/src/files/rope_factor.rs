use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use tpc_diag::{Diagnostic, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Key,
    code: Code::warning(
        "TPC0607",
        "YaRN without a factor",
        "`rope.scaling.type` is `yarn`, but `rope.scaling.factor` is absent or at most 1. RoPE is not scaled, and the \
         model breaks down beyond its original context.",
    )
    .example("a configuration that names the factor differently.")
    .cure("write the factor of the model's configuration."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let kind = file.key("rope.scaling.type");
    let key = file.key("rope.scaling.factor");
    let factor = file.float(&key);
    if file.text(&kind) != Some("yarn") || factor.is_some_and(|f| f > 1.0) {
        return;
    }
    let found = factor.map_or("absent".to_owned(), |f| f.to_string());
    let message = message!(
        "{} is yarn and {} is {}: RoPE is not scaled",
        kind,
        key,
        found
    );
    let help = "write the factor of the model's configuration, which is above 1";
    out.push(LINT.finding(key, message).help(help));
}
