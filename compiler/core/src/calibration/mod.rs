//! Measurements (llama-bench's output or a server's log), the machine's factors fitted to them, and the error bands of
//! estimates.

mod bands;
mod csv;
mod fields;
mod fit;
mod json;
mod log;
mod markdown;
mod measured;
mod read;
mod reading;

pub use bands::{
    Band, BandTable, Cell, CellKey, LEAST_ROWS, ObservedError, band_of, table as band_table,
};
pub use fit::{CalibrationFit, ReproducedRow, calibrate};
pub use measured::{Measurement, Test};
pub use read::read;
pub use reading::{LogBuffer, MAX_BYTES, MAX_ROWS, Reading};

#[cfg(test)]
mod tests;
