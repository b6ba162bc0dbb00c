//! Tensors by what people call them.

use fancy_regex::Regex;
use tpc_ir::{Graph, Op, Value};

use super::describe;
use tpc_diag::suggest::{nearest, shorten};
use tpc_diag::{Diagnostic, codes};

/// The values that `asked` means, in program order: the weight, state or other value of that name; the value of that
/// number (`v12`, as `dump` prints them); what a line of a capture computes (`line:12`); or the weights and states whose
/// names match it as a regular expression. `lines` has the line of each instruction of a capture's graph `model`, from
/// which `graph` was placed.
///
/// # Errors
/// TPC0409 when nothing is called so.
pub fn values(
    graph: &Graph,
    model: &Graph,
    lines: &[usize],
    asked: &str,
) -> Result<Vec<Value>, Diagnostic> {
    let named = |v: &Value| describe::name(graph, *v) == asked;
    let all = || graph.values().map(|(v, _)| v);
    let stored = |v: &Value| graph.def_op(*v).is_stored();
    let exact: Vec<Value> = all().filter(stored).filter(named).collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    let other: Vec<Value> = all().filter(named).collect();
    // Views and results of one name: the last is what people see.
    if let Some(&last) = other.last() {
        return Ok(vec![last]);
    }
    if let Some(v) = all().find(|v| v.to_string() == asked) {
        return Ok(vec![v]);
    }
    if let Some(line) = asked
        .strip_prefix("line:")
        .and_then(|n| n.parse::<usize>().ok())
    {
        let sources = sources(graph, model);
        let of_line = |v: &Value| {
            let source = sources[graph.value(*v).def.0.index()];
            source.and_then(|i| lines.get(i)) == Some(&line)
        };
        if let Some(v) = all().rfind(of_line) {
            return Ok(vec![v]);
        }
    }
    if let Ok(pattern) = Regex::new(asked) {
        let found: Vec<Value> = all()
            .filter(stored)
            .filter(|&v| pattern.is_match(&describe::name(graph, v)).unwrap_or(false))
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let names: Vec<String> = all()
        .filter(stored)
        .map(|v| describe::name(graph, v))
        .collect();
    let meant = nearest(asked, names.iter().map(String::as_str));
    let help = meant.map_or_else(
        || "give a tensor's name, a regular expression that matches some, a value such as v12, or line:12 of a capture".to_owned(),
        |name| format!("did you mean `{name}`?"),
    );
    let d = Diagnostic::new(
        &codes::NO_SUCH_TENSOR,
        "--why",
        format!("no tensor is called `{}`", shorten(asked)),
    );
    Err(d.help(help))
}

/// Per instruction of a placed graph, the position of the instruction of the model's graph that it comes from; `None`
/// for copies. Placing keeps the order, adds copies, and may store a weight at several places.
fn sources(placed: &Graph, model: &Graph) -> Vec<Option<usize>> {
    let mut ops = model.insts().map(|(i, d)| (i.index(), &d.op));
    let mut last: Option<(usize, &Op)> = None;
    let mut out = Vec::with_capacity(placed.insts().len());
    for (_, data) in placed.insts() {
        if let Op::Copy(_) = data.op {
            out.push(None);
            continue;
        }
        let again = last.is_some_and(|(_, op)| matches!(op, Op::Weight(_)) && *op == data.op);
        if !again {
            last = ops.next();
        }
        out.push(last.map(|(i, _)| i));
    }
    out
}
