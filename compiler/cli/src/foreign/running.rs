//! Other programs' options with different meanings for running and planning.

use super::table;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Running {
    /// No effect: tpc already behaves like this, or the value switches a feature off.
    Same(&'static str),
    Undone(&'static str),
}

use Running::{Same, Undone};

type Off = (&'static str, fn(f64) -> bool);

/// Sampler and position options with the values that switch them off.
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

/// Options that depend on another option; tpc refuses that option.
const DEPENDENT: &str = "--mirostat-lr --mirostat-ent --dynatemp-exp --dry-base --dry-allowed-length --dry-penalty-last-n \
     --dry-sequence-breaker --xtc-threshold --adaptive-decay -gaw --grp-attn-w";

const OFF_ANYWAY: &str = "the value switches the feature off, as in tpc";
const FILES_SCALING: &str = "the file alone decides how positions are scaled";

/// Returns the reason why an option has no effect at this value, if so.
pub(super) fn off(name: &str, value: &str) -> Option<&'static str> {
    let is_in = |names: &str| names.split_whitespace().any(|n| n == name);
    if name == "--rope-scaling" && value == "none" {
        return Some(FILES_SCALING);
    }
    if is_in(DEPENDENT) {
        return Some("the option depends on another one that tpc does not support");
    }
    let number: f64 = value.trim().parse().ok()?;
    let found = OFF
        .iter()
        .find(|(names, is_off)| is_in(names) && is_off(number));
    found.map(|_| OFF_ANYWAY)
}

/// Meanings by command and option name. An empty command means every command that runs a model.
const BY_NAME: &[(&str, &str, Running)] = &[
    (
        "run",
        "-sp --special",
        Undone("special tokens are not printed"),
    ),
    (
        "run",
        "-i --interactive -if --interactive-first -cnv --conversation",
        Undone(
            "-p asks for one answer; for a chat, leave out -p on a terminal, or pipe lines with --chat-lines",
        ),
    ),
    (
        "run",
        "-mli --multiline-input",
        Undone("each line of a chat is a message"),
    ),
    (
        "run",
        "-co --color",
        Undone("coloured answers are not supported"),
    ),
    (
        "run",
        "--display-prompt",
        Undone("printing the prompt is not supported"),
    ),
    (
        "run",
        "-st --single-turn",
        Same("-p always asks for one answer"),
    ),
    (
        "run",
        "--no-display-prompt --simple-io",
        Same("the prompt is never printed"),
    ),
    (
        "run",
        "--prefill-assistant",
        Undone("a prefilled answer is not supported"),
    ),
    (
        "run",
        "--no-jinja",
        Undone("the chat template is always read as Jinja"),
    ),
    ("", "--mlock", Undone("weights are not locked in memory")),
    (
        "",
        "--warmup",
        Same("bench always warms up; run does not need a warm-up"),
    ),
    ("run", "--no-warmup", Same("run never warms up")),
    (
        "",
        "-tb --threads-batch",
        Undone("-t also sets the threads for prompts"),
    ),
    (
        "",
        "-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch -Crb --cpu-range-batch \
         --cpu-strict-batch --prio-batch --poll-batch --numa",
        Undone(
            "the system places threads; `--devices numa` pins them to the NUMA nodes, and taskset binds tpc to cores",
        ),
    ),
    ("bench", "--delay", Undone("tests run without a delay")),
    (
        "bench",
        "-oe --output-err",
        Undone("results go only to standard output, which you can redirect"),
    ),
    (
        "bench",
        "--progress",
        Same("progress is always shown on a terminal"),
    ),
];

/// The reason for plans, with the reason for commands that run a model.
const REASONS: &[(&str, &str)] = &[
    (table::THREADS, "tpc does not use such threads"),
    (table::SAMPLING, "this command does not sample tokens"),
    (table::LENGTH, "this command does not use the length"),
    (
        table::LOADING,
        "tpc copies all weights before the first token",
    ),
    (table::SERVER, "tpc does not run a server"),
    (table::CHAT, "the option does not change the text"),
    (
        table::CACHED,
        "only --save and --prompt-cache keep a session",
    ),
    (
        table::FITTING,
        "tpc keeps the context and the layers of the options",
    ),
    (
        table::DRAFTING,
        "only `tpc run` drafts; a draft model runs on the model's devices",
    ),
    (table::BESIDE, "only the model is loaded"),
    (
        table::POSITIONS,
        "the file decides how positions are scaled",
    ),
];

/// Returns the meaning for commands that run a model, or `None` if the plan's meaning applies.
pub(super) fn meaning(command: &str, name: &str, why: &'static str) -> Option<Running> {
    if !["run", "bench", "perplexity"].contains(&command) {
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
