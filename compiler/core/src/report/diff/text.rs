use std::fmt::Write;

use super::{Fact, PlaceChange, PlanDiff, TensorChange};
use crate::format::{bytes, printable, span, speed, wrapped};
use crate::report::columns::{Align, Columns};

/// Formats the difference in lines of at most `width` columns.
pub fn render_diff(diff: &PlanDiff, width: u16) -> String {
    let width = usize::from(width);
    let mut out = String::new();
    let since = printable(&diff.since);
    if diff.same_model {
        let head = format!("{}: since {since}", printable(&diff.models.new));
        out.push_str(&wrapped(&head, width, 2));
    } else {
        let head = format!(
            "{since} is of another model: {}, not {}. Tensors are not compared.",
            printable(&diff.models.old),
            printable(&diff.models.new)
        );
        out.push_str(&wrapped(&head, width, 2));
    }
    if diff.is_empty() {
        out.push_str("no differences\n");
        return out;
    }
    if !(diff.changed.is_empty() && diff.places.is_empty()) {
        out.push_str(&changes(diff).render(width));
    }
    let tensors: String = diff.tensors.iter().map(tensor).collect();
    if !tensors.is_empty() {
        out.push_str("tensors:\n");
        out.push_str(&wrapped(&tensors, width, 4));
    }
    for (title, findings) in [
        ("new findings:", &diff.new_findings),
        ("findings only in the earlier plan:", &diff.gone_findings),
    ] {
        if findings.is_empty() {
            continue;
        }
        let mut text = format!("{title}\n");
        for f in findings {
            let about = match f.message.contains(&f.entity) {
                true => String::new(),
                false => format!("{}: ", f.entity),
            };
            let message = printable(&format!("{about}{}", f.message));
            let _ = writeln!(text, "  {}  {message}", f.code);
        }
        out.push_str(&wrapped(&text, width, 4));
    }
    out
}

fn changes(diff: &PlanDiff) -> Columns {
    let columns = [
        ("", Align::Left),
        ("then", Align::Left),
        ("now", Align::Left),
        ("", Align::Left),
    ];
    let mut t = Columns::new(&columns);
    for c in &diff.changed {
        let more = match (&c.old, &c.new) {
            (Fact::Speed(a), Fact::Speed(b)) if *a > 0.0 => {
                format!("{:+.0} %", (b / a - 1.0) * 100.0)
            }
            (Fact::Count(a), Fact::Count(b)) if c.what == "model_bytes" => signed_bytes(*a, *b),
            _ => String::new(),
        };
        let fact = |f: &Fact| shown(c.what, f);
        t.row(vec![
            fact_name(c.what).to_owned(),
            fact(&c.old),
            fact(&c.new),
            more,
        ]);
    }
    for p in &diff.places {
        t.row(vec![
            printable(&p.name),
            held(p.old_bytes, p.old_capacity_bytes),
            held(p.new_bytes, p.new_capacity_bytes),
            change_of(p),
        ]);
    }
    t
}

fn tensor(c: &TensorChange) -> String {
    let layers = match c.layers.as_slice() {
        [] => String::new(),
        [one] => format!(", layer {one}"),
        many => format!(", layers {}", span(many)),
    };
    let state = |s: &Option<String>| {
        s.as_deref()
            .map_or_else(|| "not there".to_owned(), printable)
    };
    format!(
        "  {}{layers}: {} → {}\n",
        printable(&c.tensor),
        state(&c.old),
        state(&c.new)
    )
}

fn fact_name(what: &str) -> &str {
    match what {
        "model" => "file",
        "model_bytes" => "size",
        "split_mode" => "split",
        "decode_tps" => "tokens/s",
        "prompt_tps" => "prompt tokens/s",
        other => other,
    }
}

fn shown(what: &str, fact: &Fact) -> String {
    match fact {
        Fact::Word(w) => printable(w),
        Fact::Count(n) if what == "model_bytes" => bytes(*n),
        Fact::Count(n) => n.to_string(),
        Fact::Speed(tps) => speed(*tps),
    }
}

fn held(total: Option<u64>, capacity: Option<u64>) -> String {
    match (total, capacity) {
        (None, _) => "not there".to_owned(),
        (Some(n), None) => bytes(n),
        (Some(n), Some(c)) => format!("{} of {}", bytes(n), bytes(c)),
    }
}

fn change_of(p: &PlaceChange) -> String {
    match (p.old_bytes, p.new_bytes) {
        (Some(a), Some(b)) => signed_bytes(a, b),
        _ => String::new(),
    }
}

/// Formats a difference: `+1.20 GiB`, `-640 MiB`.
fn signed_bytes(old: u64, new: u64) -> String {
    let sign = if new < old { "-" } else { "+" };
    format!("{sign}{}", bytes(old.abs_diff(new)))
}
