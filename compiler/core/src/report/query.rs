use fancy_regex::Regex;
use tpc_ir::{Graph, Op, Value};

use super::describe;
use tpc_diag::suggest::{nearest, shorten};
use tpc_diag::{Diagnostic, codes};

/// Finds the values that `asked` names, in program order. The first of these readings that matches counts:
///
/// 1. a name of a weight, state or other value (the last value of this name);
/// 2. a handle of the placed graph (`v12`, as in `tpc dump`);
/// 3. a line of a capture (`line:12`), which means the value that it computes;
/// 4. a regular expression for names of weights and states.
///
/// `graph` was placed from `model`. `lines` has the line of each instruction of a captured `model`.
///
/// # Errors
/// Returns TPC0409 if `asked` matches no value.
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
    // Views have the name of their source. Users mean the last value of a name.
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
        || "give a tensor's name, a regular expression for names, a value such as v12, or line:12 of a capture".to_owned(),
        |name| format!("did you mean `{name}`?"),
    );
    let d = Diagnostic::new(
        &codes::NO_SUCH_TENSOR,
        "--why",
        format!("unknown tensor `{}`", shorten(asked)),
    );
    Err(d.help(help))
}

/// Maps each placed instruction to the position of its source in the model's graph; `None` for copies. Placement keeps
/// the order, adds copies, and may store a weight at several places.
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
