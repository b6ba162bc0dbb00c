use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0930",
        "attention is not fused",
        "With `-fa off` llama.cpp keeps a batch's attention scores in memory: heads × batch tokens × cells × 4 bytes \
         on each device with a layer. Prompts take longer. tpc always fuses attention; with a tensor split, `-fa off` \
         is an error (TPC0904).",
    )
    .example("`-fa off -c 32768`.")
    .cure("use `-fa on`, or leave out `-fa`, unless a device lacks the kernel."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let Some(given) = command.line.last(Setting::FlashAttention) else {
        return;
    };
    if command.line.is_off(Setting::FlashAttention) && !command.splits_tensors() {
        let message = "llama.cpp keeps the attention scores of a batch in memory: more memory, slower prompts";
        let help = "use -fa on, or leave out -fa, unless a device lacks the kernel";
        out.push(LINT.finding(&given.spelling, message).help(help));
    }
}
