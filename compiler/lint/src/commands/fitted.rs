use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::Maker;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0917",
        "llama.cpp chooses options that are not given",
        "Without `-fit off`, llama.cpp lowers open options (`-c`, `-ngl`, `-ts`, tensor placement) until the model \
         fits, down to a context of 4096. The plan uses the full context and all layers; if it does not fit, that is a \
         note. With `-sm tensor`, `-ngl`, `-ts` or a tensor's placement, llama.cpp does not change the layers.",
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
