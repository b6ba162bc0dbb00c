//! The measurements of a file, and complaints about its other lines.

use tpc_diag::{Diagnostic, codes};

use super::measured::{Measurement, Test};

/// The longest file that is read, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// The most measurements of a file that are used.
pub const MAX_ROWS: usize = 2000;

/// The maximum number of separate complaints about lines.
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

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Measurement speeds, in the file's order.
    pub rows: Vec<Measurement>,
    /// Buffers that a log states.
    pub buffers: Vec<LogBuffer>,
    /// The complaints about lines that cannot be used.
    pub complaints: Vec<Diagnostic>,
    /// The number of further such lines.
    pub further: usize,
}

impl Reading {
    /// Records a line that cannot be used: the mistake, and its correction.
    pub(super) fn complain(&mut self, file: &str, line: usize, wrong: &str, cure: &str) {
        if self.complaints.len() >= MAX_COMPLAINTS {
            self.further += 1;
            return;
        }
        let message = format!("{file}, line {line}: {wrong}");
        let d = Diagnostic::milder(&codes::CALIBRATION_FILE, file, message);
        self.complaints.push(d.help(cure));
    }

    /// Adds a row, if there is room and its numbers are plausible.
    pub(super) fn row(&mut self, file: &str, row: Measurement) {
        let (Test::Prompt(tokens) | Test::Generation(tokens)) = row.test;
        let usual = tokens > 0 && tokens <= 1 << 24 && row.depth <= 1 << 32;
        if !usual || !row.speed.is_finite() || !(1e-4..1e8).contains(&row.speed) {
            let wrong = format!(
                "implausible speed: {} tokens/s for {}",
                row.speed,
                row.name()
            );
            let cure = "expected a speed above 0 and a test of at least one token";
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
