//! Checks the behaviour of every entry in the table.

use clap::{CommandFactory, Parser};
use tpc_ggml::llama_cpp::OPTIONS;

use super::*;
use crate::args::PlacementArgs;

#[derive(Debug, Parser)]
#[command(name = "plan")]
struct Plan {
    model: String,
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    placement: PlacementArgs,
}

fn say(line: &[&str]) -> Result<TranslatedLine, Diagnostic> {
    let line = normalise(line.iter().map(OsString::from));
    translate_words(line, &Plan::command())
}

fn text(said: &TranslatedLine) -> Vec<&str> {
    said.arguments.iter().filter_map(|a| a.to_str()).collect()
}

fn values(foreign: &ForeignOption, name: &'static str) -> Vec<&'static str> {
    match foreign.arity() {
        Arity::Switch | Arity::NegatedSwitch => vec![name],
        Arity::One => vec![name, "7"],
        Arity::Two => vec![name, "7", "8"],
        Arity::OnOffAuto => vec![name, "on"],
    }
}

#[test]
fn every_entry_behaves() {
    let command = Plan::command();
    for foreign in FOREIGN_OPTIONS {
        for name in foreign.names() {
            let mut line = vec!["m.gguf"];
            line.extend(values(foreign, name));
            line.extend(["-c", "4096"]);
            let said = say(&line);
            let Effect::Refused(..) = foreign.effect else {
                if matches!(foreign.effect, Effect::RepositoryFile) {
                    let d = said.expect_err(name);
                    assert!(
                        d.help.is_some_and(|h| h.to_string().contains("tpc plan")),
                        "{name}"
                    );
                    continue;
                }
                let said = said.unwrap_or_else(|d| panic!("{name}: {d}"));
                let notes: Vec<&str> = said.notes.iter().map(|d| d.code.id).collect();
                assert!(said.notes.iter().all(|d| d.help.is_some()), "{name}");
                assert!(text(&said).ends_with(&["-c", "4096"]), "{name}: {said:?}");
                match foreign.effect {
                    Effect::Ignored(why) | Effect::Unplanned(why) => {
                        assert_eq!(
                            (text(&said), notes),
                            (vec!["m.gguf", "-c", "4096"], vec!["TPC0420"]),
                            "{name}"
                        );
                        assert!(said.notes[0].to_string().contains(why), "{name}");
                    }
                    Effect::Repository => {
                        let put = ["m.gguf", "hf://7", "-c", "4096"];
                        assert_eq!(text(&said), put, "{name}");
                    }
                    Effect::Model => {
                        assert_eq!(text(&said), ["m.gguf", "7", "-c", "4096"], "{name}");
                    }
                    Effect::Means(to) | Effect::Translated(to, _)
                        if own(&command, to).is_some() =>
                    {
                        let put = text(&said).iter().any(|a| a.starts_with(to));
                        assert!(put, "{name}: {said:?}");
                    }
                    _ => assert_eq!(notes, ["TPC0420"], "{name}"),
                }
                continue;
            };
            let d = said.expect_err(name);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{name}");
        }
    }
}

#[test]
fn every_spelling_has_one_entry() {
    let mut seen = std::collections::BTreeSet::new();
    for name in FOREIGN_OPTIONS.iter().flat_map(ForeignOption::names) {
        assert!(name.starts_with('-') && seen.insert(name), "{name}");
    }
}

#[test]
fn every_option_of_llama_cpp_means_something() {
    let command = Plan::command();
    let known = |n: &str| {
        own(&command, n).is_some()
            || lookup(n).is_some()
            || short::SHORT.iter().any(|(s, _)| *s == n)
    };
    let help = ["-h", "--help", "--version"];
    for name in OPTIONS.iter().flat_map(|o| o.names) {
        assert!(known(name) || help.contains(name), "{name} is in no table");
    }
    // The number of values is equal in both tables.
    for spec in OPTIONS {
        for foreign in spec.names.iter().filter_map(|n| lookup(n)) {
            let count = |a: Arity| match a {
                Arity::Switch | Arity::NegatedSwitch => 0,
                Arity::One => 1,
                Arity::Two => 2,
                Arity::OnOffAuto => 3,
            };
            assert_eq!(
                count(foreign.arity()),
                count(spec.arity),
                "{:?}",
                spec.names
            );
        }
    }
}

#[test]
fn what_others_type() {
    for (line, expected, codes) in [
        (
            &["-m", "a.gguf", "-t", "16", "-c", "8k"][..],
            &["a.gguf", "-c", "8k"][..],
            &["TPC0420"][..],
        ),
        (
            &["a.gguf", "-sm", "graph"],
            &["a.gguf", "--split-mode=tensor"],
            &["TPC0421"],
        ),
        (
            &["a.gguf", "-sm=row"],
            &["a.gguf", "--split-mode=tensor"],
            &["TPC0421"],
        ),
        (
            &["a.gguf", "-sm", "layer"],
            &["a.gguf", "--split-mode=layer"],
            &[],
        ),
        (
            &["a.gguf", "-dev", "CUDA0,CUDA1"],
            &["a.gguf", "--devices=cuda:0,cuda:1"],
            &["TPC0421"],
        ),
        (
            &["a.gguf", "--device", "Vulkan0,Vulkan1"],
            &["a.gguf", "--devices=2"],
            &["TPC0421"],
        ),
        (&["a.gguf", "-np", "-1"], &["a.gguf"], &["TPC0420"]),
        (
            &["a.gguf", "-ngl", "-1", "-fa", "-fit", "off"],
            &["a.gguf", "--n-gpu-layers", "-1", "--flash-attn"],
            &["TPC0420"],
        ),
        (
            &["a.gguf", "-ncffn", "2"],
            &[
                "a.gguf",
                r"--override-tensor=blk\.(0|1)\.ffn_(up|down|gate)\.weight=CPU",
            ],
            &["TPC0421"],
        ),
        (
            &["a.gguf", "-ts", "-1,2"],
            &["a.gguf", "--tensor-split", "-1,2"],
            &[],
        ),
        (
            &["a.gguf", "-ot", "a=CPU", "--", "-t"],
            &["a.gguf", "--override-tensor", "a=CPU", "--", "-t"],
            &[],
        ),
        (&["a.gguf", "-vc4096", "-c4096"], &["a.gguf", "-c4096"], &[]),
    ] {
        let said = say(line);
        if line.contains(&"-vc4096") {
            // A cluster of unknown letters is an error.
            assert!(said.is_err());
            continue;
        }
        let said = said.unwrap_or_else(|d| panic!("{line:?}: {d}"));
        let notes: Vec<&str> = said.notes.iter().map(|d| d.code.id).collect();
        assert_eq!(
            (text(&said).as_slice(), notes.as_slice()),
            (expected, codes),
            "{line:?}"
        );
    }
}

#[test]
fn repositories_are_words() {
    for (line, expected) in [
        ("-hf u/n -hff f.gguf", &["hf://u/n/f.gguf"][..]),
        (
            "-hff f.gguf -hf v/w -c 1 --hf-repo=u/n:Q8_0",
            &["hf://u/n/f.gguf", "-c", "1"],
        ),
        ("-hf u/n:Q4_K_M -c4096", &["hf://u/n:Q4_K_M", "-c4096"]),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = say(&words).expect(line);
        assert_eq!(text(&said), expected, "{line}");
        assert!(said.notes.is_empty(), "{line}");
    }
}

#[test]
fn slips_are_told_the_nearest() {
    for (line, near) in [
        (["a.gguf", "--devises"], "--devices"),
        (["a.gguf", "-nlg"], "-ngl"),
        (["a.gguf", "--thread"], "--threads"),
        (["a.gguf", "--ctxsize"], "--ctx-size"),
        (["a.gguf", "--no-mmapp"], "--no-mmap"),
    ] {
        let d = say(&line).expect_err(near);
        let help = d.help.map(|h| h.to_string()).unwrap_or_default();
        assert!(help.contains(near), "{line:?}: {help}");
    }
}

#[test]
fn the_last_of_two_counts() {
    let said = say(&["m.gguf", "-ngl", "3", "-ngl", "99", "-nkvo", "-nkvo"]).expect("options");
    assert_eq!(
        text(&said),
        ["m.gguf", "--n-gpu-layers", "99", "--no-kv-offload"]
    );
    let notes: Vec<String> = said.notes.iter().map(ToString::to_string).collect();
    assert_eq!(notes, ["`--n-gpu-layers 99` overrides `--n-gpu-layers 3`"]);
    // `tpc plan` compares contexts.
    let said = say(&[
        "m.gguf", "-c", "1", "-c", "2", "-ot", "a=CPU", "-ot", "b=CPU",
    ]);
    let said = said.expect("options");
    assert_eq!((text(&said).len(), said.notes.len()), (9, 0));
}
