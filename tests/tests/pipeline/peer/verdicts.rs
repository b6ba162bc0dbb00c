//! Verdicts on captured graphs against what the engine did.

use std::collections::BTreeMap;

use tpc::capture::{self, Record};
use tpc::peer::{self, Class, Outcome, Setup};
use tpc_ir::DType;

/// What was observed: per architecture and column, the word.
fn observed() -> BTreeMap<String, BTreeMap<String, String>> {
    let path = tpc_tests::data().join("peer/verdicts.md");
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

/// What a column asks for.
fn setup(column: &str, name: &str, records: &[Record]) -> Setup {
    let mut s = Setup::new(if column == "tp3" { 3 } else { 2 });
    // The names of the captures are architectures, and kinds of test models.
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
        let names = records.iter().filter(|t| t.op == "NONE" && f(&t.name));
        names.map(|t| t.name.clone()).collect()
    };
    match column {
        "cmoe" => s.on_host = held(&|n| n.contains("_exps")),
        "ot attn" => s.on_host = held(&|n| n.starts_with("blk.0.attn")),
        _ => {}
    }
    s
}

fn word(o: Outcome) -> &'static str {
    match o {
        Outcome::Ok => "ok",
        Outcome::Wrong => "WRONG",
        Outcome::Crash => "crash",
        Outcome::Refused => "refused",
    }
}

/// Where another verdict is reached, and why.
const DIFFERENT: [(&str, &str, &str); 2] = [
    (
        "lfm2-dense",
        "tp3",
        "no rule is known by which three devices with two heads go wrong in layers of short convolutions",
    ),
    (
        "qwen2moe-moe",
        "cmoe",
        "the engine aborts while it deals ops between host and devices, before its rules are asked",
    ),
];

/// Verdicts that are compared: all columns of the table, where the files beside the checkout are there.
fn compared(column: &str) -> usize {
    match column {
        "cmoe" => 18,
        "q8/q4" => 52,
        "tp3" => 53,
        _ => 54,
    }
}

#[test]
fn verdicts_agree_with_what_was_observed() {
    let observed = observed();
    let mut agree: BTreeMap<String, usize> = BTreeMap::new();
    let mut differ = Vec::new();
    let mut seen = 0;
    for path in tpc_tests::captures() {
        let stem = path.file_stem().expect("a name");
        let name = stem.to_string_lossy().into_owned();
        let Some(row) = observed.get(&name) else {
            continue;
        };
        seen += 1;
        let text = std::fs::read_to_string(&path).expect("a capture");
        let records = capture::records(&text).unwrap_or_else(|e| panic!("{e}"));
        for (column, expected) in row {
            if matches!(expected.as_str(), "–" | "n/a") {
                continue;
            }
            let found = peer::infer(&records, &setup(column, &name, &records));
            if word(found.outcome()) == expected {
                *agree.entry(column.clone()).or_insert(0) += 1;
                continue;
            }
            let listed = DIFFERENT
                .iter()
                .any(|(n, c, _)| (*n, *c) == (name.as_str(), column.as_str()));
            if !listed {
                let found = word(found.outcome());
                differ.push(format!("{name} {column}: {expected}, not {found}"));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(seen >= 6, "the repository carries some captures");
    if seen == observed.len() {
        for (column, n) in &agree {
            assert_eq!(*n, compared(column), "{column}");
        }
    }
}

/// The first op that is refused, and its class.
fn refused(name: &str) -> Option<(String, Class)> {
    let path = tpc_tests::captures();
    let named = |p: &&std::path::PathBuf| p.file_stem().is_some_and(|s| s == name);
    let text = std::fs::read_to_string(path.iter().find(named)?).expect("a capture");
    let records = capture::records(&text).unwrap_or_else(|e| panic!("{e}"));
    let found = peer::infer(&records, &Setup::new(2));
    let f = found.refused()?;
    Some((records[f.record?].op.clone(), f.class))
}

#[test]
fn without_their_names_refused_architectures_fail_at_an_op() {
    assert_eq!(refused("llama-dense"), None);
    // A norm over all heads.
    assert_eq!(
        refused("olmo2-dense"),
        Some(("RMS_NORM".to_owned(), Class::Rows))
    );
    // The states behind a delta rule's result.
    assert_eq!(
        refused("qwen35-dense"),
        Some(("VIEW".to_owned(), Class::Shape))
    );
}
