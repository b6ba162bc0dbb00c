use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0905",
        "quantised V cache without flash attention",
        "Not possible with llama.cpp: with `-fa off` it stores values transposed, which a quantised cache does not \
         allow (`quantized V cache requires flash_attn to be enabled`).",
    )
    .example("`-fa off -ctv q8_0`.")
    .cure("use `-fa on`, or a V cache in f16."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let quantised = command.placement.cache_type_v.is_quantised();
    if quantised && command.line.is_off(Setting::FlashAttention) {
        let message = message!(
            "not possible with llama.cpp: a V cache in {} requires flash attention",
            command.placement.cache_type_v.name()
        );
        let help = "use -fa on or -ctv f16; tpc always uses fused attention";
        out.push(LINT.finding("-ctv", message).help(help));
    }
}
