use tpc_ir::Code;

use super::{Check, Command, EntityKind, Lint};
use tpc_diag::{Diagnostic, Quantity, message};
use tpc_ggml::llama_cpp::{Maker, Program, Setting};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Option,
    code: Code::note(
        "TPC0936",
        "an answer depends on the width of the batches",
        "llama.cpp computes a batch of one token with other kernels than a wider batch, so sums differ in their last \
         bits. Drafts and other sequences widen batches. At nearly equal logits, the chosen token then changes. Measured \
         on 0.8.0's CPU backend, batches of 2 to 16 tokens against single tokens: with `-fa off`, 4 of 32 best tokens \
         of SmolLM2 135M and up to 7 of 32 of Gemma 3 270M changed; with `-fa on`, none of SmolLM2, and up to 5 of \
         Gemma from 4 tokens on.",
    )
    .example("`llama-server -m model.gguf -md draft.gguf`, or `-np 8`.")
    .cure(
        "if answers must not change, use `tpc run`: it computes a token in the same order in any batch, and \
         `--deterministic on` keeps the bits for any number of devices.",
    ),
    check: Check::Command(check),
};

fn check(command: &Command<'_>, out: &mut Vec<Diagnostic>) {
    let line = command.line;
    if line.kind != Program::General || line.maker != Maker::LlamaCpp {
        return;
    }
    let draft = line.last(Setting::Draft).map(|o| o.spelling.as_str());
    let kinds = line.last(Setting::Speculation);
    let kinds = kinds.filter(|_| line.draft_kinds().next().is_some());
    let option = draft.or_else(|| Some(kinds?.spelling.as_str()));
    let sequences = line.count(Setting::Parallel).filter(|n| *n > 1);
    let (option, message) = match (option, sequences) {
        (Some(option), _) => (
            option,
            message!(
                "drafts can change the answer, since llama.cpp sums wider batches in another order"
            ),
        ),
        (None, Some(n)) => (
            "-np",
            message!(
                "an answer can depend on the other {}, since llama.cpp sums wider batches in another order",
                Quantity(match n {
                    2 => "sequence".to_owned(),
                    n => format!("{} sequences", n - 1),
                })
            ),
        ),
        (None, None) => return,
    };
    let help = "no action needed unless answers must be reproducible: `tpc run` computes a token in the same order in \
                any batch";
    out.push(LINT.finding(option, message).help(help));
}
