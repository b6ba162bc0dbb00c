use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0904",
        "llama.cpp's tensor split without flash attention",
        "`-sm tensor` with `-fa off` is not possible with llama.cpp: it stops with `SPLIT_MODE_TENSOR requires \
         flash_attn to be enabled`. tpc always uses fused attention.",
    )
    .example("`-sm tensor -fa off`.")
    .cure("use `-fa on`, or leave out `-fa`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    if command.splits_tensors() && command.line.is_off(Setting::FlashAttention) {
        let message = "not possible with llama.cpp: -sm tensor requires flash attention";
        let help = "use -fa on, or leave out -fa; tpc always uses fused attention";
        out.push(LINT.finding("-fa", message).help(help));
    }
}
