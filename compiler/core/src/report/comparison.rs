use super::answer::percent;
use super::columns::{Align, Columns};
use super::plan::PlanReport;
use crate::format::{bytes, printable, speed, wrapped};
use tpc_diag::Diagnostic;

/// A compared plan.
#[derive(Clone, Copy, Debug)]
pub struct ComparedPlan<'a> {
    /// The model's file.
    pub path: &'a str,
    /// The requested devices.
    pub devices: &'a str,
    /// The plan, or the reasons why it failed.
    pub plan: Result<&'a PlanReport, &'a [Diagnostic]>,
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\'])
        .find(|p| !p.is_empty())
        .unwrap_or(path)
}

/// Formats a table of the plans, and the command of each model's fastest fitting plan, for a terminal of `width`
/// columns.
pub fn render_comparison(all: &[ComparedPlan<'_>], width: u16) -> String {
    use Align::{Left, Right};
    let width = usize::from(width);
    let mut t = Columns::new(&[
        ("", Right),
        ("devices", Left),
        ("context", Right),
        ("fits", Left),
        ("fullest", Right),
        ("tokens/s", Right),
        ("prompt t/s", Right),
        ("split", Left),
    ]);
    for models in all.chunk_by(|a, b| a.path == b.path) {
        t.heading(format!("{}:", printable(file_name(models[0].path))));
        for c in models {
            let devices = printable(c.devices);
            match c.plan {
                Ok(report) => t.row(row(report, [number(all, c), devices])),
                Err(_) => {
                    let nothing = || "–".to_owned();
                    let mut cells = vec![number(all, c), devices, nothing(), "no plan".to_owned()];
                    cells.extend((0..4).map(|_| nothing()));
                    t.row(cells);
                }
            }
        }
    }
    let mut out = t.render(width);
    out.push('\n');
    for models in all.chunk_by(|a, b| a.path == b.path) {
        if let Some((c, report)) = fastest(models)
            && let Some(command) = &report.commands.tpc
        {
            out.push_str(&wrapped(&format!("run {}:", number(all, c)), width, 2));
            out.push_str(&command.lines(width, 2));
        }
    }
    out
}

fn number(all: &[ComparedPlan<'_>], of: &ComparedPlan<'_>) -> String {
    let at = all.iter().position(|c| std::ptr::eq(c, of));
    at.map_or_else(String::new, |i| (i + 1).to_string())
}

/// Returns the fastest plan that fits, or whose memory is unknown.
fn fastest<'a, 'b>(all: &'b [ComparedPlan<'a>]) -> Option<(&'b ComparedPlan<'a>, &'a PlanReport)> {
    let usable = all.iter().filter_map(|c| Some((c, c.plan.ok()?)));
    let usable = usable.filter(|(_, r)| r.fits() != Some(false) && !r.has_errors());
    let mut out: Option<(&ComparedPlan<'_>, &PlanReport)> = None;
    for (c, r) in usable {
        if out.is_none_or(|(_, o)| r.estimate.decode_tps > o.estimate.decode_tps) {
            out = Some((c, r));
        }
    }
    out
}

fn row(report: &PlanReport, [number, devices]: [String; 2]) -> Vec<String> {
    let fits = match report.fits() {
        Some(false) => "no",
        _ if report.has_errors() => "error",
        Some(true) => "yes",
        None => "?",
    };
    // If all memory is unknown, show the bytes of the fullest device.
    let fullest = report
        .fullest_share()
        .map(|share| format!("{} %", percent(share)))
        .or_else(|| report.largest().map(|d| bytes(d.total_bytes)));
    let split = report.considered.iter().find(|c| c.chosen);
    let split = split.map_or(report.split_mode, |c| c.name.as_str());
    vec![
        number,
        devices,
        report.model.n_ctx.to_string(),
        fits.to_owned(),
        fullest.unwrap_or_default(),
        speed(report.estimate.decode_tps),
        speed(report.estimate.prompt_tps),
        split.to_owned(),
    ]
}
