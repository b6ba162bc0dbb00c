//! Several plans side by side.

use super::answer::percent;
use super::columns::{Align, Columns};
use super::plan::PlanReport;
use crate::format::{printable, speed, wrapped};
use tpc_diag::Diagnostic;

/// One of several plans, or why there is none.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The model's file.
    pub path: &'a str,
    /// The devices, as they were asked for.
    pub devices: &'a str,
    /// The plan, or the reasons why there is none.
    pub plan: Result<&'a PlanReport, &'a [Diagnostic]>,
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\'])
        .find(|p| !p.is_empty())
        .unwrap_or(path)
}

/// The plans as a table for a terminal of `width` columns, and the commands that run them: no line is wider.
pub fn render_comparison(all: &[Compared<'_>], width: u16) -> String {
    use Align::{Left, Right};
    let width = usize::from(width);
    let mut t = Columns::new(&[
        ("", Right),
        ("model", Left),
        ("devices", Left),
        ("context", Right),
        ("fits", Left),
        ("used", Right),
        ("split", Left),
        ("tokens/s", Right),
        ("prompt t/s", Right),
    ]);
    for (i, c) in all.iter().enumerate() {
        let number = (i + 1).to_string();
        let model = printable(file_name(c.path));
        let devices = printable(c.devices);
        match c.plan {
            Ok(report) => t.row(row(report, [number, model, devices])),
            Err(_) => {
                let nothing = || "–".to_owned();
                let mut cells = vec![number, model, devices, nothing(), "no plan".to_owned()];
                cells.extend((0..4).map(|_| nothing()));
                t.row(cells);
            }
        }
    }
    let mut out = t.render(width);
    out.push('\n');
    for (i, c) in all.iter().enumerate() {
        match c.plan {
            Ok(report) => {
                if let Some(command) = &report.commands.tpc {
                    out.push_str(&wrapped(&format!("run {}:", i + 1), width, 2));
                    out.push_str(&command.lines(width, 2));
                }
            }
            Err(diagnostics) => {
                let why = diagnostics.first();
                let why = why.map_or_else(String::new, |d| format!("{}: {d}", d.code));
                out.push_str(&wrapped(
                    &printable(&format!("no plan {}: {why}", i + 1)),
                    width,
                    2,
                ));
            }
        }
    }
    out
}

fn row(report: &PlanReport, [number, model, devices]: [String; 3]) -> Vec<String> {
    let fits = match report.fits() {
        Some(true) if report.has_errors() => "error",
        Some(true) => "yes",
        Some(false) => "no",
        None if report.has_errors() => "error",
        None => "?",
    };
    // Where no memory is known, the bytes of the fullest device.
    let used = report
        .fullest_in_words()
        .map(|(_, share)| format!("{} %", percent(share)))
        .or_else(|| {
            report
                .largest()
                .map(|d| crate::format::bytes(d.total_bytes))
        });
    let split = report.considered.iter().find(|c| c.chosen);
    let split = split.map_or(report.split_mode, |c| c.name.as_str());
    vec![
        number,
        model,
        devices,
        report.model.n_ctx.to_string(),
        fits.to_owned(),
        used.unwrap_or_default(),
        split.to_owned(),
        speed(report.estimate.decode_tps),
        speed(report.estimate.prompt_tps),
    ]
}
