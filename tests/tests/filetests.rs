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
//! | command | what is tested |
//! |---|---|
//! | `parse` | the text parses |
//! | `print` | the text parses, and what stands below the header is exactly what printing gives |
//! | `parse-error` | parsing gives exactly the expected errors |
//! | `verify` | the text parses, and verifying gives exactly the expected errors |
//! | `plan N` | the text parses and is planned on N devices with exactly the expected findings about values |
//!
//! Every text that parses is also printed, parsed and compared. An expectation `; error[CODE]: words` stands at the end of
//! the line on which the error is reported; the words, which may be left out, are part of its message. Several may
//! follow one another. A plan's findings are expected as `; warning[CODE]: words` (or `note`), where the words may be part
//! of the cure; and `; sharding: split(1: c0)` at the end of a line says how the plan divides the value. Unknown commands, malformed expectations, texts without a command and files of another kind fail.
//!
//! A new command is a variant of [`Command`], which the compiler then asks [`Case::run`] to handle.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tpc_core::pipeline::compile_capture;
use tpc_core::placement::{Placement, parse_devices};
use tpc_ggml::capture::Captured;
use tpc_ir::text::{self, Entity, Parsed};
use tpc_ir::{Value, ValueData, verify};

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
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Parse,
    Print,
    ParseError,
    Verify,
    Plan { devices: usize },
}

impl Command {
    fn from_name(name: &str) -> Option<Command> {
        match name {
            "parse" => Some(Command::Parse),
            "print" => Some(Command::Print),
            "parse-error" => Some(Command::ParseError),
            "verify" => Some(Command::Verify),
            _ => {
                let devices = name.strip_prefix("plan ")?.parse().ok()?;
                Some(Command::Plan { devices })
            }
        }
    }
}

/// An error that a file expects, or that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reported {
    line: usize,
    code: String,
    message: String,
}

#[derive(Debug)]
struct Case {
    text: String,
    /// Where the first line below the header begins.
    body: usize,
    command: Command,
    expected: Vec<Reported>,
    /// Lines with the shardings that a plan gives their values.
    shardings: Vec<(usize, String)>,
}

type Failures = Vec<String>;

impl Case {
    fn read(text: String) -> Result<Case, Failures> {
        let mut failures = Vec::new();
        let mut command = None;
        let (mut expected, mut shardings) = (Vec::new(), Vec::new());
        let mut body = None;
        let mut at = 0;
        for (i, line) in text.split_inclusive('\n').enumerate() {
            let (number, start) = (i + 1, at);
            at += line.len();
            let line = line.trim();
            if body.is_none() && (line.is_empty() || line.starts_with(";;")) {
                continue;
            }
            if body.is_none() && line.starts_with(';') {
                let name = line.strip_prefix("; test ").map(str::trim);
                match name.and_then(Command::from_name) {
                    Some(c) if command.is_none() => command = Some(c),
                    Some(_) => failures.push(format!("{number}: a second command")),
                    None => failures.push(format!("{number}: unknown directive `{line}`")),
                }
                continue;
            }
            body = body.or(Some(start));
            let (line, sharding) = match line.split_once("; sharding: ") {
                Some((line, sharding)) => (line, Some(sharding)),
                None => (line, None),
            };
            shardings.extend(sharding.map(|s| (number, s.to_owned())));
            match expectations(number, line) {
                Ok(e) => expected.extend(e),
                Err(e) => failures.push(e),
            }
        }
        if let (Some(&(number, _)), false) = (
            shardings.first(),
            matches!(command, Some(Command::Plan { .. })),
        ) {
            failures.push(format!("{number}: nothing is planned"));
        }
        if command.is_none() {
            failures.push("1: no command: the header lacks `; test …`".to_owned());
        }
        match command {
            Some(command) if failures.is_empty() => Ok(Case {
                body: body.unwrap_or(text.len()),
                text,
                command,
                expected,
                shardings,
            }),
            _ => Err(failures),
        }
    }

