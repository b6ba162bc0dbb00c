use std::collections::BTreeMap;

use tpc_ir::Code;

use super::{Capture, Check, EntityKind, Lint};
use tpc_diag::{Diagnostic, Excerpt, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::note(
        "TPC0641",
        "an op is computed twice",
        "Two ops of the same kind and parameters read the same unchanged operands. The second costs its time again, \
         and its collectives if the operands are split.",
    )
    .example("attention and feed-forward each compute the same norm.")
    .cure("use the first result in both places."),
    check: Check::Graph(check),
};

fn check(graph: &Capture<'_>, out: &mut Vec<Diagnostic>) {
    let mut versions: BTreeMap<usize, u32> = BTreeMap::new();
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    for (i, r) in graph.records.iter().enumerate() {
        if r.writes() {
            *versions.entry(r.root).or_default() += 1;
            continue;
        }
        if r.is_leaf() || r.is_pure_view() || r.is_empty() {
            continue;
        }
        let operand = |s: &usize| {
            let s = &graph.records[*s];
            (s.root, versions.get(&s.root).copied(), s.layout, s.dtype)
        };
        let operands: Vec<_> = r.src.iter().map(|s| s.as_ref().map(operand)).collect();
        let key = (r.op.name(), r.dtype, r.ne(), &r.words, operands);
        let Some(&first) = seen.get(&key) else {
            seen.insert(key, i);
            continue;
        };
        let first = &graph.records[first];
        let message = message!(
            "{} ({}) computes {} again",
            r.op.to_string(),
            graph.name(r),
            graph.name(first)
        );
        let d = LINT.finding(graph.name(r), message).line(r.line);
        let labels = [(first, "computed here"), (r, "and again here")];
        let labels = labels
            .iter()
            .filter_map(|(r, text)| Some((graph.inst_of(r)?, (*text).to_owned())));
        let labels: Vec<_> = labels.collect();
        let d = d.help(message!("use {} in both places", graph.name(first)));
        out.push(d.excerpt(Excerpt::of("model", graph.printed, &labels)));
    }
}
