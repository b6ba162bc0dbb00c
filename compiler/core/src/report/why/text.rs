use std::fmt::Write;

use super::report::{Size, ThroughReport, WhyReport};
use crate::format::{printable, span, wrapped};
use crate::report::kinds;

pub(crate) fn render(all: &[WhyReport], width: u16) -> String {
    let mut out = String::new();
    for w in all {
        let size = |s: &Size| match s {
            Size::Number(n) => n.to_string(),
            Size::Symbolic(s) => format!("[{s}]"),
        };
        let shape: Vec<String> = w.ne.iter().map(size).collect();
        let mut head = format!(
            "\nwhy {} ({} {}): {}\n",
            printable(&w.tensor),
            w.dtype,
            shape.join("×"),
            w.headline
        );
        if w.layers.len() > 1 {
            let _ = writeln!(head, "  the same in layers {}", span(&w.layers));
        }
        for (a, factors) in w.axes.iter().enumerate().filter(|(_, f)| !f.is_empty()) {
            let _ = writeln!(head, "  axis {a} = {factors}");
        }
        out.push_str(&wrapped(&head, width.into(), 6));
        for f in &w.factors {
            let kind = f.kind.map_or_else(String::new, |k| format!(" ({k})"));
            let text = format!(
                "  {}: {}{kind}, {}\n      {}",
                f.factor,
                size(&f.size),
                f.text,
                linked_tensors(&f.through, w)
            );
            out.push_str(&wrapped(&text, width.into(), 6));
        }
    }
    out
}

/// Lists other tensors with this factor, at most `SHOWN`. Tensors of the same layer come first.
fn linked_tensors(all: &[ThroughReport], of: &WhyReport) -> String {
    const SHOWN: usize = 8;
    let others: Vec<&ThroughReport> = all.iter().filter(|t| t.tensor != of.tensor).collect();
    if others.is_empty() {
        return "in no other weight or state".to_owned();
    }
    // Names in the same layer differ only in their last words.
    let head = of
        .tensor
        .strip_suffix(&kinds::suffix(&of.tensor))
        .unwrap_or_default();
    let (near, far): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|t| t.tensor.starts_with(head));
    let shown: Vec<String> = near
        .iter()
        .chain(&far)
        .take(SHOWN)
        .map(|t| format!("{} {}", t.tensor, t.text))
        .collect();
    let more = near.len() + far.len() - shown.len();
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("also in {}{more}", shown.join(", "))
}
