//! Options that the engine chooses.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Setting;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0917",
        "what is not given is fitted",
        "llama.cpp changes what the line leaves open (`-c`, `-ngl`, `-ts` and places of tensors) until the model \
         fits the memory, down to a context of 4096, unless `-fit off` is given. What runs may then differ from \
         the plan, which takes the model's context and all layers.",
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
        "llama.cpp chooses {} so that the model fits; the plan has {} cells and all layers",
        free.join(" and "),
        command
            .file
            .count(&command.file.key("context_length"))
            .unwrap_or(0)
    );
    let note = LINT.finding("-fit", message);
    out.push(note.help(message!("give {}, or -fit off", free.join(" and "))));
}
