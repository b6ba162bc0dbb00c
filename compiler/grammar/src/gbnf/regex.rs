use std::fmt::Write;

use super::rules::{Expr, ExprId, Rules};

/// Returns the regular expression of expressions that follow each other and reach no recursive rule. It is empty if only
/// the empty text matches.
pub(super) fn regex(rules: &Rules, items: &[ExprId]) -> String {
    let mut out = String::new();
    items
        .iter()
        .for_each(|&item| write_regex(rules, item, &mut out));
    out
}

fn write_regex(rules: &Rules, id: ExprId, out: &mut String) {
    match &rules.exprs[id] {
        Expr::Class(set) => set.write_regex(out),
        Expr::Rule(rule) => write_regex(rules, rules.bodies[*rule], out),
        Expr::Seq(items) => items.iter().for_each(|&item| write_regex(rules, item, out)),
        Expr::Alt(items) => {
            out.push_str("(?:");
            for (i, &item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { "|" });
                write_regex(rules, item, out);
            }
            out.push(')');
        }
        Expr::Repeat { item, min, max } => {
            let start = out.len();
            out.push_str("(?:");
            write_regex(rules, *item, out);
            if out.ends_with("(?:") {
                // The empty text, repeated, is empty.
                out.truncate(start);
                return;
            }
            out.push(')');
            write_bounds(*min, *max, out);
        }
    }
}

/// Appends the bounds of a repetition.
pub(super) fn write_bounds(min: u32, max: Option<u32>, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = match (min, max) {
        (0, None) => write!(out, "*"),
        (1, None) => write!(out, "+"),
        (0, Some(1)) => write!(out, "?"),
        (min, None) => write!(out, "{{{min},}}"),
        (min, Some(max)) => write!(out, "{{{min},{max}}}"),
    };
}
