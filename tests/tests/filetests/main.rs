//! Runs the file tests in `tests/filetests`; [`tpc_filetest`] describes their format.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tpc::filetest::FRONTEND;
use tpc_filetest::{Case, Command, Failures, check, read};
use tpc_ir::{text, verify};

/// Codes that no text can cause, each with its unit test.
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

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the folder of file tests is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let below = |p: PathBuf| if p.is_dir() { files(&p) } else { vec![p] };
    paths.into_iter().flat_map(below).collect()
}

#[test]
fn files_meet_their_expectations() {
    let root = root();
    let paths = files(&root);
    assert!(!paths.is_empty());
    let mut report = String::new();
    let bless = std::env::var_os("TPC_BLESS").is_some();
    for path in &paths {
        let failures = check(path, &FRONTEND, bless);
        let name = path.strip_prefix(&root).unwrap_or(path).display();
        for failure in failures {
            writeln!(report, "filetests/{name}:{failure}").expect("a String takes text");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

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
        let Ok(case) = read(&path, &FRONTEND) else {
            continue;
        };
        let folder = path.parent().and_then(Path::file_name);
        let folder = folder.and_then(|f| f.to_str()).and_then(Command::from_name);
        let expected = match case.command() {
            Command::Print => Command::Parse,
            other => other,
        };
        assert_eq!(folder, Some(expected), "{}", path.display());
    }
}

#[test]
fn every_op_has_a_line() {
    let path = root().join("parse/every-op.tpir");
    let text = fs::read_to_string(&path).expect("the file of all ops is there");
    let ops: BTreeSet<&str> = text
        .lines()
        .filter_map(|l| l.split_once(" = ")?.1.split_whitespace().next())
        .collect();
    let spelled = |names: &&&[&str]| !names.iter().any(|n| ops.contains(n));
    let missing: Vec<_> = tpc_ir::Op::NAMES.iter().filter(spelled).collect();
    assert!(missing.is_empty(), "{} has no {missing:?}", path.display());
}

#[test]
fn every_code_is_fired_by_a_file() {
    let cases = files(&root())
        .into_iter()
        .filter_map(|p| read(&p, &FRONTEND).ok());
    let fired: BTreeSet<String> = cases.flat_map(|c| c.codes()).collect();
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

#[test]
fn faulty_files_are_found_out() {
    let graph = "tpir 1\ngraph \"g\"\n";
    let read = |text: String| Case::read(text, &FRONTEND);
    let faults = |text: String| read(text).map_or_else(|f| f, |c| c.run(&FRONTEND, None));
    let finds = |text: String, expected: &str| {
        let failures = faults(text);
        assert!(
            failures.iter().any(|f| f.contains(expected)),
            "{expected}: {failures:?}"
        );
    };
    assert_eq!(faults(format!("; test parse\n{graph}")), Failures::new());
    finds(graph.to_owned(), "no command");
    finds(format!("; test prase\n{graph}"), "unknown command");
    finds(format!("; tset parse\n{graph}"), "unknown directive");
    finds(
        format!("; test parse\n; test verify\n{graph}"),
        "a second command",
    );
    finds(format!("; test parse\n{graph}; eror[TPC0206]"), "malformed");
    finds(
        format!("; test parse\n{graph}; error[TPC9999]"),
        "unknown code",
    );
    finds(
        format!("; test parse\n{graph}; error[TPC0206] no colon"),
        "malformed",
    );
    finds(
        format!("; test parse\n{graph}; error[TPC0206]"),
        "not reported",
    );
    finds(
        format!("; test parse\n{graph}?"),
        "unexpected error[TPC0202]",
    );
    finds(
        format!("; test parse\n{graph}?; error[TPC0202]"),
        "does not parse",
    );
    finds(format!("; test parse-error\n{graph}"), "the text parses");
    finds(
        format!("; test verify\n{graph}"),
        "3: unexpected error[TPC0223]",
    );
    finds(
        format!("; test parse-error\n{graph}x; error[TPC0206]: y"),
        "not reported",
    );
    finds(format!("; test print\n{graph} \n"), "prints as");
    finds(format!("; test print\n{graph}layer 1\n"), "4: prints as");
    finds(
        format!("; test parse\n; options -ts 1,1\n{graph}"),
        "takes no options",
    );
    finds(
        format!("; test verify\n; model llama:layers=1\n{graph}"),
        "only `lint` takes a model",
    );
    finds(
        format!("; test verify\n; expect note[TPC0309]\n{graph}"),
        "findings without a line",
    );
    finds(
        format!("; test parse\n{graph}; ---- programs\n"),
        "no sections",
    );
    finds(
        format!("; test lower\n{graph}; ---- placed\n"),
        "called `programs`",
    );
    finds(
        format!("; test lower\n; target cpu\n{graph}"),
        "takes no target",
    );
    finds(
        format!("; test cover\n; shape n_tokens=4\n{graph}"),
        "takes no shapes",
    );
    let valid = "v0 \"x\": f32[8] @host = input {name = \"x\"}\noutput \"x\" = v0\n";
    finds(
        format!("; test lower\n{graph}{valid}; ---- programs\ntpir 1\n"),
        "the pass gives",
    );
    finds(format!("; test lower\n{graph}{valid}"), "no section");
    finds(
        format!("; test layout\n; target gpu\n{graph}{valid}"),
        "unknown target `gpu`",
    );
    finds(
        format!("; test buffers\n; shape n_tokens\n{graph}{valid}"),
        "`n_tokens` is not SYMBOL=SIZE",
    );
    finds(
        "; test lint\n; model llama:layers=no\n".to_owned(),
        "`; model`",
    );
}
