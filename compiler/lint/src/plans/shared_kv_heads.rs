//! KV heads that several devices hold.

use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Message, message};

/// The declaration of the lint.
pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::note(
        "TPC0306",
        "KV heads are held more than once",
        "There are fewer KV heads than devices, so devices share them: each holds the heads that its query heads \
         need, and the KV cache takes that much more memory in total.",
    )
    .cure("none is needed; a number of devices that divides the KV heads avoids it."),
    check: Check::Plan(check),
};

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let graph = &plan.compiled.sharded;
    let mut found: Vec<(Message, u64)> = Vec::new();
    let mut seen = Vec::new();
    for (_, v) in graph.values() {
        let mut refs = Vec::new();
        v.sharding
            .axes
            .iter()
            .flatten()
            .for_each(|t| t.classes(&mut refs));
        for r in refs.into_iter().filter(|r| r.div > 1) {
            let c = graph.class(r.class);
            if !c.overlaps(r.div) || seen.contains(&r) {
                continue;
            }
            seen.push(r);
            let held: u64 = (0..c.ranges.len())
                .filter_map(|d| c.range(d, r.div))
                .map(|x| x.len)
                .sum();
            let text = message!(
                "{} KV heads are shared: {} copies over {} devices",
                c.size / r.div,
                held,
                c.ranges.len()
            );
            match found.iter_mut().find(|(t, _)| *t == text) {
                Some(x) => x.1 += 1,
                None => found.push((text, 1)),
            }
        }
    }
    for (text, n) in found {
        let message = message!("{} ({} layers)", text, n);
        out.push(LINT.finding("", message));
    }
}