    fn run(&self) -> Failures {
        let parsed = text::parse(&self.text);
        let mut failures = Failures::new();
        let reported = match (&parsed, self.command) {
            (Err(errors), _) => errors
                .iter()
                .map(|e| self.reported(e.span, e.code(), e.to_string()))
                .collect(),
            (Ok(p), Command::Verify) => self.verify(p),
            (Ok(p), Command::Plan { devices }) => match self.plan(p, devices) {
                Ok((reported, wrong)) => {
                    failures.extend(wrong);
                    reported
                }
                Err(e) => {
                    failures.push(e);
                    Vec::new()
                }
            },
            (Ok(_), Command::Parse | Command::Print | Command::ParseError) => Vec::new(),
        };
        failures.extend(unmet(&self.expected, &reported));
        match (parsed, self.command) {
            (Ok(p), command) => {
                failures.extend(self.round_trip(&p, command));
                if command == Command::ParseError {
                    failures.push("1: the text parses".to_owned());
                }
            }
            (Err(_), Command::ParseError) => {}
            (Err(_), Command::Parse | Command::Print | Command::Verify | Command::Plan { .. }) => {
                failures.push("1: the text does not parse".to_owned());
            }
        }
        failures
    }

    fn reported(&self, span: text::Span, code: &str, message: String) -> Reported {
        Reported {
            line: span.line(&self.text),
            code: code.to_owned(),
            message,
        }
    }

    fn verify(&self, parsed: &Parsed) -> Vec<Reported> {
        let errors = verify::verify(&parsed.graph).err().unwrap_or_default();
        let reported = errors.iter().map(|e| {
            let span = parsed.spans.get(e.entity).unwrap_or_default();
            self.reported(span, e.code(), e.to_string())
        });
        reported.collect()
    }

    /// The findings about values, and the lines whose shardings are other than expected.
    fn plan(&self, parsed: &Parsed, devices: usize) -> Result<(Vec<Reported>, Failures), String> {
        let placement = Placement::on(parse_devices(&devices.to_string()).map_err(|d| d.message)?);
        let captured = Captured {
            graph: parsed.graph.clone(),
            batch: Vec::new(),
            n_layer: 1,
            lines: Vec::new(),
            notes: Vec::new(),
            records: Vec::new(),
        };
        let compiled = compile_capture(&captured, &placement)
            .map_err(|d| format!("1: no plan: {}: {}", d[0].code, d[0]))?;
        let line_of = |name: &str| {
            let named = |&(_, v): &(Value, &ValueData)| !name.is_empty() && v.name == name;
            let (v, _) = parsed.graph.values().find(named)?;
            Some(parsed.spans.get(Entity::Value(v))?.line(&self.text))
        };
        let found = tpc_lint::plan_report("", &placement, &compiled).diagnostics;
        let reported = found.iter().filter_map(|d| {
            let help = d.help.as_deref().unwrap_or_default();
            Some(Reported {
                line: line_of(&d.entity)?,
                code: d.code.to_owned(),
                message: format!("{} {help}", d.message),
            })
        });
        // What a line of the text defines keeps its name; its copies and sums are transfers.
        let printed = text::print(&compiled.sharded);
        let mut of_line: BTreeMap<usize, String> = BTreeMap::new();
        for (v, data) in compiled.sharded.values() {
            let span = printed.spans.get(Entity::Value(v)).unwrap_or_default();
            let place = printed.text[span.range()].rsplit_once('@');
            let sharding = place.and_then(|(_, p)| p.split_once(' '));
            if let (Some(line), false) = (
                line_of(&data.name),
                compiled.sharded.def_op(v).is_transfer(),
            ) {
                of_line.insert(line, sharding.map_or("", |(_, s)| s).to_owned());
            }
        }
        let wrong = self.shardings.iter().filter_map(|(line, expected)| {
            let found = of_line.get(line).map_or("nothing", String::as_str);
            (found != expected).then(|| format!("{line}: divided as `{found}`"))
        });
        Ok((reported.collect(), wrong.collect()))
    }

