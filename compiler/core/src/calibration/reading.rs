use tpc_diag::{Diagnostic, codes};

use super::measured::{Measurement, Test};

/// Maximum file size in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of measurements in a file.
pub const MAX_ROWS: usize = 2000;

const MAX_COMPLAINTS: usize = 20;

/// A buffer in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogBuffer {
    /// The device's name in the log.
    pub device: String,
    /// `model`, `KV`, `compute` or another word.
    pub kind: String,
    /// Size in MiB.
    pub mib: f64,
}

/// The content of a measurement file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Measured speeds, in the file's order.
    pub rows: Vec<Measurement>,
    /// Buffers in the log.
    pub buffers: Vec<LogBuffer>,
    /// Diagnostics about unusable lines.
    pub complaints: Vec<Diagnostic>,
    /// Number of complaints beyond the maximum.
    pub further: usize,
}

impl Reading {
    pub(super) fn complain(&mut self, file: &str, line: usize, wrong: &str, cure: &str) {
        if self.complaints.len() >= MAX_COMPLAINTS {
            self.further += 1;
            return;
        }
        let message = format!("{file}, line {line}: {wrong}");
        let d = Diagnostic::milder(&codes::CALIBRATION_FILE, file, message);
        self.complaints.push(d.help(cure));
    }

    /// Adds a row if its numbers are plausible and the maximum is not reached.
    pub(super) fn row(&mut self, file: &str, row: Measurement) {
        let (Test::Prompt(tokens) | Test::Generation(tokens)) = row.test;
        let usual = tokens > 0 && tokens <= 1 << 24 && row.depth <= 1 << 32;
        if !usual || !row.speed.is_finite() || !(1e-4..1e8).contains(&row.speed) {
            let wrong = format!(
                "implausible speed: {} tokens/s for {}",
                row.speed,
                row.name()
            );
            let cure = "give a speed above 0 and a test of at least one token";
            self.complain(file, row.line, &wrong, cure);
        } else if self.rows.len() >= MAX_ROWS {
            let wrong = format!("more than {MAX_ROWS} measurements");
            self.complain(
                file,
                row.line,
                &wrong,
                "remove the rows that you do not need",
            );
        } else {
            self.rows.push(row);
        }
    }
}
