//! Compares the documentation with the code: every diagnostic code is documented, and generated parts of the book are
//! up to date.

use crate::support::verified;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tpc::catalogue::codes;
use tpc_core::pipeline::{Origin, compile};
use tpc_core::placement::{MachineRequest, SplitMode};
use tpc_core::report::{Commands, Detail, explain, render, values};
use tpc_core::topology::TopologyFile;
use tpc_gguf::GgufFile;
use tpc_ir::{DType, Op, stage, text};
use tpc_lint::plan_report;
use tpc_passes::machine::{Topology, Workload};
use tpc_passes::plan::{PlanRequest, PlannedGraph, plan};
use tpc_passes::{lower::lower, shard::shard};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Collects the Rust files below `dir`, sorted by name, without unit tests.
fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|e| e.expect("a folder that lists can be read").path())
        .collect();
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        if name == "tests" || name == "tests.rs" {
            continue;
        }
        if path.is_dir() {
            sources(&path, out);
        } else if name.ends_with(".rs") {
            out.push(path);
        }
    }
}

fn well_formed(code: &str) -> bool {
    let digits = code.strip_prefix("TPC").unwrap_or_default();
    digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_digit())
}

#[test]
fn codes_are_unique_well_formed_and_documented() {
    let codes = codes();
    for pair in codes.windows(2) {
        assert_ne!(pair[0], pair[1], "documented twice");
    }
    for c in &codes {
        assert!(well_formed(c.id), "`{}` is not TPC and four digits", c.id);
        assert!(!c.title.trim().is_empty(), "{} has no title", c.id);
        assert!(
            !c.title.contains('\n'),
            "the title of {} has several lines",
            c.id
        );
        assert!(
            c.doc.len() + c.example.len() + c.cure.len() > c.title.len(),
            "{} is documented by less than its title",
            c.id
        );
    }
}

fn product() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for name in [
        "ir",
        "passes",
        "runtime",
        "runtime/cpu",
        "runtime/cuda",
        "runtime/cuda-emulator",
    ] {
        sources(&repository().join(name).join("src"), &mut files);
    }
    sources(&repository().join("compiler"), &mut files);
    let text = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
        text[..end].to_owned()
    };
    let texts = files.into_iter().map(|p| (p.clone(), text(&p)));
    texts.collect()
}

