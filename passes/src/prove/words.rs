//! Terms in words: what a value of the programs is, said with the names of the model's values.

use std::fmt::Write as _;

use egg::Id;
use tpc_ir::{RANK, TensorType, Value};

use super::pick::{Pick, on_axes};
use super::region::Region;
use super::term::View;

/// How deep a term is spelt out.
const DEPTH: usize = 3;

/// What the programs compute there.
pub(super) fn computed(region: &Region<'_>, v: Value) -> String {
    let programs = region.task.programs;
    let data = programs.inst(programs.value(v).def.0);
    if let Some(name) = tensor(&data.op) {
        return name;
    }
    let args: Vec<String> = data
        .operands
        .iter()
        .map(|&o| operand(region, o, DEPTH))
        .collect();
    format!("{}({})", data.op.name(), args.join(", "))
}

/// The name of what a leaf reads.
fn tensor(op: &tpc_ir::Op) -> Option<String> {
    let (name, parts) = match op {
        tpc_ir::Op::Weight(w) => (&w.tensor, w.parts.as_ref()),
        tpc_ir::Op::State(s) => (&s.name, s.parts.as_ref()),
        _ => return None,
    };
    let mut out = name.clone();
    for (axis, runs) in parts.into_iter().flatten().enumerate() {
        let runs: Vec<String> = runs
            .iter()
            .map(|r| format!("{}..{}", r.start, r.end()))
            .collect();
        if axis > 0 {
            out.push(';');
        }
        let _ = write!(out, " axis {axis}: {}", runs.join(" "));
    }
    Some(out)
}

/// A value of the programs as the model's, or by the op that makes it.
fn operand(region: &Region<'_>, v: Value, depth: usize) -> String {
    let programs = region.task.programs;
    let id = region.programs.get(&v).copied();
    if let Some(named) = id.and_then(|id| named(region, id)) {
        return named;
    }
    let data = programs.inst(programs.value(v).def.0);
    if let Some(name) = tensor(&data.op) {
        return name;
    }
    if depth == 0 {
        return format!("{}(…)", data.op.name());
    }
    let args: Vec<String> = data
        .operands
        .iter()
        .map(|&o| operand(region, o, depth - 1))
        .collect();
    format!("{}({})", data.op.name(), args.join(", "))
}

/// A class as a value of the model or a part of one.
fn named(region: &Region<'_>, id: Id) -> Option<String> {
    if let Some(v) = region.model_of(id) {
        return Some(region.task.model.value(v).name.clone());
    }
    let views = region.terms.views_of(id).into_iter();
    let of_model = views.filter_map(|(view, base)| Some((region.model_of(base)?, view)));
    let (v, view) = of_model.min_by_key(|(v, view)| (*v, view.picks.len()))?;
    let value = region.task.model.value(v);
    Some(format!("{}{}", value.name, picked(&view, &value.ty)))
}

/// `[axis 0: 256..512]`, in elements of the axes.
fn picked(view: &View, of: &TensorType) -> String {
    let Ok(axes) = on_axes(&view.picks, &of.dims) else {
        return "[…]".to_owned();
    };
    let said: Vec<String> = (0..RANK)
        .filter_map(|a| {
            axes[a]
                .as_ref()
                .map(|p| format!("axis {a}: {}", indices(p, of, a)))
        })
        .collect();
    if said.is_empty() {
        String::new()
    } else {
        format!("[{}]", said.join("; "))
    }
}

fn indices(pick: &Pick, of: &TensorType, axis: usize) -> String {
    let runs = pick.refined(&tpc_ir::Dim::ONE, &of.dims[axis]);
    match runs {
        Ok(runs) if runs.is_empty() => "none".to_owned(),
        Ok(runs) => {
            let shown: Vec<String> = runs
                .iter()
                .take(4)
                .map(|r| format!("{}..{}", r.start, r.end()))
                .collect();
            let more = if runs.len() > 4 { " …" } else { "" };
            format!("{}{more}", shown.join(" "))
        }
        Err(_) => "some of each period".to_owned(),
    }
}

/// What the model says of the value of that name.
pub(super) fn expected(region: &Region<'_>, v: Value) -> Option<String> {
    let name = &region.task.programs.value(v).name;
    let model = region.task.model;
    let of_program = region.task.programs.def_op(v).name();
    let candidates: Vec<_> = region
        .task
        .of_model
        .iter()
        .map(|&i| model.inst(i))
        .filter(|i| i.results.iter().any(|&r| model.value(r).name == *name))
        .collect();
    let data = candidates
        .iter()
        .find(|i| i.op.name() == of_program)
        .or(candidates.last())?;
    let args: Vec<&str> = data
        .operands
        .iter()
        .map(|&o| model.value(o).name.as_str())
        .collect();
    Some(format!("{name} = {}({})", data.op.name(), args.join(", ")))
}
