//! Computations that are there already.

use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Check, Lint, Names, Port};
use tpc_diag::Diagnostic;
use tpc_diag::Excerpt;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    names: Names::Op,
    code: Code::note(
        "TPC0641",
        "the same is computed twice",
        "Two ops of the same kind, with the same parameters, read the same operands, and nothing changes these \
         in between: the second one makes what is there already. On devices that hold everything, it costs its \
         time twice; where operands are split, also its collectives.",
    )
    .example("a norm that attention and feed-forward each compute for themselves.")
    .cure("use the first result in both places."),
    check: Check::Port(check),
};

fn check(port: &Port<'_>, out: &mut Vec<Diagnostic>) {
    let mut versions: BTreeMap<usize, u32> = BTreeMap::new();
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    for (i, r) in port.records.iter().enumerate() {
        if r.writes() {
            *versions.entry(r.root).or_default() += 1;
            continue;
        }
        if r.is_leaf() || r.is_pure_view() || r.is_empty() {
            continue;
        }
        let operand = |s: &usize| {
            let s = &port.records[*s];
            (s.root, versions.get(&s.root).copied(), s.layout, s.dtype)
        };
        let operands: Vec<_> = r.src.iter().map(|s| s.as_ref().map(operand)).collect();
        let key = (r.op.name(), r.dtype, r.ne(), &r.words, operands);
        let Some(&first) = seen.get(&key) else {
            seen.insert(key, i);
            continue;
        };
        let first = &port.records[first];
        let message = format!(
            "{} ({}) is {} once more",
            r.op,
            port.name(r),
            port.name(first)
        );
        let d = Diagnostic::new(&LINT.code, port.name(r), message).line(r.line);
        let labels = [(first, "here it is made"), (r, "and here again")];
        let labels = labels
            .iter()
            .filter_map(|(r, text)| Some((port.inst_of(r)?, (*text).to_owned())));
        let labels: Vec<_> = labels.collect();
        let d = d.help(format!("use {} in both places", port.name(first)));
        out.push(d.excerpt(Excerpt::of("model", port.printed, &labels)));
    }
}
