//! Options that llama.cpp chooses itself.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0917",
        "llama.cpp fits what is not given",
        "Unless `-fit off` is given, llama.cpp changes options that the command leaves open (`-c`, `-ngl`, \
         `-ts`, tensor placement) until the model fits in memory, down to a context of 4096. What runs may \
         differ from the plan, which uses the model's full context and all layers.",
    )
    .example("`llama-server -m X.gguf` with a model that fills the devices.")
    .cure("give `-c` and `-ngl`, or `-fit off`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let open = |s: Setting| command.line.last(s).is_none();
    let context = command.line.count(Setting::Context).unwrap_or(0) == 0;
    if command.line.is_off(Setting::Fit) || !context {
        return;
    }
    let mut free = vec!["-c"];
    if open(Setting::GpuLayers) {
        free.push("-ngl");
    }
    let message = message!(
        "llama.cpp chooses {} so that the model fits; the plan uses {} cells and all layers",
        free.join(" and "),
        command
            .file
            .count(&command.file.key("context_length"))
            .unwrap_or(0)
    );
    let note = LINT.finding("-fit", message);
    out.push(note.help(message!("give {}, or -fit off", free.join(" and "))));
}
