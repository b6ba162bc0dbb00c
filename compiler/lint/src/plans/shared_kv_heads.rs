use tpc_ir::Code;

use super::{Check, EntityKind, Lint, Plan};
use tpc_diag::{Diagnostic, Message, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Plan,
    code: Code::note(
        "TPC0306",
        "KV heads are stored more than once",
        "The model has fewer KV heads than devices. Each device stores the heads that its query heads need, so the KV \
         cache takes more memory in total.",
    )
    .cure("no action needed; --cache-split cells stores each cell once, and so does a number of devices that divides the KV heads."),
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
