//! Options that llama.cpp sets itself.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Maker;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0917",
        "llama.cpp fits what is not given",
        "Unless `-fit off` is given, llama.cpp changes options that the command leaves open (`-c`, `-ngl`, \
         `-ts`, tensor placement) until the model fits in memory, down to a context of 4096. What runs may \
         differ from the plan, which uses the model's full context and all layers. A plan that does not fit is then a note, \
         not an error. With `-sm tensor`, and where `-ngl`, `-ts` or the place of a tensor is given, it leaves the layers \
         as they are.",
    )
    .example("`llama-server -m X.gguf` with a model that fills the devices.")
    .cure("give `-c` and `-ngl`, or `-fit off`."),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let fitted = command.line.fitted_settings();
    if command.line.maker == Maker::IkLlamaCpp || !fitted.context {
        return;
    }
    let mut free = vec!["-c"];
    if fitted.layers {
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
