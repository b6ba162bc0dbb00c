//! Lints that fire on unchanged models and captures. Every line of the list is true of its file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use tpc_ggml::capture::read;
use tpc_gguf::GgufFile;
use tpc_ir::text;
use tpc_lint::{Capture, File, graph_of, lint_file, lint_graph, merge};
use tpc_tests::{captures, data, goldens, headers};

fn of_model(path: &Path) -> Vec<tpc_diag::Diagnostic> {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let model = graph_of(&file);
    lint_file(&File {
        file: &file,
        model: model.as_ref(),
    })
}

fn of_graph(path: &Path) -> Vec<tpc_diag::Diagnostic> {
    let text = std::fs::read_to_string(path).expect("the capture can be read");
    let captured = read(&text, "port").unwrap_or_else(|e| panic!("{e}"));
    let printed = text::print(&captured.graph);
    lint_graph(&Capture {
        records: &captured.records,
        captured: &captured,
        printed: &printed,
    })
}

/// The list covers all files; missing files are skipped.
#[test]
fn what_fires_on_files_and_captures_as_they_are() {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let models = goldens().into_iter().chain(headers());
    let all = models.map(|p| (of_model(&p), p));
    let all = all.chain(captures().into_iter().map(|p| (of_graph(&p), p)));
    for (diagnostics, path) in all {
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let mut line = String::new();
        for f in merge(diagnostics) {
            let d = &f.diagnostic;
            let _ = write!(line, " {}:{}×{}", d.code, d.entity, f.count);
        }
        found.insert(name, line);
    }
    let path = data().join("lints.txt");
    if std::env::var_os("TPC_BLESS").is_some_and(|v| v == "1") {
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        for line in kept.lines() {
            let (name, rest) = line.split_once(':').expect("NAME: CODES");
            found
                .entry(name.to_owned())
                .or_insert_with(|| rest.to_owned());
        }
        let firing = found.iter().filter(|(_, line)| !line.is_empty());
        let text: String = firing
            .map(|(name, line)| format!("{name}:{line}\n"))
            .collect();
        std::fs::write(path, text).expect("the list can be written");
        return;
    }
    let expected = std::fs::read_to_string(path).expect("the list is there");
    let expected: BTreeMap<&str, &str> =
        expected.lines().filter_map(|l| l.split_once(':')).collect();
    for (name, line) in &found {
        let known = expected.get(name.as_str()).copied().unwrap_or_default();
        assert_eq!(
            line, known,
            "{name}: rewrite the list with TPC_BLESS=1 if the finding is true"
        );
    }
    assert!(found.len() >= 25, "{} files", found.len());
}
