use std::path::Path;

use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_core::format::bytes;
use tpc_diag::{Diagnostic, Message, message};
use tpc_ggml::llama_cpp::Setting;

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0909",
        "the plan does not count a file's memory",
        "The command loads a draft model, an image encoder or an adapter whose file tpc cannot read. Its memory is not \
         in the plan. The header of the file suffices.",
    )
    .example("`-md draft.gguf` without this file here.")
    .cure("put the file or its header at that path, or keep memory free: `--reserve 3GiB` before the `--`."),
    check: Check::Command(check),
};

const HELP: &str = "put the file or its header at that path, or keep memory free on each device: --reserve 3GiB before the `--`";

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let line = command.line;
    let mut tell = |spelling: &str, file: &str, why: Message| {
        let message = message!(
            "the plan does not count the memory of {} {}{}",
            spelling,
            file,
            why
        );
        out.push(LINT.finding(spelling, message).help(HELP));
    };
    for given in line.remote_files() {
        tell(&given.spelling, &given.value, Message::default());
    }
    let spelling = |setting| line.last(setting).map_or("", |o| o.spelling.as_str());
    let draft = line
        .draft_file()
        .map(|d| (spelling(Setting::Draft), d.file));
    let projector = line.projector_file();
    let projector = projector.map(|p| (spelling(Setting::Projector), p.file));
    let adapters = line.adapter_files().into_iter();
    let adapters = adapters.map(|(file, _)| (spelling(Setting::Adapter), file));
    let counted = |file: &String| command.placement.beside.iter().any(|b| b.file == *file);
    for (spelling, file) in draft.into_iter().chain(projector).chain(adapters) {
        if !counted(&file) {
            tell(spelling, &file, why(&file));
        }
    }
    // Drafts derived from the text need little memory; the plan includes draft blocks of the model's file.
    let has_draft = line.last(Setting::Draft).is_some();
    for given in line.all(Setting::Speculation).filter(|_| !has_draft) {
        let planned =
            |kind: &str| kind == "none" || kind == "draft-mtp" || kind.starts_with("ngram");
        if !given.value.split(',').map(str::trim).all(planned) {
            tell(&given.spelling, &given.value, Message::default());
        }
    }
}

/// Returns why the plan does not include a file.
fn why(file: &str) -> Message {
    match std::fs::metadata(Path::new(file)) {
        Err(_) => message!(": file not found"),
        Ok(m) => message!(" (a file of {}): its header cannot be read", bytes(m.len())),
    }
}
