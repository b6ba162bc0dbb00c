use tpc_ir::{Code, Graph, Inst, Severity, text};
use tpc_passes::factors::{Factors, cut_reshape, factor_positions};

use super::{Check, EntityKind, Lint, Plan};
use crate::view::layer_name;
use tpc_core::pipeline::CAPTURE;
use tpc_core::report::describe;
use tpc_diag::{Diagnostic, Excerpt, Message, Name, message};

pub(crate) static LINT: Lint = Lint {
    entity: EntityKind::Op,
    code: Code::warning(
        "TPC0304",
        "a reshape or slice prevents a split",
        "A reshape or slice ends inside a factor, a unit that tpc splits only as a whole, such as a head. Operands and \
         results stay whole on every device. The line shown is the op in tpc's text form: `v6: f32[32, 3] = reshape v5 \
         {dims = [32, 3]}` reshapes v5 to 32 × 3 and calls the result v6. For an architecture that tpc knows this is a \
         note: no option changes it.",
    )
    .example("heads of 96 elements reshaped to blocks of 64, which may span two heads.")
    .cure("reshape to axes that end with the factors, as the help shows: heads of 96 to blocks of 32.")
    .with_milder_severity(Severity::Note),
    check: Check::Plan(check),
};

/// Returns the note for a built-in architecture, whose ops the user cannot change.
fn of_architecture(plan: &Plan<'_>) -> Option<Diagnostic> {
    let planned = &plan.compiled.planned;
    let (inst, _) = planned.factors.opaque.first()?;
    let data = planned.graph.inst(*inst);
    let value = data.results.first()?;
    let message = message!(
        "{} ops of {}, such as the `{}` of {}, cannot be split: every device computes them whole",
        planned.factors.opaque.len().to_string(),
        plan.compiled.model.summary.arch,
        data.op.name(),
        layer_name(&describe::name(&planned.graph, *value))
    );
    let note = LINT.milder_finding("", message);
    Some(
        note.help("no action needed: the results are the same, and the estimate includes the cost"),
    )
}

fn check(plan: &Plan<'_>, out: &mut Vec<Diagnostic>) {
    let planned = &plan.compiled.planned;
    let (graph, factors) = (&planned.graph, &planned.factors);
    if plan.compiled.model.summary.arch != CAPTURE {
        if plan.compiled.mode.splits_tensors() {
            out.extend(of_architecture(plan));
        }
        return;
    }
    let printed = (!factors.opaque.is_empty()).then(|| text::print(graph));
    let shown = |d: Diagnostic, inst: Inst, label: String| match &printed {
        Some(printed) => d.excerpt(Excerpt::of("placed", printed, &[(inst, label)])),
        None => d,
    };
    for (inst, cut) in &factors.opaque {
        let data = graph.inst(*inst);
        let name = data.results.first().map_or_else(
            || Name::plain(""),
            |&v| layer_name(&describe::name(graph, v)),
        );
        let Some(found) = cut_reshape(graph, factors, *inst) else {
            let alike = similar_ops(graph, factors, *inst);
            if alike.first() != Some(inst) {
                continue;
            }
            let message = match alike.len() {
                1 => message!("`{}` {}", data.op.name(), cut.to_string()),
                n => message!(
                    "`{}` {}; {} other ops do the same",
                    data.op.name(),
                    cut.to_string(),
                    (n - 1).to_string()
                ),
            };
            let warning = LINT.finding(&name, message);
            out.push(shown(warning, *inst, "whole on every device".to_owned()));
            continue;
        };
        let at = factor_positions(&planned.analysis, found.factor);
        let at = at.first().map_or_else(Message::default, |t| {
            message!(
                " ({} of {})",
                describe::place(t),
                layer_name(&describe::name(graph, t.value))
            )
        });
        let message = message!(
            "`reshape` of {} to {} cuts a factor of {}{} at {}, so both stay whole on every device",
            layer_name(&describe::name(graph, data.operands[0])),
            describe::sizes(&graph.value(data.results[0]).ty.dims),
            factors.space.size(found.factor).to_string(),
            at,
            found.at.to_string()
        );
        let warning = LINT.finding(&name, message);
        let label = format!("cuts the factor of {}", factors.space.size(found.factor));
        let warning = shown(warning, *inst, label);
        out.push(match &found.instead {
            Some(dims) => {
                let dtype = graph.value(data.results[0]).ty.dtype;
                let (result, operand) = (data.results[0], data.operands[0]);
                let sizes = describe::sizes(dims);
                let reshaped = format!(
                    "{result}: {}{sizes} = reshape {operand} {{dims = {sizes}}}",
                    dtype.name()
                );
                warning.help(message!(
                    "reshape to {}, with axes that end with the factors:\n{}",
                    sizes,
                    reshaped
                ))
            }
            None => warning,
        });
    }
}

/// Returns the instructions with the same op and, except for the layer, the same result name.
fn similar_ops(graph: &Graph, factors: &Factors, inst: Inst) -> Vec<Inst> {
    let kind = |inst: Inst| {
        let data = graph.inst(inst);
        let name = data.results.first().map_or("", |&v| &graph.value(v).name);
        let stem = match name.rsplit_once('-') {
            Some((stem, layer)) if layer.bytes().all(|c| c.is_ascii_digit()) => stem,
            _ => name,
        };
        (data.op.name(), stem)
    };
    let cuts = factors.opaque.iter().map(|&(inst, _)| inst);
    let others = cuts.filter(|&i| cut_reshape(graph, factors, i).is_none());
    others.filter(|&i| kind(i) == kind(inst)).collect()
}
