//! Quantised values without flash attention.

use tpc_ir::Code;

use super::{Check, Line, Lint, Names};
use tpc_diag::Diagnostic;
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Option,
    code: Code::error(
        "TPC0905",
        "a quantised V cache without fused attention",
        "With `-fa off`, llama.cpp stores values transposed, and a quantised cache cannot be: it creates no \
         context (`quantized V cache requires flash_attn to be enabled`).",
    )
    .example("`-fa off -ctv q8_0`.")
    .cure("`-fa on`, or a V cache of f16."),
    check: Check::Line(check),
};

fn check(line: &Line<'_>, out: &mut Vec<Diagnostic>) {
    let quantised = line.placement.cache_type_v.is_quantised();
    if quantised && line.command.is_off(Setting::FlashAttention) {
        let message = format!(
            "llama.cpp creates no context: a V cache of {} requires flash attention",
            line.placement.cache_type_v.name()
        );
        let help = "-fa on, or -ctv f16; tpc always fuses attention";
        out.push(Diagnostic::new(&LINT.code, "-ctv", message).help(help));
    }
}
