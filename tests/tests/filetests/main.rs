//! File tests: `.tpir` texts with a command in their header and expectations on the lines they concern.
//!
//! ```text
//! ;; Prose about the test; as many lines as it needs.
//! ; test verify
//! tpir 1
//! …
//! v3: f32[8] @host = add v1, v2 ; error[TPC0244]: operand 1 from dev0
//! ```
//!
//! | command | the case passes if |
//! |---|---|
//! | `parse` | the text parses |
//! | `print` | the text parses, and what stands below the header is exactly what printing gives |
//! | `parse-error` | parsing gives exactly the expected errors |
//! | `verify` | the text parses, and verifying gives exactly the expected errors |
//! | `place`, `factors`, `shard` | the model's graph, planned with `; options`, gives the text in the section below |
//! | `rewrite`, `lower` | the sharded graph gives the text in the section below |
//! | `prove` | the programs in the section below compute the model, or are refused with the expected error |
//! | `program` | the text of a program gives exactly the expected errors of the parser, or of the verifiers of graphs and programs |
//! | `lint` | planning the graph, or the synthetic `; model`, gives exactly the expected findings |
//!
//! The folder of a file is the name of its command (`parse` also holds `print`).
//!
//! *Sections.* `; ---- placed` (`factors`, `sharded`, `rewritten`, `programs`) begins the exact output of a pass, or
//! the programs of `prove`. `TPC_BLESS=1` rewrites outputs that differ.
//!
//! *Options.* `; options --devices 2 -ngl 1` gives placement options as on the command line.
//!
//! *Expectations.* `; error[CODE]: words` stands at the end of the line on which the error is reported; the words, which
//! may be left out, are part of its message. Several may follow one another. Findings of `lint` are expected as
//! `; warning[CODE]: words` (or `note`, `error`), where the words may be part of the cure; findings about no line stand in
//! the header as `; expect warning[CODE]: words`. `; sharding: split(1: c0)` at the end of a line says how the plan divides
//! the value.
//!
//! Every text that parses is also printed, parsed and compared. Unknown directives, malformed expectations, texts
//! without a command, sections that nothing reads and files of another kind fail.
//!
//! A new command is a variant of [`Command`](command::Command), which the compiler then asks [`run`](run::run) to handle.

mod case;
mod command;
mod expectation;
mod lint;
mod passes;
mod program;
mod run;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tpc_ir::{text, verify};

use case::Case;
use command::Command;

use expectation::Failures;
use run::run;

