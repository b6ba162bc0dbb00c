use std::collections::BTreeSet;

use crate::capture::Record;

/// Returns the removed (`-`) and added (`+`) lines, in order. A tensor has its line number in the capture, or `newN`.
pub(super) fn diff(old: &[Record], new: &[Record]) -> String {
    let before = lines(old);
    let after = lines(new);
    let there: BTreeSet<&String> = before.iter().collect();
    let kept: BTreeSet<&String> = after.iter().collect();
    let mut out = String::new();
    for removed in before.iter().filter(|l| !kept.contains(l)) {
        out.push_str(&format!("- {removed}\n"));
    }
    for added in after.iter().filter(|l| !there.contains(l)) {
        out.push_str(&format!("+ {added}\n"));
    }
    out
}

fn lines(all: &[Record]) -> Vec<String> {
    let mut added = 0;
    let mut named = |t: &Record| match t.line {
        0 => {
            added += 1;
            format!("%new{added}")
        }
        line => format!("%{line}"),
    };
    let names: Vec<String> = all.iter().map(&mut named).collect();
    let of = |i: usize| line(&all[i], &names[i], all, |s| names[s].clone());
    (0..all.len()).map(of).collect()
}

fn line(t: &Record, number: &str, all: &[Record], source: impl Fn(usize) -> String) -> String {
    let sources: Vec<String> = t
        .src
        .iter()
        .flatten()
        .map(|&s| match all[s].is_leaf() {
            true => all[s].name.clone(),
            false => source(s),
        })
        .collect();
    let mut ne: Vec<String> = t.ne().iter().map(u64::to_string).collect();
    while ne.len() > 1 && ne.last().is_some_and(|n| n == "1") {
        ne.pop();
    }
    let mut out = format!(
        "{number} = {}({})  {} [{}]",
        t.op,
        sources.join(", "),
        t.dtype,
        ne.join(", ")
    );
    if !t.name.is_empty() {
        out.push_str("  ");
        out.push_str(&t.name);
    }
    out
}
