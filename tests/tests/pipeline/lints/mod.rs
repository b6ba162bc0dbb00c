//! Every lint has an input that triggers it and a similar one that does not.

mod commands;
mod configs;
mod files;
mod fires;
mod graphs;
mod plans;

use std::collections::{BTreeMap, BTreeSet};

use tpc_diag::{Diagnostic, Severity};
use tpc_lint::{TOPICS, lints};

pub(crate) struct Case {
    code: &'static str,
    fires: Box<dyn Fn() -> Vec<Diagnostic>>,
    silent: Box<dyn Fn() -> Vec<Diagnostic>>,
}

impl Case {
    pub(crate) fn new(
        code: &'static str,
        fires: impl Fn() -> Vec<Diagnostic> + 'static,
        silent: impl Fn() -> Vec<Diagnostic> + 'static,
    ) -> Case {
        Case {
            code,
            fires: Box::new(fires),
            silent: Box::new(silent),
        }
    }
}

pub(crate) fn codes(found: &[Diagnostic]) -> Vec<&'static str> {
    let mut out: Vec<&str> = found.iter().map(|d| d.code.id).collect();
    out.sort_unstable();
    out.dedup();
    out
}

#[test]
fn every_lint_fires_and_is_silent() {
    let all = [
        files::cases(),
        graphs::cases(),
        configs::cases(),
        plans::cases(),
        commands::cases(),
    ];
    let mut cases: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for case in all.into_iter().flatten() {
        cases.entry(case.code).or_default().push(case);
    }
    let mut wrong = Vec::new();
    for lint in lints() {
        let code = lint.code.id;
        let Some(of_lint) = cases.remove(code) else {
            wrong.push(format!("{code} has no case"));
            continue;
        };
        for case in of_lint {
            let found = (case.fires)();
            let Some(d) = found.iter().find(|d| d.code == code) else {
                wrong.push(format!("{code} does not fire: {:?}", codes(&found)));
                continue;
            };
            if d.help.is_none() && d.severity != Severity::Note && code != "TPC0301" {
                wrong.push(format!("{code} has no cure: {}", d.message));
            }
            let found = (case.silent)();
            if let Some(d) = found.iter().find(|d| d.code == code) {
                wrong.push(format!("{code} fires where it should not: {}", d.message));
            }
        }
    }
    wrong.extend(cases.keys().map(|code| format!("{code} is no lint")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_lint_is_documented() {
    let mut seen = BTreeSet::new();
    for lint in lints() {
        let code = &lint.code;
        assert!(seen.insert(code), "{code} is of two lints");
        assert!(!code.cure.is_empty(), "{code} has no cure");
        let last = code.paragraphs().pop().unwrap_or_default();
        assert!(last.ends_with('.') && !code.title.ends_with('.'), "{code}");
    }
    assert!(seen.len() >= 40, "{} lints", seen.len());
    assert!(
        TOPICS.iter().all(|t| t.lints.len() > 5),
        "every topic has lints"
    );
}
