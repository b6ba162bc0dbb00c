//! Options that llama.cpp does not have.

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::suggest::nearest;
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::OPTIONS;

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::warning(
        "TPC0913",
        "an option that llama.cpp does not have",
        "llama.cpp's programs have no such option and stop with an error. The help names the nearest one.",
    )
    .example("`--ctx-sise 4096`.")
    .cure("the right spelling; `llama-server --help` lists the options."),
    check: Check::Command(check),
};

/// Options of tpc that are not llama.cpp's.
const OWN: [&str; 5] = ["--devices", "--topology", "--format", "--deny", "--allow"];

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    for word in &command.line.unknown {
        let names = OPTIONS.iter().flat_map(|f| f.names.iter().copied());
        let help = match nearest(word, names) {
            _ if OWN.contains(&word.as_str()) => message!("put tpc's {} before the `--`", word),
            Some(near) => message!("did you mean {}?", near),
            None => "check its spelling; `llama-server --help` lists the options".into(),
        };
        let message = message!("unknown llama.cpp option `{}`", word);
        out.push(LINT.finding(word, message).help(help));
    }
}
