//! Packs a file's blocks into panels.

use super::layout::geometry::Geometry;
use super::layout::{Codes, Layout, ROWS, STEP, Scales};
use super::part::BLOCK;

pub(super) struct PackPanel<'a> {
    pub geometry: &'a Geometry,
    /// Up to 16 rows, in sequence.
    pub rows: &'a [u8],
    /// Bytes between rows.
    pub stride: usize,
    /// Index in K of each row's first element.
    pub from: usize,
    /// First block of 32 to pack, numbered in the file's whole rows.
    pub first: usize,
}

/// Packs a panel into zeroed bytes. Missing rows stay zero, which all types decode to finite numbers.
pub(super) fn pack_panel<L: Layout>(from: &PackPanel, panel: &mut [u8]) {
    for (row, bytes) in from.rows.chunks(from.stride).enumerate() {
        pack_row::<L>(from, bytes, row, panel);
    }
}

fn pack_row<L: Layout>(from: &PackPanel, bytes: &[u8], row: usize, panel: &mut [u8]) {
    let geometry = from.geometry;
    let per = L::BLOCK / BLOCK;
    let start = from.first * BLOCK;
    let skip = (start - from.from) / L::BLOCK;
    let mut file = (start / L::BLOCK) * per;
    let mut codes = [0; 256];
    for block in bytes.chunks_exact(L::BYTES).skip(skip) {
        if file >= from.first + geometry.blocks {
            break;
        }
        codes[..L::BLOCK].fill(0);
        L::codes(block, &mut codes);
        let inside = file.max(from.first)..(file + per).min(from.first + geometry.blocks);
        for g in inside.clone() {
            let step = geometry.step(g - from.first, g - from.first + 1);
            let (codes, _) = codes[(g - file) * BLOCK..].as_chunks::<BLOCK>();
            L::Codes::put(&codes[0], row, &mut panel[step.body..]);
        }
        let local = inside.start - from.first;
        let step = geometry.step(local, local + 1);
        let index = if L::Scales::PER_BLOCK { local } else { file };
        let (head, behind) = panel.split_at_mut(geometry.steps_bytes());
        let behind = &mut behind[step.behind - geometry.steps_bytes()..];
        L::Scales::put(
            block,
            index % STEP / per,
            row,
            &mut head[step.head.start..],
            behind,
        );
        file += per;
    }
}

/// Packs row `row` of plain elements of `bytes` bytes. Element `e` of all rows is adjacent.
pub(super) fn pack_plain(elements: &[u8], row: usize, bytes: usize, panel: &mut [u8]) {
    let elements = elements.chunks_exact(bytes);
    for (element, out) in elements.zip(panel.chunks_exact_mut(ROWS * bytes)) {
        out[row * bytes..(row + 1) * bytes].copy_from_slice(element);
    }
}
