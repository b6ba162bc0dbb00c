use std::collections::BTreeSet;

use tpc_ir::{Bindings, Code, Inst, Op, Place, Value};
use tpc_passes::factors::Selection;
use tpc_passes::factors::Summand;

use super::{Check, EntityKind, Lint, Plan};
use tpc_core::format::bytes as shown_bytes;
use tpc_core::pipeline::CompiledModel;
use tpc_core::report::describe;
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::note(
        "TPC0305",
        "ops without a sharding rule keep tensors whole",
        "A captured graph has ops without a sharding rule, so their factors (such as heads) cannot be split. The \
         message names the first such op, and the weights and states that stay whole on every device.",
    )
    .example("RWKV_WKV6 keeps the heads of a layer together.")
    .cure("no action needed: the plan is correct. A rule for the op (see the book) would allow splits."),
    check: Check::Plan(check),
};

const SHOWN: usize = 3;

struct Kind {
    name: String,
    insts: Vec<Inst>,
    kept: BTreeSet<Value>,
}

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let compiled = plan.compiled;
    if !compiled.mode.splits_tensors() {
        return;
    }
    let planned = &compiled.planned;
    let graph = &planned.graph;
    let mut kinds: Vec<Kind> = Vec::new();
    for (inst, data) in graph.insts() {
        let Op::Opaque(op) = &data.op else { continue };
        match kinds.iter_mut().find(|k| k.name == op.name) {
            Some(k) => k.insts.push(inst),
            None => kinds.push(Kind {
                name: op.name.clone(),
                insts: vec![inst],
                kept: BTreeSet::new(),
            }),
        }
    }
    for kind in &mut kinds {
        let of_kind = |i: &Inst| kind.insts.binary_search(i).is_ok();
        for facts in planned.analysis.leaves.values() {
            if facts.whole.iter().any(of_kind) {
                kind.kept.extend(&facts.stored);
            }
        }
    }
    for kind in kinds.iter().filter(|k| !k.kept.is_empty()) {
        out.push(note(compiled, kind));
    }
}

fn note(compiled: &CompiledModel, kind: &Kind) -> Diagnostic {
    let graph = &compiled.planned.graph;
    let split = |v: Value| {
        let Place::Group(group) = graph.value(v).place else {
            return false;
        };
        let terms = &compiled.planned.analysis.summands[v.index()];
        let mut leaves = terms.iter().flat_map(Summand::leaves);
        leaves.any(|l| compiled.choice().class_of(group, l).is_some())
    };
    let bytes = |v: Value| graph.value(v).ty.bytes(&Bindings::default()).unwrap_or(0);
    let mut kept: Vec<Value> = kind.kept.iter().copied().collect();
    kept.sort_by_key(|&v| std::cmp::Reverse(bytes(v)));
    let whole: Vec<Value> = kept.iter().copied().filter(|&v| !split(v)).collect();
    let names = |all: &[Value]| {
        let shown = all.iter().take(SHOWN).map(|&v| describe::name(graph, v));
        let shown = shown.collect::<Vec<_>>().join(", ");
        match all.len().saturating_sub(SHOWN) {
            0 => shown.into(),
            more => message!("{} and {} more", shown, more),
        }
    };
    let first = Quantity(describe::inst(graph, kind.insts[0]));
    let times = match kind.insts.len() {
        1 => Message::default(),
        n => message!(" and {} more", n - 1),
    };
    let size = Quantity(shown_bytes(
        whole
            .iter()
            .fold(0, |sum: u64, &v| sum.saturating_add(bytes(v))),
    ));
    let cost = if whole.len() == kept.len() {
        message!("{} stay whole on every device ({})", names(&whole), size)
    } else if whole.is_empty() {
        message!(
            "a factor of {} stays whole; other factors are split",
            names(&kept)
        )
    } else {
        let (kept, whole) = (names(&kept), names(&whole));
        message!(
            "a factor of {} stays whole; {} stay whole on every device ({})",
            kept,
            whole,
            size
        )
    };
    let message = message!("{}{}: {}", first, times, cost);
    LINT.finding(&kind.name, message)
        .help("no action needed; `tpc plan --why TENSOR` shows the other factors of a tensor")
}
