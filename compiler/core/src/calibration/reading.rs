//! The reading of a file with measurements, in any of the forms that llama.cpp prints.

use tpc_diag::suggest::shorten;
use tpc_diag::{Diagnostic, codes};

use super::measured::{Measured, Test};
use super::{csv, json, log, markdown};

/// The longest file that is read, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// The most measurements of a file that are used.
pub const MAX_ROWS: usize = 2000;

/// The most lines that are complained about one by one.
const MAX_COMPLAINTS: usize = 20;

/// A buffer that a log states.
#[derive(Clone, Debug, PartialEq)]
pub struct LogBuffer {
    /// The device, as the log names it.
    pub device: String,
    /// `model`, `KV`, `compute` or another word.
    pub kind: String,
    /// MiB.
    pub mib: f64,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Measured speeds, in the file's order.
    pub rows: Vec<Measured>,
    /// Buffers that a log states.
    pub buffers: Vec<LogBuffer>,
    /// Lines that cannot be used, and why.
    pub complaints: Vec<Diagnostic>,
    /// Further such lines, which are counted alone.
    pub further: usize,
}

impl Reading {
    /// A line that cannot be used: what is wrong, and what stands there otherwise.
    pub(super) fn complain(&mut self, file: &str, line: usize, wrong: &str, cure: &str) {
        if self.complaints.len() >= MAX_COMPLAINTS {
            self.further += 1;
            return;
        }
        let message = format!("{file}, line {line}: {wrong}");
        let d = Diagnostic::milder(&codes::CALIBRATION_FILE, file, message);
        self.complaints.push(d.help(cure));
    }

    /// A row, as long as there is room and its numbers make sense.
    pub(super) fn row(&mut self, file: &str, row: Measured) {
        let (Test::Prompt(tokens) | Test::Generation(tokens)) = row.test;
        let usual = tokens > 0 && tokens <= 1 << 24 && row.depth <= 1 << 32;
        if !usual || !row.speed.is_finite() || !(1e-4..1e8).contains(&row.speed) {
            let wrong = format!("{} tokens/s of {} cannot be", row.speed, row.name());
            let cure = "a speed is a number above 0, a test has one token at least";
            self.complain(file, row.line, &wrong, cure);
        } else if self.rows.len() >= MAX_ROWS {
            let wrong = format!("more than {MAX_ROWS} measurements");
            self.complain(file, row.line, &wrong, "give the ones that matter");
        } else {
            self.rows.push(row);
        }
    }
}

/// Reads llama-bench's output (md, json, jsonl, csv) or a log; which it is follows from the text.
///
/// # Errors
/// [`Diagnostic`] when nothing in the file is a measurement.
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
        let message = format!("{file} has no measurement: {shown}");
        let d = Diagnostic::new(&codes::CALIBRATION_FILE, file, message);
        let cure = "give what `llama-bench -o md` (or json, jsonl, csv) prints, or a log of llama-server with its lines \
                    `eval time = … tokens per second`";
        out.complaints.insert(0, d.help(cure));
        return Err(out.complaints);
    }
    Ok(out)
}

/// The test of a name such as `pp512`, `tg128 @ d4096`; `None` of any other.
pub(super) fn test(name: &str) -> Option<(Test, u64)> {
    let (test, depth) = match name.split_once('@') {
        Some((test, depth)) => (test.trim(), depth.trim().strip_prefix('d')?.parse().ok()?),
        None => (name.trim(), 0),
    };
    let test = match (test.strip_prefix("pp"), test.strip_prefix("tg")) {
        (Some(n), _) => Test::Prompt(n.parse().ok()?),
        (_, Some(n)) => Test::Generation(n.parse().ok()?),
        _ => return None,
    };
    Some((test, depth))
}

/// What is wrong with a test that is neither.
pub(super) const BOTH: &str =
    "the prompt and the generation are measured in one, and cannot be told apart";

/// Shares such as `3/1` or `3,1`; `None` of zeros and of other texts.
pub(super) fn shares(text: &str) -> Option<Vec<f64>> {
    let parts = text
        .split(['/', ',', ';'])
        .map(|p| p.trim().parse::<f64>().ok());
    let parts: Option<Vec<f64>> = parts.collect();
    let all = parts.filter(|p| p.len() <= 64 && p.iter().all(|x| x.is_finite() && *x >= 0.0))?;
    all.iter().any(|x| *x > 0.0).then_some(all)
}

/// Fields that llama-bench's forms share, put into a row.
pub(super) fn field(row: &mut Measured, name: &str, value: &str) {
    let value = value.trim();
    let number = || value.parse::<u64>().ok();
    match name {
        "model_n_params" => row.params = value.parse().ok(),
        "ngl" | "n_gpu_layers" => row.gpu_layers = number(),
        "n_cpu_moe" | "ncmoe" => row.host_experts = number().filter(|n| *n > 0),
        "sm" | "split_mode" => row.split_mode = Some(value.to_owned()).filter(|v| !v.is_empty()),
        "ts" | "tensor_split" => row.shares = shares(value),
        "n_ubatch" => row.ubatch = number().filter(|n| *n > 0),
        "type_k" => row.cache_types[0] = Some(value.to_owned()),
        "type_v" => row.cache_types[1] = Some(value.to_owned()),
        "dev" | "devices" if !value.is_empty() && value != "auto" => {
            row.devices = Some(value.split(['/', ';', ',']).count());
        }
        _ => {}
    }
}
