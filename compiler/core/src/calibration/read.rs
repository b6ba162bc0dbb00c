use tpc_diag::suggest::shorten;
use tpc_diag::{Diagnostic, codes};

use super::reading::Reading;
use super::{csv, json, log, markdown};

/// Reads llama-bench's output (md, json, jsonl, csv) or a log. Detects the format.
///
/// # Errors
/// Returns a [`Diagnostic`] if the file contains no measurement.
pub fn read(file: &str, text: &str) -> Result<Reading, Vec<Diagnostic>> {
    let mut out = Reading::default();
    let first = text.lines().map(str::trim).find(|l| !l.is_empty());
    let start = first.unwrap_or_default();
    if start.starts_with('[') && !log::is_line(start) || start.starts_with('{') {
        json::read(file, text, &mut out);
    } else if let Some((line, header)) = csv::header(text) {
        csv::read(file, text, line, &header, &mut out);
    } else {
        markdown::read(file, text, &mut out);
        log::read(file, text, &mut out);
    }
    if out.rows.is_empty() {
        let shown = match start {
            "" => "the file is empty".to_owned(),
            start => format!("it starts `{}`", shorten(start)),
        };
        let message = format!("{file} contains no measurement: {shown}");
        let d = Diagnostic::new(&codes::CALIBRATION_FILE, file, message);
        let cure = "give the output of `llama-bench -o md` (or json, jsonl, csv), or a llama-server log with lines \
                    such as `eval time = … tokens per second`";
        out.complaints.insert(0, d.help(cure));
        return Err(out.complaints);
    }
    Ok(out)
}
