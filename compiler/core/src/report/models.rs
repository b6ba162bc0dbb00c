//! Models in caches, as a table.

use super::columns::{Align, Columns};
use crate::format::{bytes, count, printable};

/// A row of the table of models.
#[derive(Clone, Debug, Default)]
pub struct ModelRow {
    /// The name that finds the model.
    pub name: String,
    /// The quantisation, or the type of most weights.
    pub quant: Option<String>,
    /// The architecture.
    pub arch: Option<String>,
    /// Elements of all tensors.
    pub params: Option<u64>,
    /// The bytes on disk.
    pub bytes: u64,
    /// The program that keeps the model.
    pub source: String,
    /// The answer to the question if it fits, or the condition of the files.
    pub fits: String,
}

/// Formats models as a table for a terminal of `width` columns.
pub fn render_models(rows: &[ModelRow], width: u16) -> String {
    use Align::{Left, Right};
    let mut t = Columns::new(&[
        ("model", Left),
        ("type", Left),
        ("architecture", Left),
        ("params", Right),
        ("size", Right),
        ("from", Left),
        ("fits", Left),
    ]);
    for row in rows {
        let text = |t: &Option<String>| t.as_deref().map_or_else(|| "-".to_owned(), printable);
        t.row(vec![
            printable(&row.name),
            text(&row.quant),
            text(&row.arch),
            row.params.map_or_else(|| "-".to_owned(), count),
            bytes(row.bytes),
            row.source.clone(),
            row.fits.clone(),
        ]);
    }
    t.render(usize::from(width))
}
