//! Compares predicted with observed verdicts on captured graphs.

use std::collections::BTreeMap;

use tpc_ggml::capture::{self, Record};
use tpc_ggml::meta::{self, FaultKind, Setup, Verdict};
use tpc_ir::DType;

fn observed() -> BTreeMap<String, BTreeMap<String, String>> {
    let path = tpc_tests::data().join("ggml-meta/verdicts.md");
    let text = std::fs::read_to_string(path).expect("the table");
    let cells = |l: &str| -> Vec<String> {
        let inner = l.trim().trim_matches('|');
        inner.split('|').map(|c| c.trim().to_owned()).collect()
    };
    let mut rows = text.lines().filter(|l| l.starts_with('|')).map(cells);
    let head = rows.next().expect("a head");
    let rows = rows.skip(1);
    rows.map(|r| (r[0].clone(), head.iter().cloned().zip(r).skip(1).collect()))
        .collect()
}

fn setup(column: &str, name: &str, records: &[Record]) -> Setup {
    let mut s = Setup::new(if column == "tp3" { 3 } else { 2 });
    // Captures are named after architectures and kinds of test models.
    let architecture = name.rsplit_once('-').map_or(name, |(a, _)| a);
    s.architecture = Some(architecture.to_owned());
    let types = match column {
        "kvq8" => Some((DType::Q8_0, DType::Q8_0)),
        "q8/q4" => Some((DType::Q8_0, DType::Q4_0)),
        "iq4nl" => Some((DType::Iq4Nl, DType::Iq4Nl)),
        _ => None,
    };
    s.cache_type_k = types.map(|t| t.0);
    s.cache_type_v = types.map(|t| t.1);
    s.caches_on_host = column == "nkvo";
    let held = |f: &dyn Fn(&str) -> bool| -> Vec<String> {
        let names = records.iter().filter(|t| t.is_leaf() && f(&t.name));
        names.map(|t| t.name.clone()).collect()
    };
    match column {
        "cmoe" => s.on_host = held(&|n| n.contains("_exps")),
        "ot attn" => s.on_host = held(&|n| n.starts_with("blk.0.attn")),
        _ => {}
    }
    s
}

fn word(o: Verdict) -> &'static str {
    match o {
        Verdict::Ok => "ok",
        Verdict::Wrong => "WRONG",
        Verdict::Crash => "crash",
        Verdict::Refused => "refused",
    }
}

pub(super) struct Different {
    pub(super) model: &'static str,
    pub(super) column: &'static str,
    pub(super) observed: &'static str,
    pub(super) found: &'static str,
    pub(super) why: &'static str,
}

pub(super) const DIFFERENT: [Different; 2] = [
    Different {
        model: "lfm2-dense",
        column: "tp3",
        observed: "WRONG",
        found: "ok",
        why: "no known rule explains why two heads on three devices go wrong beside short convolutions",
    },
    Different {
        model: "qwen2moe-moe",
        column: "cmoe",
        observed: "crash",
        found: "ok",
        why: "no known rule explains why experts on the host stop this model and no other",
    },
];

/// The compared columns, with the numbers of verdicts and of matches.
const AGREEMENT: [(&str, usize, usize); 8] = [
    ("tp2", 54, 54),
    ("kvq8", 54, 54),
    ("q8/q4", 52, 52),
    ("iq4nl", 54, 54),
    ("nkvo", 54, 54),
    ("cmoe", 19, 18),
    ("ot attn", 54, 54),
    ("tp3", 54, 53),
];

#[derive(Default)]
struct Compared {
    /// Verdicts and matches by column.
    columns: BTreeMap<String, (usize, usize)>,
    /// Disagreements: model, column, observed, predicted.
    differ: Vec<[String; 4]>,
    models: usize,
}

fn compare() -> (Compared, usize) {
    let observed = observed();
    let mut out = Compared::default();
    for path in tpc_tests::captures() {
        let stem = path.file_stem().expect("a name");
        let name = stem.to_string_lossy().into_owned();
        let Some(row) = observed.get(&name) else {
            continue;
        };
        out.models += 1;
        let text = std::fs::read_to_string(&path).expect("a capture");
        let records = capture::records(&text).unwrap_or_else(|e| panic!("{e}"));
        for (column, expected) in row {
            if matches!(expected.as_str(), "–" | "n/a") {
                continue;
            }
            let found = meta::infer(&records, &setup(column, &name, &records));
            let found = word(found.verdict());
            let n = out.columns.entry(column.clone()).or_default();
            n.0 += 1;
            if found == expected {
                n.1 += 1;
            } else {
                let all = [name.as_str(), column, expected, found].map(str::to_owned);
                out.differ.push(all);
            }
        }
    }
    (out, observed.len())
}

pub(super) fn agreement() -> Option<String> {
    let (found, all) = compare();
    let mut out = String::from("| column | compared | agree |\n|---|---|---|\n");
    for (column, _, _) in AGREEMENT {
        let (n, agree) = found.columns.get(column)?;
        out.push_str(&format!("| {column} | {n} | {agree} |\n"));
    }
    (found.models == all).then_some(out)
}

#[test]
fn verdicts_agree_with_what_was_observed() {
    let (found, all) = compare();
    assert!(found.models >= 6, "the repository carries some captures");
    for [model, column, observed, here] in &found.differ {
        let listed = DIFFERENT.iter().any(|d| {
            (d.model, d.column, d.observed, d.found)
                == (
                    model.as_str(),
                    column.as_str(),
                    observed.as_str(),
                    here.as_str(),
                )
        });
        assert!(listed, "{model} {column}: {observed}, not {here}");
    }
    if found.models == all {
        for (column, n, agree) in AGREEMENT {
            assert_eq!(found.columns[column], (n, agree), "{column}");
        }
    }
}

/// Captures without logits. The flag is true if the engine ran the capture on two devices.
#[test]
fn captures_without_logits_run_or_abort() {
    for (name, runs) in [
        ("gemma4-dense", true),
        ("glm4moe-nextn-moe", true),
        ("qwen35mtp-dense", false),
    ] {
        if let Some(records) = named(name) {
            let found = meta::infer(&records, &Setup::new(2)).verdict();
            assert_eq!(found == Verdict::Ok, runs, "{name}");
        }
    }
}

fn named(name: &str) -> Option<Vec<Record>> {
    let paths = tpc_tests::captures();
    let path = paths
        .iter()
        .find(|p| p.file_stem().is_some_and(|s| s == name))?;
    let text = std::fs::read_to_string(path).expect("a capture");
    Some(capture::records(&text).unwrap_or_else(|e| panic!("{e}")))
}

fn refused(name: &str) -> Option<(String, FaultKind)> {
    let records = named(name)?;
    let found = meta::infer(&records, &Setup::new(2));
    let f = found.refused()?;
    Some((records[f.record?].op.to_string(), f.kind))
}

#[test]
fn without_their_names_refused_architectures_fail_at_an_op() {
    assert_eq!(refused("llama-dense"), None);
    assert_eq!(
        refused("olmo2-dense"),
        Some(("RMS_NORM".to_owned(), FaultKind::Rows))
    );
    assert_eq!(
        refused("qwen35-dense"),
        Some(("VIEW".to_owned(), FaultKind::Shape))
    );
}
