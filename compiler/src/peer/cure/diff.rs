//! What changes between two graphs, as lines.

use std::collections::BTreeSet;

use crate::capture::Record;

/// The lines that go and those that come, in order. `number` says which old record a new one stands for.
pub(super) fn diff(old: &[Record], new: &[Record], number: &[Option<usize>]) -> String {
    let named = |i: usize| match number[i] {
        Some(old) => format!("%{}", old + 1),
        None => {
            let before = number[..i].iter().filter(|o| o.is_none()).count();
            format!("%new{}", before + 1)
        }
    };
    let before = (0..old.len()).map(|i| {
        line(&old[i], &format!("%{}", i + 1), old, |s| {
            format!("%{}", s + 1)
        })
    });
    let after = (0..new.len()).map(|i| line(&new[i], &named(i), new, named));
    let (before, after): (Vec<String>, Vec<String>) = (before.collect(), after.collect());
    let there: BTreeSet<&String> = before.iter().collect();
    let stays: BTreeSet<&String> = after.iter().collect();
    let mut out = String::new();
    for gone in before.iter().filter(|l| !stays.contains(l)) {
        out.push_str(&format!("- {gone}\n"));
    }
    for come in after.iter().filter(|l| !there.contains(l)) {
        out.push_str(&format!("+ {come}\n"));
    }
    out
}

fn line(t: &Record, number: &str, all: &[Record], source: impl Fn(usize) -> String) -> String {
    let sources: Vec<String> = t
        .src
        .iter()
        .flatten()
        .map(|&s| match all[s].op.as_str() {
            "NONE" => all[s].name.clone(),
            _ => source(s),
        })
        .collect();
    let mut ne: Vec<String> = t.ne().iter().map(u64::to_string).collect();
    while ne.len() > 1 && ne.last().is_some_and(|n| n == "1") {
        ne.pop();
    }
    format!(
        "{number} = {}({})  {} [{}]  {}",
        t.op,
        sources.join(", "),
        t.dtype,
        ne.join(", "),
        t.name
    )
}
