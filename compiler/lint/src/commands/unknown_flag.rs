use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::suggest::nearest;
use tpc_diag::{Diagnostic, message};
use tpc_ggml::llama_cpp::{IK_OPTIONS, Maker, OPTIONS, OptionSpec, Program};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::error(
        "TPC0913",
        "unknown llama.cpp option",
        "llama.cpp's programs stop at an unknown option. The help names the nearest option, or says that it belongs to \
         ik_llama.cpp or tpc.",
    )
    .example("`--ctx-sise 4096`.")
    .cure("correct the spelling; `llama-server --help` lists the options."),
    check: Check::Command(check),
};

/// Common mistakes that the spelling search does not find, with the intended option.
const SLIPS: [(&str, &str); 5] = [
    ("--no-fit", "-fit off"),
    ("-ctx", "-c"),
    ("--ctx", "--ctx-size"),
    ("--context-size", "--ctx-size"),
    ("--stop", "--reverse-prompt"),
];

const OWN: [&str; 5] = ["--devices", "--topology", "--format", "--deny", "--allow"];

/// Reports options that the release has removed.
fn lint_removed_options(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    // A benchmark has its own options.
    let is_bench = command.line.kind == Program::Bench;
    let given = command.line.options.iter();
    for given in given.filter(|o| !o.from_env && !is_bench) {
        let gone = command.build.removed_options.iter();
        let mut gone = gone.filter(|r| r.names.contains(&given.spelling));
        if let Some(r) = gone.next() {
            let message = message!(
                "not possible with {}: option `{}` was removed",
                command.build.name(),
                given.spelling
            );
            let help = message!(
                "write {}, or name an older release with `--engine` before the `--`",
                r.instead
            );
            out.push(LINT.finding(&given.spelling, message).help(help));
        }
    }
}

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    lint_removed_options(command, out);
    let has = |name: &str, options: &[OptionSpec]| options.iter().any(|o| o.names.contains(&name));
    for word in &command.line.unknown {
        let names = OPTIONS.iter().flat_map(|f| f.names.iter().copied());
        let slip = SLIPS.iter().find(|(s, _)| s == word).map(|(_, m)| *m);
        let assigned = word.split_once('=').filter(|(n, _)| has(n, OPTIONS));
        let help = match (nearest(word, names), assigned) {
            _ if OWN.contains(&word.as_str()) => message!("put tpc's {} before the `--`", word),
            _ if has(word, IK_OPTIONS) => message!(
                "{} is an option of ik_llama.cpp: check it with tpc lint -- ik_llama-server …, or leave it out",
                word
            ),
            _ if slip.is_some() => message!("did you mean {}?", slip.unwrap_or_default()),
            (_, Some((name, value))) => message!("write {} {}", name, value),
            _ if !word.starts_with('-') => {
                "an option has too few or too many values; see `llama-server --help`".into()
            }
            (Some(near), None) => message!("did you mean {}?", near),
            (None, None) => "check the spelling; `llama-server --help` lists the options".into(),
        };
        let engine = match command.line.maker {
            Maker::LlamaCpp => "llama.cpp",
            Maker::IkLlamaCpp => "ik_llama.cpp",
        };
        let message = message!("unknown {} option `{}`: the program stops", engine, word);
        out.push(LINT.finding(word, message).help(help));
    }
}
