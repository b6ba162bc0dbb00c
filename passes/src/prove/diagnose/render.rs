//! Prints values of the programs in terms of the model's names.

use std::fmt::Write as _;

use egg::Id;
use tpc_ir::{RANK, TensorType, Value};

use crate::prove::encoding::Encoding;
use crate::prove::index_set::{Pattern, per_axis};
use crate::prove::language::View;

const DEPTH: usize = 3;

pub(super) fn render_computed(encoding: &Encoding<'_>, v: Value) -> String {
    let programs = encoding.task.programs;
    let data = programs.inst(programs.value(v).def.0);
    if let Some(name) = tensor(&data.op) {
        return name;
    }
    let args: Vec<String> = data
        .operands
        .iter()
        .map(|&o| operand(encoding, o, DEPTH))
        .collect();
    format!("{}({})", data.op.name(), args.join(", "))
}

fn tensor(op: &tpc_ir::Op) -> Option<String> {
    let (name, parts) = match op {
        tpc_ir::Op::Weight(w) => (&w.tensor, w.parts.as_ref()),
        tpc_ir::Op::State(s) => (&s.name, s.parts.as_ref()),
        _ => return None,
    };
    let mut out = name.clone();
    for (axis, intervals) in parts.into_iter().flatten().enumerate() {
        let intervals: Vec<String> = intervals
            .iter()
            .map(|r| format!("{}..{}", r.start, r.end()))
            .collect();
        if axis > 0 {
            out.push(';');
        }
        let _ = write!(out, " axis {axis}: {}", intervals.join(" "));
    }
    Some(out)
}

fn operand(encoding: &Encoding<'_>, v: Value, depth: usize) -> String {
    let programs = encoding.task.programs;
    let id = encoding.programs.get(&v).copied();
    if let Some(named) = id.and_then(|id| render_model_value(encoding, id)) {
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
        .map(|&o| operand(encoding, o, depth - 1))
        .collect();
    format!("{}({})", data.op.name(), args.join(", "))
}

fn render_model_value(encoding: &Encoding<'_>, id: Id) -> Option<String> {
    if let Some(v) = encoding.model_of(id) {
        return Some(encoding.task.model.value(v).name.clone());
    }
    let views = encoding.terms.views_of(id).into_iter();
    let of_model = views.filter_map(|(view, base)| Some((encoding.model_of(base)?, view)));
    let (v, view) = of_model.min_by_key(|(v, view)| (*v, view.indices.len()))?;
    let value = encoding.task.model.value(v);
    Some(format!(
        "{}{}",
        value.name,
        render_selection(&view, &value.ty)
    ))
}

/// Prints `[axis 0: 256..512]`, in elements of each axis.
fn render_selection(view: &View, of: &TensorType) -> String {
    let Ok(axes) = per_axis(&view.indices, &of.dims) else {
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

fn indices(pattern: &Pattern, of: &TensorType, axis: usize) -> String {
    let intervals = pattern.refine(&tpc_ir::Dim::ONE, &of.dims[axis]);
    match intervals {
        Ok(intervals) if intervals.is_empty() => "none".to_owned(),
        Ok(intervals) => {
            let shown: Vec<String> = intervals
                .iter()
                .take(4)
                .map(|r| format!("{}..{}", r.start, r.end()))
                .collect();
            let more = if intervals.len() > 4 { " …" } else { "" };
            format!("{}{more}", shown.join(" "))
        }
        Err(_) => "some of each period".to_owned(),
    }
}

pub(super) fn render_expected(encoding: &Encoding<'_>, v: Value) -> Option<String> {
    let name = &encoding.task.programs.value(v).name;
    let model = encoding.task.model;
    let of_program = encoding.task.programs.def_op(v).name();
    let candidates: Vec<_> = encoding
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
