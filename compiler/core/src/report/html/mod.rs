//! Writes a plan as one HTML page without external resources.
//!
//! The page has the data of the other formats. Tensors and steps of equal layers share an entry. Names come from
//! untrusted files, so they are embedded as JSON with escaped `<`, `>` and `&`, and scripts insert them as text, never
//! as markup.

mod data;
mod names;
mod numbering;
mod runs;
mod steps;
mod tables;

use std::fmt::Write;

use serde::Serialize;

use super::plan::PlanReport;
use super::table::{Detail, render};
use crate::pipeline::CompiledModel;
use tpc_diag::Diagnostic;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The scripts, in order of execution. They share one scope.
const SCRIPTS: [&str; 8] = [
    include_str!("page/dom.js"),
    include_str!("page/model.js"),
    include_str!("page/split.js"),
    include_str!("page/summary.js"),
    include_str!("page/layers.js"),
    include_str!("page/tensors.js"),
    include_str!("page/timeline.js"),
    include_str!("page/page.js"),
];

/// Columns of the text for browsers without scripts.
const TEXT_WIDTH: u16 = 110;

/// Returns the page of a plan.
///
/// # Errors
/// Returns an error if the data cannot be serialised.
pub fn page(report: &PlanReport, compiled: &CompiledModel) -> Result<String, serde_json::Error> {
    let text = render(report, TEXT_WIDTH, Detail::Brief);
    let data = data::PageData::new(report, compiled)?;
    fill(&report.model.name, &text, &data)
}

#[derive(Serialize)]
struct Refusal<'a> {
    path: &'a str,
    refused: &'a [Diagnostic],
}

/// Returns the page of a model that could not be planned.
///
/// # Errors
/// Returns an error if the data cannot be serialised.
pub fn refusal_page(path: &str, diagnostics: &[Diagnostic]) -> Result<String, serde_json::Error> {
    let mut text = format!("{path}: no plan\n");
    for d in diagnostics {
        let _ = write!(text, "\n{}: {d}\n", d.code);
        if let Some(help) = &d.help {
            let _ = writeln!(text, "help: {help}");
        }
    }
    let refused = diagnostics;
    fill(path, &text, &Refusal { path, refused })
}

fn fill(title: &str, text: &str, data: &impl Serialize) -> Result<String, serde_json::Error> {
    let data = in_script(&serde_json::to_string(data)?);
    let mut out = String::with_capacity(TEMPLATE.len() + STYLE.len() + data.len());
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (slot, after) = after.split_once("}}").unwrap_or((after, ""));
        out.push_str(before);
        match slot {
            "title" => out.push_str(&as_text(title)),
            "text" => out.push_str(&as_text(text)),
            "style" => out.push_str(STYLE),
            "data" => out.push_str(&data),
            _ => SCRIPTS.iter().for_each(|s| out.push_str(s)),
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

fn as_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\0' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON, so that browsers find no markup, comment or end of the script in it.
fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_every_slot_once_and_no_other() {
        let slots: Vec<&str> = TEMPLATE
            .split("{{")
            .skip(1)
            .filter_map(|s| s.split_once("}}").map(|(slot, _)| slot))
            .collect();
        assert_eq!(slots, ["title", "style", "text", "data", "script"]);
    }

    #[test]
    fn the_parts_of_the_page_do_not_end_their_element() {
        assert!(!STYLE.contains("</"), "the style ends early");
        for s in SCRIPTS {
            assert!(!s.contains("</") && !s.contains("<!--"), "{s}");
            assert!(!s.contains("innerHTML") && !s.contains("insertAdjacentHTML"));
        }
    }

    #[test]
    fn hostile_text_is_only_text() {
        let evil = "</script><!--\"'&\u{2028}";
        let json = in_script(&serde_json::to_string(evil).expect("a string"));
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        let back: String = serde_json::from_str(&json).expect("still JSON");
        assert_eq!(back, evil);
        assert_eq!(
            as_text("<a b=\"&\">\0"),
            "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}"
        );
    }
}
