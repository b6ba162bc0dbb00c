//! Differences of structure between paired records: op, parameters, element type, sizes, layout, operands.

use schemars::JsonSchema;
use serde::Serialize;
use tpc_ggml::capture::Record;
use tpc_ggml::op::{GgmlOp, WordUse};

use super::classes::effective_words;
use super::pairs::Pairs;

/// A property that differs between two paired records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "StructureChange")]
pub struct Change {
    /// The property: `op`, `type`, `ne`, `nb`, `offset`, `source 0`, or a parameter's name.
    pub what: String,
    /// The property in the first graph.
    pub a: String,
    /// The property in the second graph.
    pub b: String,
    /// True if the property belongs to the op itself, false if to an operand or a hint to the back end.
    #[serde(skip)]
    pub own: bool,
}

fn change<T: ToString>(what: impl Into<String>, a: &T, b: &T) -> Change {
    Change {
        what: what.into(),
        a: a.to_string(),
        b: b.to_string(),
        own: true,
    }
}

/// Returns the parameters of an op with their names, as far as tpc knows them.
pub(super) fn parameters(t: &Record) -> Vec<(String, String)> {
    let known = !matches!(t.op, GgmlOp::Unknown(_) | GgmlOp::Malformed(..));
    let text = format!("{:#?}", t.op);
    let field = |line: &str| {
        let (name, value) = line.trim().split_once(": ")?;
        let value = value.trim_end_matches(',');
        let plain = !value.ends_with(['{', '(', '[']);
        plain.then(|| (name.to_owned(), value.to_owned()))
    };
    let named: Vec<(String, String)> = text.lines().filter_map(field).collect();
    if known && !named.is_empty() {
        return named;
    }
    let words = effective_words(t);
    let word = |(i, w): (usize, i32)| (format!("op_params[{i}]"), w.to_string());
    words.into_iter().enumerate().map(word).collect()
}

/// Returns the differences between two paired records.
pub(super) fn changes(records: [&[Record]; 2], pairs: &Pairs, i: usize, j: usize) -> Vec<Change> {
    let (a, b) = (&records[0][i], &records[1][j]);
    let mut out = Vec::new();
    if a.op.name() != b.op.name() {
        out.push(change("op", &a.op.name(), &b.op.name()));
    } else {
        parameter_changes(a, b, &mut out);
    }
    if a.dtype != b.dtype {
        out.push(change("type", &a.dtype, &b.dtype));
    }
    if a.ne() != b.ne() {
        out.push(change("ne", &list(a.ne()), &list(b.ne())));
    }
    if a.is_view && b.is_view {
        if a.layout.nb != b.layout.nb {
            out.push(change("nb", &list(a.layout.nb), &list(b.layout.nb)));
        }
        if a.layout.offset != b.layout.offset {
            out.push(change("offset", &a.layout.offset, &b.layout.offset));
        }
    }
    for position in 0..a.src.len().max(b.src.len()) {
        let [of_a, of_b] = [a, b].map(|t| t.src.get(position).copied().flatten());
        let expected = of_a.and_then(|s| pairs.of[0][s]);
        let same = match (of_a, of_b) {
            (None, None) => true,
            (Some(_), Some(s)) => expected == Some(s),
            _ => false,
        };
        if !same {
            let shown = |side: usize, s: Option<usize>| match s {
                Some(s) => label(&records[side][s]),
                None => "none".to_owned(),
            };
            out.push(Change {
                own: false,
                ..change(
                    format!("source {position}"),
                    &shown(0, of_a),
                    &shown(1, of_b),
                )
            });
        }
    }
    out
}

/// Returns a record's name with its op: `Qcur-0` (ROPE).
pub(super) fn label(t: &Record) -> String {
    let op = match t.is_leaf() {
        true => "leaf",
        false => t.op.name(),
    };
    format!("`{}` ({op})", t.name)
}

fn list(sizes: [u64; 4]) -> String {
    format!("{sizes:?}")
}

fn parameter_changes(a: &Record, b: &Record, out: &mut Vec<Change>) {
    if effective_words(a) != effective_words(b) {
        let (of_a, of_b) = (parameters(a), parameters(b));
        let before = out.len();
        if of_a.len() == of_b.len() {
            for ((name, x), (_, y)) in of_a.iter().zip(&of_b).filter(|(x, y)| x.1 != y.1) {
                out.push(change(name.as_str(), &x, &y));
            }
        }
        if out.len() == before {
            let words = |t: &Record| format!("{:?}", effective_words(t));
            out.push(change("op_params", &words(a), &words(b)));
        }
        return;
    }
    // Words without effect on the result.
    let word = |t: &Record, i: usize| t.words.get(i).copied().unwrap_or(0);
    for i in 0..a.words.len().max(b.words.len()) {
        let hint = matches!(a.op.word_use(i), WordUse::Ignored(_));
        if hint && !a.is_pure_view() && word(a, i) != word(b, i) {
            out.push(Change {
                own: false,
                ..change(format!("op_params[{i}]"), &word(a, i), &word(b, i))
            });
        }
    }
}
