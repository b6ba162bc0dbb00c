use tpc_ir::Code;

use super::{Check, EntityKind, File, Lint};
use crate::view::layer_name;
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_gguf::TensorName;
use tpc_models::Tower;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0600",
        "the model does not use a tensor",
        "The architecture's graph does not use this tensor, which takes space in the file and in some engines' memory. \
         Often it belongs to another architecture or version.",
    )
    .example("`blk.0.attn_q_norm.weight` in an architecture without query norms.")
    .cure("check `general.architecture`, or convert the model again with a current converter."),
    check: Check::File(check),
};

fn check(file: &File<'_>, out: &mut Vec<Diagnostic>) {
    let Some(model) = file.model else { return };
    for name in &model.summary.unused {
        let drafts = TensorName::parse(name)
            .block()
            .is_some_and(|(layer, _)| u64::from(layer) >= model.summary.n_layer);
        // Another lint reports image and sound encoders.
        if drafts || Tower::of(name).is_some() {
            continue;
        }
        let size = file.header().tensor(name).map_or(0, |t| t.bytes);
        let message = message!(
            "{} ({}) is not used by {}",
            layer_name(name),
            Quantity(bytes(size)),
            model.summary.arch
        );
        let help = "check general.architecture, or convert the model again";
        out.push(LINT.finding(name, message).help(help));
    }
}