    fn round_trip(&self, parsed: &Parsed, command: Command) -> Failures {
        let mut failures = Vec::new();
        let printed = text::print(&parsed.graph);
        match text::parse(&printed.text) {
            Err(e) => failures.push(format!("1: printed text does not parse: {}", e[0])),
            Ok(again) => {
                // A graph with a NaN in it is not equal to itself either.
                let equal = again.graph == parsed.graph || parsed.graph != parsed.graph.clone();
                if !equal || text::print(&again.graph) != printed || again.spans != printed.spans {
                    failures.push("1: another graph after printing and parsing".to_owned());
                }
            }
        }
        let body = &self.text[self.body..];
        if command == Command::Print && body != printed.text {
            let wrong = body.lines().zip(printed.text.lines());
            let wrong = wrong.take_while(|(a, b)| a == b).count();
            let line = text::Span::new(self.body, self.body).line(&self.text) + wrong;
            let prints = printed.text.lines().nth(wrong).unwrap_or("nothing");
            failures.push(format!("{line}: prints as `{prints}`"));
        }
        failures
    }
}

/// How an expectation begins.
const SEVERITIES: [&str; 3] = ["; error[", "; warning[", "; note["];

/// The expectations at the end of a line.
fn expectations(number: usize, line: &str) -> Result<Vec<Reported>, String> {
    let mut starts: Vec<(usize, usize)> = SEVERITIES
        .iter()
        .flat_map(|s| line.match_indices(s).map(|(at, s)| (at, at + s.len())))
        .collect();
    starts.sort_unstable();
    let statement = starts.first().map_or(line, |&(at, _)| &line[..at]);
    if statement.contains("[TPC") || statement.contains("; test ") {
        return Err(format!("{number}: malformed expectation or directive"));
    }
    let ends = starts.iter().skip(1).map(|&(at, _)| at).chain([line.len()]);
    let pieces = starts
        .iter()
        .zip(ends)
        .map(|(&(_, from), to)| &line[from..to]);
    pieces
        .map(|piece| {
            let (code, rest) = piece.split_once(']').unwrap_or((piece, ""));
            if !tpc::codes::codes().iter().any(|doc| doc.code == code) {
                return Err(format!("{number}: unknown code `{code}`"));
            }
            let message = match rest.trim() {
                "" => "",
                rest => rest
                    .strip_prefix(": ")
                    .ok_or_else(|| format!("{number}: malformed expectation `{rest}`"))?,
            };
            Ok(Reported {
                line: number,
                code: code.to_owned(),
                message: message.to_owned(),
            })
        })
        .collect()
}

/// What was expected and not reported, or the other way round.
fn unmet(expected: &[Reported], reported: &[Reported]) -> Failures {
    let mut left: Vec<&Reported> = reported.iter().collect();
    let mut failures = Vec::new();
    for e in expected {
        let fits =
            |r: &&Reported| r.line == e.line && r.code == e.code && r.message.contains(&e.message);
        match left.iter().position(fits) {
            Some(i) => {
                left.remove(i);
            }
            None => failures.push(format!(
                "{}: not reported: error[{}]: {}",
                e.line, e.code, e.message
            )),
        }
    }
    let unexpected = left
        .iter()
        .map(|r| format!("{}: unexpected error[{}]: {}", r.line, r.code, r.message));
    failures.extend(unexpected);
    failures
}

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
        let failures = read(path).map_or_else(|f| f, |case| case.run());
        let name = path.strip_prefix(&root).unwrap_or(path).display();
        for failure in failures {
            writeln!(report, "filetests/{name}:{failure}").expect("a String takes text");
        }
    }
    assert!(report.is_empty(), "\n{report}");
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
    let codes = text::CODES.iter().chain(verify::CODES).map(|doc| doc.code);
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
    let run = |text: String| Case::read(text).map_or_else(|f| f, |c| c.run());
    let check = |text: String, expected: &str| {
        let failures = run(text);
        assert!(
            failures.iter().any(|f| f.contains(expected)),
            "{expected}: {failures:?}"
        );
    };
    assert_eq!(run(format!("; test parse\n{graph}")), Failures::new());
    check(graph.to_owned(), "no command");
    check(format!("; test prase\n{graph}"), "unknown directive");
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
}