/// A code's id is a string only in its declaration.
#[test]
fn codes_are_written_once() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (_, text) in product() {
        let code = text.lines().filter(|l| !l.trim_start().starts_with("//"));
        let code: String = code.collect();
        for literal in code.split('"').filter(|l| well_formed(l)) {
            *seen.entry(literal.to_owned()).or_default() += 1;
        }
    }
    let mut wrong = Vec::new();
    for code in codes() {
        match seen.remove(code.id).unwrap_or(0) {
            1 => {}
            n => wrong.push(format!("{code} is written {n} times")),
        }
    }
    wrong.extend(seen.keys().map(|id| format!("{id} is declared nowhere")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every declared code is reported somewhere.
#[test]
fn codes_are_used() {
    let product = product();
    let mut declared = 0;
    for (path, text) in &product {
        let table = text
            .split_once("codes! {")
            .filter(|_| path.ends_with("codes.rs"));
        let Some((_, table)) = table else { continue };
        for (name, _) in table.lines().filter_map(|l| l.split_once(" = ")) {
            let name = name.trim();
            // An example may contain ` = `, too.
            let constant = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            if !name.chars().all(constant) {
                continue;
            }
            // A code is used by its path, or in a table of rules.
            let spelled = [format!("codes::{name}"), format!(" = {name}, \"")];
            let used = product
                .iter()
                .any(|(p, t)| p != path && spelled.iter().any(|s| t.contains(s)));
            let of_class = path.ends_with("ggml/src/meta/codes.rs");
            assert!(used || of_class, "{}: {name} is not used", path.display());
            declared += 1;
        }
    }
    let lints = tpc_lint::lints().count();
    assert_eq!(declared + lints, codes().len(), "tables and lints are all");
}

/// The passes turn the sharding page's first graph into its second, for four devices.
#[test]
fn the_worked_example_of_the_book_is_what_the_passes_give() {
    const FENCE: &str = "```tpir\n";
    let path = "docs/src/sharding.md";
    let page = read(path);
    let parts: Vec<&str> = page.split(FENCE).collect();
    let [before, model, sharded] = parts.as_slice() else {
        panic!("{path} has {} graphs, not two", parts.len() - 1);
    };
    let body = |part: &str| {
        part.split_once("```")
            .expect("a fence is closed")
            .0
            .to_owned()
    };
    let graph = text::parse(&body(model))
        .unwrap_or_else(|e| panic!("{path}: {}", e[0]))
        .graph;
    let graph = verified(graph);
    let request = PlanRequest::new(
        Topology::default(),
        Workload::new(4096, 4096, 512, 1),
        (0..4).map(|i| format!("dev{i}")).collect(),
    );
    let PlannedGraph {
        graph,
        factors,
        analysis,
        choice,
        ..
    } = plan(&graph, &request).unwrap_or_else(|e| panic!("{e}"));
    let found = shard(&graph, &factors, &analysis, &choice).expect("the choice is sound");
    let found = verified::<stage::Sharded>(found);
    verified::<stage::Programs>(lower(&found).expect("a verified graph has programs"));
    let found = found.to_string();
    if std::env::var_os("TPC_BLESS").is_some_and(|v| v == "1") {
        let rest = sharded.split_once("```").expect("a fence is closed").1;
        let page = [before, FENCE, model, FENCE, &found, "```", rest].concat();
        fs::write(repository().join(path), page).expect("the book can be written");
        return;
    }
    assert_eq!(body(sharded), found, "{path} shows another sharded graph");
}

/// A document that shows the output of `tpc plan` in the first fence after the command.
struct ShownPlan {
    document: &'static str,
    model: &'static str,
    devices: &'static str,
    /// Additional options as typed.
    options: &'static str,
    detail: Detail,
    /// The tensors of `--why`; the fence then holds only the explanation.
    why: Option<&'static str>,
}

const SHOWN_PLANS: [ShownPlan; 4] = [
    ShownPlan {
        document: "README.md",
        model: "tests/data/headers/llama-3.1-8b-instruct-q4_k_m.header.gguf",
        devices: "2x3090",
        options: "",
        detail: Detail::Brief,
        why: None,
    },
    ShownPlan {
        document: "docs/src/user-guide.md",
        model: "tests/data/headers/phi-4-q4_k_m.header.gguf",
        devices: "3x3060",
        options: "--ctx-size 8192",
        detail: Detail::Full,
        why: None,
    },
    ShownPlan {
        document: "docs/src/user-guide.md",
        model: "tests/data/headers/qwen3-0.6b-q8_0.header.gguf",
        devices: "2",
        options: "--ctx-size 4096",
        detail: Detail::Brief,
        why: Some("attn_k.weight$"),
    },
    ShownPlan {
        document: "docs/src/user-guide.md",
        model: "tests/data/headers/qwen3-30b-a3b-q4_k_m.header.gguf",
        devices: "2",
        options: "--ctx-size 8192 -sm tensor --cpu-moe",
        detail: Detail::Brief,
        why: None,
    },
];

/// The row of an answer with the prediction for tpc's kernels, which the program adds to a report. A test of the program
/// compares it.
const PREDICTION: &str = "model   ";
/// The start of its tables, which end a report.
const PREDICTED_KERNELS: &str = "\n  tpc's kernels on";
/// The start of the row before it.
const BEFORE_PREDICTION: &str = "bits    ";

/// Returns the rows of an answer without the prediction, and the lines of the prediction.
fn without_prediction(shown: &str) -> (String, String) {
    let (mut kept, mut row, mut in_row) = (String::new(), String::new(), false);
    for line in shown.split_inclusive('\n') {
        in_row = line.starts_with(PREDICTION) || in_row && line.starts_with("        ");
        match in_row {
            true => row.push_str(line),
            false => kept.push_str(line),
        }
    }
    (kept, row)
}

/// Adds the lines of a prediction to an answer.
fn with_prediction(answer: &str, row: &str) -> String {
    let mut out = String::new();
    let mut at_bits = false;
    for line in answer.split_inclusive('\n') {
        if at_bits && !line.starts_with("        ") {
            out.push_str(row);
        }
        at_bits = line.starts_with(BEFORE_PREDICTION) || at_bits && line.starts_with("        ");
        out.push_str(line);
    }
    out
}

#[test]
fn the_plans_shown_are_up_to_date() {
    for shown in SHOWN_PLANS {
        let ShownPlan {
            document,
            model,
            detail,
            ..
        } = shown;
        let options = format!("--devices {} {}", shown.devices, shown.options);
        let mut command = format!(" plan {model} {}", options.trim());
        if detail == Detail::Full {
            command.push_str(" -v");
        }
        match shown.why {
            None => command.push_str("\n\n"),
            Some(why) => {
                command.push_str(&format!(" --why '{why}'\n\nIt adds to the tables:\n\n"));
            }
        }
        command.push_str("```text\n");
        let text = read(document);
        let (before, rest) = text
            .split_once(&command)
            .unwrap_or_else(|| panic!("{document} does not show `{}`", command.trim()));
        let (found, after) = rest.split_once("```").expect("a fence is closed");
        let (found, tables) = found.split_at(found.find(PREDICTED_KERNELS).unwrap_or(found.len()));
        let (found, predicted) = without_prediction(found);
        let file = GgufFile::open(repository().join(model)).unwrap_or_else(|e| panic!("{e}"));
        let words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        let placement = tpc::placement(&words, DType::F16, SplitMode::Auto);
        let placement = placement.expect("the options are known");
        let compiled = compile(&file, &placement).expect("the model is planned");
        let mut report = plan_report(model, &placement, &compiled);
        report.commands = Commands::new(model, &words[..2], &placement, &compiled);
        if !report.bits.same {
            report.bits.kept_at = Origin::File(&file).ordered_share(&placement, &compiled);
        }
        if !file.has_data() {
            report.commands = report.commands.of_header();
        }
        let plain = render(&report, 100, detail);
        let mut expected = plain.clone();
        if let Some(why) = shown.why {
            let graph = &compiled.planned.graph;
            let asked = values(graph, &compiled.model.graph, &[], why);
            let asked = asked.expect("the model has such tensors");
            report.why = explain(&compiled, &asked, &report.tensors);
            let rendered = render(&report, 100, detail);
            let added = rendered
                .strip_prefix(&plain)
                .expect("it adds to the tables");
            expected = added.trim_start().to_owned();
        }
        if std::env::var_os("TPC_BLESS").is_some_and(|v| v == "1") {
            let expected = with_prediction(&expected, &predicted) + tables;
            let text = [before, &command, &expected, "```", after].concat();
            fs::write(repository().join(document), text).expect("documents can be written");
        } else {
            assert_eq!(
                found, expected,
                "rewrite {document} with TPC_BLESS=1 cargo test -p tpc-tests"
            );
        }
    }
}

#[test]
fn the_topology_of_the_book_parses() {
    let machine = |path: &str| {
        let file = TopologyFile::from_ron(&read(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        let request = MachineRequest {
            file: Some(&file),
            ..MachineRequest::default()
        };
        request.machine().expect("a machine").topology
    };
    for path in ["docs/examples/topology.ron", "docs/examples/cards.ron"] {
        let topology = machine(path);
        assert!(
            topology.devices.len() > 1 && !topology.links.is_empty(),
            "{path} shows devices and links"
        );
    }
    assert_eq!(
        machine("docs/examples/default-topology.ron"),
        Topology::default(),
        "the book states another default profile"
    );
}

#[test]
fn the_book_names_every_op_and_architecture() {
    let ops = read("docs/src/ir.md");
    for name in Op::NAMES.iter().flat_map(|names| names.iter()) {
        assert!(
            ops.contains(&format!("`{name}`")),
            "docs/src/ir.md does not name `{name}`"
        );
    }
    let guide = read("docs/src/user-guide.md");
    for arch in tpc_models::ARCHS {
        assert!(
            guide.contains(&format!("`{}`", arch.name)),
            "docs/src/user-guide.md does not name `{}`",
            arch.name
        );
    }
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let summary = read("docs/src/SUMMARY.md");
    let linked: BTreeSet<&str> = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(page, _)| page))
        .collect();
    let pages: BTreeSet<String> = fs::read_dir(repository().join("docs/src"))
        .expect("the book is there")
        .filter_map(|e| {
            e.expect("a folder that lists can be read")
                .file_name()
                .into_string()
                .ok()
        })
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect();
    assert_eq!(
        pages.iter().map(String::as_str).collect::<BTreeSet<_>>(),
        linked
    );
}

#[test]
fn every_file_that_the_book_names_is_there() {
    const FOLDERS: [&str; 6] = ["ir/", "passes/", "compiler/", "runtime/", "tests/", "docs/"];
    // The example of a file to add.
    const TO_ADD: &str = "compiler/models/src/families/gemma1.rs";
    let mut pages: Vec<String> = fs::read_dir(repository().join("docs/src"))
        .expect("the book is there")
        .filter_map(|e| {
            e.expect("a folder that lists can be read")
                .file_name()
                .into_string()
                .ok()
        })
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/src/{name}"))
        .collect();
    pages.push("README.md".to_owned());
    let mut missing = Vec::new();
    for page in pages {
        for word in read(&page).split(|c: char| c.is_whitespace() || "`()[],:;".contains(c)) {
            let named = FOLDERS.iter().any(|f| word.starts_with(f)) && word != TO_ADD;
            if named && !repository().join(word.trim_end_matches('.')).exists() {
                missing.push(format!("{page}: {word}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
