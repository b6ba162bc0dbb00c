use tpc_ir::{Bindings, Code, Graph, Inst, Op, Place, Severity, Value};
use tpc_passes::factors::Selection;
use tpc_passes::plan::{Refusal, refusal};

use super::{Check, EntityKind, Lint, Plan};
use crate::view::layer_name;
use tpc_core::format::bytes as shown_bytes;
use tpc_core::report::{describe, suffix};
use tpc_diag::{Diagnostic, Message, Quantity, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Tensor,
    code: Code::warning(
        "TPC0301",
        "a weight stays whole on every device",
        "No axis of the matrix can be split for these devices, so each device stores and computes all of it. The \
         message gives the reason per axis and factor. If a split would only cost too much, this is a note.",
    )
    .example("a model with one attention head on two devices.")
    .cure("usually no action needed; a number of devices that divides the factor allows a split.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

/// Returns the reason why each axis factor stays whole. The flag is true if a factor can be split, but the split
/// costs more than it gains.
fn reason(plan: &Plan<'_>, weight: Value) -> (Message, bool) {
    let planned = &plan.compiled.planned;
    let mut reasons = Vec::new();
    let mut is_chosen = false;
    for (axis, leaves) in planned.analysis.summands[weight.index()][0]
        .axes
        .iter()
        .enumerate()
    {
        for &leaf in leaves {
            let size = planned.factors.space.size(leaf);
            let why = match refusal(&planned.factors, &planned.analysis, leaf) {
                Some(Refusal::Whole(i)) => needed_by(&planned.graph, i),
                Some(Refusal::PinnedWhole(_)) => "an override pins it whole".into(),
                Some(Refusal::Repeated(_)) => {
                    "two axes of a value use the factor; only one may be split".into()
                }
                Some(Refusal::Indexed(_)) => "an index selects along more than the factor".into(),
                Some(Refusal::Symbolic) => "its size is known only at run time".into(),
                Some(Refusal::NotStored | Refusal::Granule(_)) | None => {
                    is_chosen = true;
                    "splitting it costs more than it gains".into()
                }
            };
            let size = size.to_string();
            reasons.push(message!("axis {} (size {}): {}", axis, size, why));
        }
    }
    (Message::join(reasons, "; "), is_chosen)
}

struct Group {
    suffix: String,
    first: String,
    reason: Message,
    is_chosen: bool,
    count: u64,
    bytes: u64,
}

fn needed_by(model: &Graph, inst: Inst) -> Message {
    let op = model.inst(inst);
    let result = op.results.first();
    let name = result.map_or("", |&v| model.value(v).name.as_str());
    message!(
        "`{}` of {} needs it whole",
        describe::op_name(&op.op),
        without_number(name)
    )
}

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let (compiled, report) = (plan.compiled, plan.report);
    if !compiled.mode.splits_tensors() {
        return;
    }
    let model = &compiled.planned.graph;
    let planned = &compiled.planned;
    let mut groups: Vec<Group> = Vec::new();
    for (_, inst) in model.insts() {
        let Op::Weight(w) = &inst.op else { continue };
        let v = inst.results[0];
        let ty = &model.value(v).ty;
        let bytes = ty.bytes(&Bindings::default()).unwrap_or(0);
        let Place::Group(group) = model.value(v).place else {
            continue;
        };
        let split = planned.analysis.summands[v.index()].iter().any(|t| {
            t.leaves()
                .any(|l| compiled.choice().class_of(group, l).is_some())
        });
        if split || ty.dims[1].is_one() || bytes.saturating_mul(1000) < report.model.bytes {
            continue;
        }
        let (reason, is_chosen) = reason(plan, v);
        let suffix = suffix(&w.tensor);
        match groups
            .iter_mut()
            .find(|g| g.suffix == suffix && g.reason.without_numbers() == reason.without_numbers())
        {
            Some(g) => {
                g.count += 1;
                g.bytes += bytes;
            }
            None => groups.push(Group {
                suffix,
                first: w.tensor.clone(),
                reason,
                is_chosen,
                count: 1,
                bytes,
            }),
        }
    }
    for group in groups {
        let many = if group.count > 1 {
            message!(" and {} similar", group.count - 1)
        } else {
            Message::default()
        };
        let message = message!(
            "{}{} ({}) stays whole on every device: {}",
            layer_name(&group.first),
            many,
            Quantity(shown_bytes(group.bytes)),
            group.reason
        );
        let name = layer_name(&group.first);
        // The planner's own choice is only a note.
        out.push(match group.is_chosen {
            true => LINT.milder_finding(name, message).help("no action needed"),
            false => LINT.finding(name, message),
        });
    }
}

/// Returns a name with its trailing number, the layer, as a part that comparisons ignore.
fn without_number(name: &str) -> Message {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    message!("{}{}", stem, Quantity(&name[stem.len()..]))
}
