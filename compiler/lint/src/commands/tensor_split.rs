//! The conditions under which a release's tensor split fails, one lint per code. The release's file defines the
//! conditions; `tpc_ggml::engines` predicts which of them the model meets.

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, Severity, message};
use tpc_ggml::engines::Basis;
use tpc_ggml::llama_cpp::limit_codes as codes;

/// Declares one lint per code.
macro_rules! lints {
    ($($name:ident: $code:ident, $option:literal, $cure:literal;)*) => {
        $(pub(crate) static $name: Lint = Lint {
            entity: EntityKind::Option,
            code: codes::$code,
            check: Check::Command(|command, out| report(&$name, $option, $cure, command, out)),
        };)*

        #[cfg(test)]
        const CODES: &[&tpc_ir::Code] = &[$(&codes::$code),*];
    };
}

lints! {
    REFUSED: REFUSED_BY_NAME, "-sm", "use -sm layer with {}; tpc splits it: {}";
    NOT_LISTED: NOT_LISTED, "-sm", "use -sm layer with {}; tpc splits it: {}";
    MANY: MANY_DEVICES, "-dev", "use fewer devices with {}; tpc can plan it: {}";
    MIXED: MIXED_BACKENDS, "-dev",
        "use -sm layer with {}, or use Vulkan for all cards (-dev Vulkan0,Vulkan1,…); tpc can plan it: {}";
    BLOCKS: ROWS_OF_ONE_BLOCK, "-sm",
        "use -sm layer with {}, or a type with smaller blocks for this tensor; tpc splits it: {}";
    EMBEDDINGS: EMBEDDINGS_OF_OUTPUT, "-sm", "use -sm layer with {}; tpc splits it: {}";
    MEASURED: MEASURED_FAILURE, "-sm", "use -sm layer with {}; tpc gets the same logits as on one device: {}";
    ROWS: UNEVEN_HEAD_ROWS, "-sm",
        "use -sm layer with {}, or a number of devices that divides the KV heads; tpc splits it: {}";
    LINEAR: UNEVEN_LINEAR_HEADS, "-sm",
        "use -sm layer with {}, or a number of devices that divides the key heads; tpc splits it: {}";
    ATTENTION: ATTENTION_ON_HOST, "-ot", "keep these tensors on the devices with {}; tpc can plan it: {}";
    TORN: FEED_FORWARD_TORN, "-ot", "put the whole layer on the host with {}, or ffn_down alone; tpc can plan it: {}";
    BIAS: OUTPUT_BIAS_ON_HOST, "-ot", "keep the bias with its matrix with {}; tpc can plan it: {}";
    CACHES: CACHES_ON_HOST, "-nkvo", "leave out -nkvo with {}; tpc copies its heads to each device: {}";
    NORMED: ONE_NORMED_KV_HEAD, "-sm", "use -sm layer or -sm none with {}; tpc splits it: {}";
    KV_HEADS: FEW_KV_HEADS, "-sm", "use fewer devices with {}, or a newer release; tpc splits it: {}";
    SLOPES: SLOPES, "-sm", "use -sm layer with {}; tpc numbers the heads correctly: {}";
}

fn report(
    lint: &'static Lint,
    option: &str,
    cure: &'static str,
    command: &Command<'_>,
    out: &mut Vec<Diagnostic>,
) {
    if !command.asks_for_tensors() {
        return;
    }
    let all = command.failures();
    for p in all.iter().filter(|p| *p.code == lint.code) {
        let mut message = p.message(command.build);
        if let Some(says) = &p.says {
            message = format!("{message}: {says}");
        }
        let [before, between] = halves(cure);
        let help = message!(
            "{}{}{}{}",
            before,
            command.build.engine.name(),
            between,
            command.equivalent
        );
        let mut d = lint.finding(option, message);
        if p.only_there && is_of_another_backend(&p.basis, command) {
            d.severity = Severity::Note;
        }
        out.push(d.help(help));
    }
}

/// Splits a cure at its placeholders: the engine's name and the tpc command.
fn halves(cure: &'static str) -> [&'static str; 2] {
    let (before, rest) = cure.split_once("{}").unwrap_or((cure, ""));
    [before, rest.strip_suffix("{}").unwrap_or(rest)]
}

/// True if the evidence is for a back end that the command does not use.
fn is_of_another_backend(basis: &Basis, command: &Command<'_>) -> bool {
    let (Basis::Measured { backend, .. } | Basis::Reported { backend, .. }) = basis else {
        return false;
    };
    let mut known = command.backends.iter().flatten();
    !command.backends.is_empty() && known.all(|b| b != backend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_has_its_lint() {
        use tpc_ggml::engines::builds;
        for build in builds() {
            for f in &build.tensor_split.failures {
                assert!(CODES.contains(&f.when.code()), "{:?}", f.when);
            }
        }
    }
}
