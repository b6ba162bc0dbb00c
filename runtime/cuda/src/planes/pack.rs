use tpc_ir::DType;

use super::codes::block;
use super::{PLANES, Planes};

/// An error: the size of a buffer does not match the rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} bytes of {what}, expected {expected}")]
pub struct PackError {
    what: &'static str,
    found: usize,
    expected: usize,
}

fn fits(what: &'static str, found: usize, expected: usize) -> Result<(), PackError> {
    match found == expected {
        true => Ok(()),
        false => Err(PackError {
            what,
            found,
            expected,
        }),
    }
}

impl Planes {
    /// Returns the bytes of a row in the file.
    pub const fn file_bytes(&self) -> usize {
        let block = self.dtype.block_len() as usize;
        self.groups * 32 / block * self.dtype.block_bytes() as usize
    }

    /// Returns the memory of a weight with these rows: all planes, at their [offsets](Planes::offsets). The gaps after
    /// planes contain the byte `gap`.
    ///
    /// # Errors
    ///
    /// Returns an error if the buffer does not have the size of whole rows.
    pub fn packed(&self, rows: &[u8], threads: usize, gap: u8) -> Result<Vec<u8>, PackError> {
        let n = rows.len() / self.file_bytes();
        let offsets = self.offsets(n as u64);
        let (offsets, end) = offsets.expect("invariant: the rows are in memory");
        let mut parts = self.row_bytes().map(|bytes| vec![gap; bytes * n]);
        self.pack(rows, parts.each_mut().map(Vec::as_mut_slice), threads)?;
        let mut out = vec![gap; end as usize];
        for (part, at) in parts.iter().zip(offsets) {
            out[at as usize..at as usize + part.len()].copy_from_slice(part);
        }
        Ok(out)
    }

    /// Packs whole rows into planes, with `threads` threads.
    ///
    /// # Errors
    ///
    /// Returns an error if a buffer does not have the size of whole rows.
    pub fn pack(
        &self,
        rows: &[u8],
        planes: [&mut [u8]; PLANES],
        threads: usize,
    ) -> Result<(), PackError> {
        let each = self.file_bytes();
        let n = rows.len() / each;
        fits("rows", rows.len(), n * each)?;
        let bytes = self.row_bytes();
        for (plane, bytes) in planes.iter().zip(bytes) {
            fits("a plane", plane.len(), n * bytes)?;
        }
        let share = n.div_ceil(threads.max(1)).max(1);
        std::thread::scope(|scope| {
            let mut planes = planes;
            for part in rows.chunks(share * each) {
                let rows = part.len() / each;
                let mut i = 0;
                let mine = planes.each_mut().map(|plane| {
                    let (mine, rest) = std::mem::take(plane).split_at_mut(rows * bytes[i]);
                    *plane = rest;
                    i += 1;
                    mine
                });
                match threads {
                    0 | 1 => self.rows(part, mine),
                    _ => {
                        scope.spawn(move || self.rows(part, mine));
                    }
                }
            }
        });
        Ok(())
    }

    fn rows(&self, rows: &[u8], mut planes: [&mut [u8]; PLANES]) {
        let bytes = self.row_bytes();
        for (r, row) in rows.chunks_exact(self.file_bytes()).enumerate() {
            let mut i = 0;
            let of_row = planes.each_mut().map(|plane| {
                let of_row = &mut plane[r * bytes[i]..(r + 1) * bytes[i]];
                i += 1;
                of_row
            });
            self.row(row, of_row);
        }
    }

    fn row(&self, row: &[u8], [low, high, steps, heads]: [&mut [u8]; PLANES]) {
        for plane in [&mut *low, &mut *high, &mut *steps, &mut *heads] {
            plane.fill(0);
        }
        let form = self.form;
        let groups = self.dtype.block_len() as usize / 32;
        for (n, bytes) in row
            .chunks_exact(self.dtype.block_bytes() as usize)
            .enumerate()
        {
            let parts = block(self.dtype, bytes);
            for (i, codes) in parts.codes.as_chunks::<32>().0[..groups].iter().enumerate() {
                let group = n * groups + i;
                self.put_low(codes, group, low);
                let of_group = |bytes: usize| group * bytes..(group + 1) * bytes;
                put_high(
                    codes,
                    form.high,
                    form.low as u32,
                    &mut high[of_group(form.high * 4)],
                );
                let from = i * form.steps;
                steps[of_group(form.steps)].copy_from_slice(&parts.steps[from..from + form.steps]);
            }
            let first = n * groups / form.span;
            for span in 0..groups.div_ceil(form.span) {
                let at = (first + span) * form.head;
                let from = span * form.head;
                heads[at..at + form.head].copy_from_slice(&parts.head[from..from + form.head]);
            }
        }
    }

    fn put_low(&self, codes: &[u8; 32], group: usize, low: &mut [u8]) {
        let (pair, half) = (group / 2, group % 2);
        let chunks = self.form.low / 2;
        let first = pair / Planes::TILE * Planes::TILE;
        let tile = (self.pairs() - first).min(Planes::TILE);
        let chunk = |c: usize| (first * chunks + c * tile + pair - first) * 16;
        match self.form.low {
            8 => {
                for (c, codes) in codes.as_chunks::<16>().0.iter().enumerate() {
                    let at = chunk(2 * half + c);
                    low[at..at + 16].copy_from_slice(codes);
                }
            }
            4 => {
                let at = chunk(half);
                let bytes = nibbles(self.dtype, codes);
                low[at..at + 16].copy_from_slice(&bytes);
            }
            _ => {
                let at = chunk(0) + 8 * half;
                for (j, byte) in low[at..at + 8].iter_mut().enumerate() {
                    let field = |f: usize| (codes[j / 4 * 16 + 4 * f + j % 4] & 3) << (2 * f);
                    *byte = (0..4).map(field).fold(0, |byte, field| byte | field);
                }
            }
        }
    }
}

/// True if codes are table indices. Kernels look up four adjacent nibbles at a time.
const fn is_looked_up(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::Iq4Nl | DType::Iq4Xs | DType::Mxfp4 | DType::Nvfp4
    )
}

/// Packs the low nibbles of 32 codes. Word `j` has codes `4j..4j + 4` in the low halves of its bytes, and `16 + 4j..20
/// + 4j` in the high halves. Table indices are in sequence instead.
fn nibbles(dtype: DType, codes: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|at| {
        let (word, byte) = (at / 4, at % 4);
        let code = |i: usize| codes[i] & 15;
        match is_looked_up(dtype) {
            false => code(4 * word + byte) | code(16 + 4 * word + byte) << 4,
            true => {
                let i = 16 * (byte / 2) + 4 * word + 2 * (byte % 2);
                code(i) | code(i + 1) << 4
            }
        }
    })
}

/// Packs the bits of 32 codes above the lowest `low`. In byte `i` of a word, field `f`, at bit `f · bits`, belongs to
/// code `4f + i`.
fn put_high(codes: &[u8; 32], bits: usize, low: u32, out: &mut [u8]) {
    let per = 8 / bits.max(1);
    for (at, byte) in out.iter_mut().enumerate() {
        let (word, i) = (at / 4, at % 4);
        let mask = (1_u8 << bits) - 1;
        let field = |f: usize| (codes[4 * (word * per + f) + i] >> low & mask) << (f * bits);
        *byte = (0..per).map(field).fold(0, |byte, field| byte | field);
    }
}
