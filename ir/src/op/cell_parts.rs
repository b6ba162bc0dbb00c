//! The parts of cells in the attributes of ops: `cell_parts = first:count, of = n`.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use crate::cells::CellParts;
use crate::interval::Interval;

pub(super) fn attrs(cells: &CellParts, out: &mut Attrs) {
    let held = Interval {
        start: cells.first,
        len: cells.count,
    };
    out.push(("cell_parts", Attr::Interval(held)));
    out.push(("of", Attr::from(cells.of)));
}

pub(super) fn parse(attrs: &mut AttrReader) -> Result<Option<CellParts>, AttrError> {
    let Some(held) = attrs.interval("cell_parts")? else {
        return Ok(None);
    };
    let of = require("of", attrs.int("of")?)?;
    // A larger number would let the sizes of hostile text overflow.
    let fits = held.len > 0 && held.end() <= of && of <= 1 << 16;
    match fits {
        true => Ok(Some(CellParts {
            first: held.start,
            count: held.len,
            of,
        })),
        false => Err(AttrError::Kind {
            name: "cell_parts",
            expected: "a non-empty range of at most 65536 parts",
        }),
    }
}
