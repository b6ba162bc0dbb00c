//! Meanings of other programs' options that differ between running a model and planning it.

use super::table;

/// The effect of an option that a running command does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Running {
    /// No effect: the command already behaves this way, or the option asks for a feature that is off.
    Same(&'static str),
    /// The feature is not supported.
    Undone(&'static str),
}

use Running::{Same, Undone};

/// Names of options, and a test for the values that switch them off.
type Off = (&'static str, fn(f64) -> bool);

/// Options of samplers and of positions that these values switch off, which is also tpc's behaviour.
const OFF: &[Off] = &[
    (
        "--mirostat --dynatemp-range --dry-multiplier --xtc-probability --rope-freq-base",
        |x| x == 0.0,
    ),
    ("--typical --typical-p --tfs", |x| x >= 1.0),
    ("--top-nsigma --top-n-sigma", |x| x <= 0.0),
    ("-gan --grp-attn-n --rope-scale", |x| x == 1.0),
    ("--rope-freq-scale --yarn-orig-ctx", |x| x == 0.0),
    (
        "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast",
        |x| x < 0.0,
    ),
    ("--adaptive-target --reasoning-budget", |x| x < 0.0),
];

/// Options that depend on another option, which tpc refuses.
const DEPENDENT: &str = "--mirostat-lr --mirostat-ent --dynatemp-exp --dry-base --dry-allowed-length --dry-penalty-last-n \
     --dry-sequence-breaker --xtc-threshold --adaptive-decay -gaw --grp-attn-w";

const OFF_ANYWAY: &str = "it is off, as it is without the option";
const FILES_SCALING: &str = "positions are scaled as the file says, if it does";

/// Returns the reason if an option that may change the text has a value without effect.
pub(super) fn off(name: &str, value: &str) -> Option<&'static str> {
    let is_in = |names: &str| names.split_whitespace().any(|n| n == name);
    if name == "--rope-scaling" && value == "none" {
        return Some(FILES_SCALING);
    }
    if is_in(DEPENDENT) {
        return Some("it counts only where another option is on that tpc does not have");
    }
    let number: f64 = value.trim().parse().ok()?;
    let found = OFF
        .iter()
        .find(|(names, is_off)| is_in(names) && is_off(number));
    found.map(|_| OFF_ANYWAY)
}

/// Meanings by option name, for the named command, or for `run` and `bench` if the name is empty.
const BY_NAME: &[(&str, &str, Running)] = &[
    (
        "run",
        "-sp --special",
        Undone("tokens that stand for no text are not printed"),
    ),
    (
        "run",
        "-i --interactive -if --interactive-first -cnv --conversation",
        Undone("-p is answered once; a chat is tpc run without it, on a terminal"),
    ),
    (
        "run",
        "-mli --multiline-input",
        Undone("each line of a chat is a message"),
    ),
    ("run", "-co --color", Undone("answers have no colours")),
    (
        "run",
        "--display-prompt",
        Undone("the prompt is not printed again"),
    ),
    (
        "run",
        "-st --single-turn",
        Same("-p is answered once anyway"),
    ),
    (
        "run",
        "--no-display-prompt --simple-io",
        Same("the prompt is never printed again"),
    ),
    (
        "run",
        "--prefill-assistant",
        Undone("an answer has no begin that is given"),
    ),
    (
        "run",
        "--no-jinja",
        Undone("the file's template is always read as Jinja"),
    ),
    ("", "--mlock", Undone("weights are not locked in memory")),
    (
        "",
        "--warmup",
        Same("bench runs each test once to warm up, run has no need to"),
    ),
    ("run", "--no-warmup", Same("there is no run to warm up")),
    (
        "",
        "-tb --threads-batch",
        Undone("-t are the threads of prompts, too"),
    ),
    (
        "",
        "-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch -Crb --cpu-range-batch \
         --cpu-strict-batch --prio-batch --poll-batch --numa",
        Undone("threads go where the system puts them: taskset or numactl before tpc binds them"),
    ),
    (
        "bench",
        "--delay",
        Undone("a test follows the one before at once"),
    ),
    (
        "bench",
        "-oe --output-err",
        Undone("results go to standard output alone: redirect that"),
    ),
    ("bench", "--progress", Same("a terminal shows it anyway")),
];

/// Reasons of a plan, each with the reason for running commands.
const REASONS: &[(&str, &str)] = &[
    (table::THREADS, "tpc has no such threads"),
    (table::SAMPLING, "the tokens are random: none is chosen"),
    (table::LENGTH, "this command has no such length"),
    (
        table::LOADING,
        "weights are copied into memory of their own before the first token",
    ),
    (table::SERVER, "there is no server here"),
    (table::CHAT, "the text is as it is without it"),
    (
        table::CACHED,
        "a session is kept by --save and --prompt-cache alone",
    ),
    (
        table::FITTING,
        "a context and layers are as they were asked for",
    ),
    (
        table::DRAFTING,
        "no second model drafts; --spec-type draft-mtp uses the file's own blocks",
    ),
    (table::BESIDE, "nothing is loaded beside the model"),
    (table::POSITIONS, "positions are scaled as the file says"),
];

/// Returns the meaning of an option for `run` and `bench`; `None` if it is the same as for a plan.
pub(super) fn meaning(command: &str, name: &str, why: &'static str) -> Option<Running> {
    if !["run", "bench"].contains(&command) {
        return None;
    }
    let is_it = |(of, names, _): &&(&str, &str, Running)| {
        (of.is_empty() || *of == command) && names.split_whitespace().any(|n| n == name)
    };
    let by_name = BY_NAME.iter().find(is_it).map(|(_, _, meaning)| *meaning);
    by_name.or_else(|| {
        let found = REASONS.iter().find(|(plan, _)| *plan == why);
        found.map(|(_, running)| Same(running))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::words::lookup;

    #[test]
    fn every_name_is_in_the_table() {
        let by_name = BY_NAME.iter().map(|(_, names, _)| *names);
        let off = OFF.iter().map(|(names, _)| *names);
        for name in by_name
            .chain(off)
            .chain([DEPENDENT])
            .flat_map(str::split_whitespace)
        {
            assert!(lookup(name).is_some(), "{name}");
        }
    }

    #[test]
    fn values_that_are_off_are_told_from_others() {
        for (name, value) in [
            ("--mirostat", "0"),
            ("--typical", "1.0"),
            ("--xtc-probability", "0.00"),
            ("--top-nsigma", "-1"),
            ("--rope-scaling", "none"),
            ("--grp-attn-n", "1"),
            ("--dry-base", "1.75"),
        ] {
            assert!(off(name, value).is_some(), "{name} {value}");
        }
        for (name, value) in [
            ("--mirostat", "2"),
            ("--typical", "0.9"),
            ("--rope-scaling", "yarn"),
            ("--grp-attn-n", "4"),
            ("--grammar", "0"),
            ("--mirostat", ""),
        ] {
            assert_eq!(off(name, value), None, "{name} {value}");
        }
    }
}