/// Codes that no text can provoke, and the unit test that does.
const NOT_IN_TEXT: &[(&str, &str)] = &[
    ("TPC0219", "text::tests::overlong_texts_are_refused"),
    (
        "TPC0220",
        "verify::tests::every_dangling_handle_is_reported",
    ),
    ("TPC0221", "verify::tests::a_value_is_not_its_own_operand"),
    ("TPC0222", "verify::tests::definitions_refer_back"),
    (
        "TPC0233",
        "verify::tests::leaves_have_the_size_of_their_class",
    ),
    ("TPC0263", "verify::tests::each_stage_has_its_invariant"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

/// Every file below `dir`, in the order of the names.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder of file tests is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let below = |p: PathBuf| if p.is_dir() { files(&p) } else { vec![p] };
    paths.into_iter().flat_map(below).collect()
}

fn read(path: &Path) -> Result<Case, Failures> {
    if path.extension().is_none_or(|e| e != "tpir") {
        return Err(vec!["1: not a .tpir file".to_owned()]);
    }
    let text = fs::read_to_string(path).map_err(|e| vec![format!("1: {e}")])?;
    Case::read(text)
}

#[test]
fn files_meet_their_expectations() {
    let root = root();
    let paths = files(&root);
    assert!(!paths.is_empty());
    let mut report = String::new();
    for path in &paths {
        let failures = read(path).map_or_else(|f| f, |case| run(&case, Some(path)));
        let name = path.strip_prefix(&root).unwrap_or(path).display();
        for failure in failures {
            writeln!(report, "filetests/{name}:{failure}").expect("a String takes text");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Every command but `print` has a folder of its name, and every file is in the folder of its command.
#[test]
fn folders_are_named_after_commands() {
    let root = root();
    for (name, command) in Command::ALL {
        assert!(
            command == Command::Print || root.join(name).is_dir(),
            "no folder {name}"
        );
    }
    for path in files(&root) {
        let Ok(case) = read(&path) else { continue };
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.and_then(|f| f.to_str()).and_then(Command::from_name);
        let expected = match case.command {
            Command::Print => Command::Parse,
            other => other,
        };
        assert_eq!(folder, Some(expected), "{}", path.display());
    }
}

/// The text form of every op is parsed and printed.
#[test]
fn every_op_has_a_line() {
    let path = root().join("parse/every-op.tpir");
    let text = fs::read_to_string(&path).expect("the file of all ops is there");
    let ops: BTreeSet<&str> = text
        .lines()
        .filter_map(|l| l.split_once(" = ")?.1.split_whitespace().next())
        .collect();
    // Of an op with several spellings, one.
    let spelled = |names: &&&[&str]| !names.iter().any(|n| ops.contains(n));
    let missing: Vec<_> = tpc_ir::Op::NAMES.iter().filter(spelled).collect();
    assert!(missing.is_empty(), "{} has no {missing:?}", path.display());
}

#[test]
fn every_code_is_fired_by_a_file() {
    let cases = files(&root()).into_iter().filter_map(|p| read(&p).ok());
    let fired: BTreeSet<String> = cases.flat_map(|c| c.expected).map(|e| e.code).collect();
    for (code, test) in NOT_IN_TEXT {
        assert!(
            !fired.contains(*code),
            "{code} is in text; {test} is not its only test"
        );
    }
    let codes = [text::CODES, verify::CODES, tpc_ir::program::verify::CODES];
    let codes = codes.into_iter().flatten().map(|code| code.id);
    let elsewhere = |code: &str| NOT_IN_TEXT.iter().any(|(c, _)| *c == code);
    let missing: Vec<&str> = codes
        .filter(|code| !fired.contains(*code) && !elsewhere(code))
        .collect();
    assert!(missing.is_empty(), "no file expects {missing:?}");
}

/// The harness itself fails where it should.
#[test]
fn faulty_files_are_found_out() {
    let graph = "tpir 1\ngraph \"g\"\n";
    let faults = |text: String| Case::read(text).map_or_else(|f| f, |c| run(&c, None));
    let check = |text: String, expected: &str| {
        let failures = faults(text);
        assert!(
            failures.iter().any(|f| f.contains(expected)),
            "{expected}: {failures:?}"
        );
    };
    assert_eq!(faults(format!("; test parse\n{graph}")), Failures::new());
    check(graph.to_owned(), "no command");
    check(format!("; test prase\n{graph}"), "unknown command");
    check(format!("; tset parse\n{graph}"), "unknown directive");
    check(
        format!("; test parse\n; test verify\n{graph}"),
        "a second command",
    );
    check(format!("; test parse\n{graph}; eror[TPC0206]"), "malformed");
    check(
        format!("; test parse\n{graph}; error[TPC9999]"),
        "unknown code",
    );
    check(
        format!("; test parse\n{graph}; error[TPC0206] no colon"),
        "malformed",
    );
    check(
        format!("; test parse\n{graph}; error[TPC0206]"),
        "not reported",
    );
    check(
        format!("; test parse\n{graph}?"),
        "unexpected error[TPC0202]",
    );
    check(
        format!("; test parse\n{graph}?; error[TPC0202]"),
        "does not parse",
    );
    check(format!("; test parse-error\n{graph}"), "the text parses");
    check(
        format!("; test verify\n{graph}"),
        "3: unexpected error[TPC0223]",
    );
    check(
        format!("; test parse-error\n{graph}x; error[TPC0206]: y"),
        "not reported",
    );
    check(format!("; test print\n{graph} \n"), "prints as");
    check(format!("; test print\n{graph}layer 1\n"), "4: prints as");
    check(
        format!("; test parse\n; options -ts 1,1\n{graph}"),
        "takes no options",
    );
    check(
        format!("; test verify\n; model llama:layers=1\n{graph}"),
        "only `lint` takes a model",
    );
    check(
        format!("; test verify\n; expect note[TPC0309]\n{graph}"),
        "findings about no line",
    );
    check(
        format!("; test parse\n{graph}; ---- programs\n"),
        "no sections",
    );
    check(
        format!("; test lower\n{graph}; ---- placed\n"),
        "called `programs`",
    );
    let valid = "v0 \"x\": f32[8] @host = input {name = \"x\"}\noutput \"x\" = v0\n";
    check(
        format!("; test lower\n{graph}{valid}; ---- programs\ntpir 1\n"),
        "the pass gives",
    );
    check(format!("; test lower\n{graph}{valid}"), "no section");
    check(
        "; test lint\n; model llama:layers=no\n".to_owned(),
        "`; model`",
    );
}
