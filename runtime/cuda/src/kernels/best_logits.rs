//! The largest logits of each output row.

use tpc_ir::DType;

use super::kernel::{
    Geometry, Kernel, MAX_THREADS, Request, Selection, Unsupported, instance, kernel,
};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "best_logits",
    text: include_str!("best_logits.cu"),
};

/// The memory in which a kernel writes the largest logits of its operand's rows. The host can read the memory.
///
/// It has a header, which tells how many logits a block writes, then the rows. A row has a flag of each block, then the
/// largest logit of each block, then the second largest, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestMemory {
    /// The number of blocks that share a row.
    pub blocks: usize,
    /// The maximum number of rows.
    pub rows: usize,
}

/// The largest logits of each block's part of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BestRow {
    /// True if a logit of the row is NaN or positive infinity.
    pub unusable: bool,
    /// Tokens with their logits.
    pub best: Vec<(u32, f32)>,
}

impl BestMemory {
    /// The maximum number of logits per row.
    pub const MAX: usize = 64;
    /// The number of elements above which a row has another block.
    const EACH: usize = 2048;
    const HEADER: usize = 16;
    const WORD: usize = 8;

    /// Returns the memory for logits of these sizes.
    pub fn of(elements: usize, rows: usize) -> BestMemory {
        // Many rows keep all multiprocessors busy with few blocks each.
        let most = if rows > 8 { 4 } else { 32 };
        BestMemory {
            blocks: elements.div_ceil(BestMemory::EACH).clamp(1, most),
            rows,
        }
    }

    /// Returns the size in bytes.
    pub const fn bytes(self) -> usize {
        self.row(self.rows, 0).0
    }

    /// Returns the header for `count` logits per block.
    pub fn header(count: usize) -> [u8; 4] {
        (count.min(BestMemory::MAX) as u32).to_ne_bytes()
    }

    /// Returns the first byte of a row, and the number of bytes with `count` logits per block.
    pub const fn row(self, row: usize, count: usize) -> (usize, usize) {
        let word = self.blocks * BestMemory::WORD;
        let start = BestMemory::HEADER + row * word * (1 + BestMemory::MAX);
        (start, word * (1 + count))
    }

    /// Adds the largest logits in the bytes of a row.
    pub fn read(self, row: &[u8], to: &mut BestRow) {
        let (words, _) = row.as_chunks::<{ BestMemory::WORD }>();
        let (flags, best) = words.split_at(self.blocks.min(words.len()));
        to.unusable |= flags.iter().any(|flag| u64::from_ne_bytes(*flag) != 0);
        let best = best.iter().map(|word| u64::from_ne_bytes(*word));
        // A block with fewer elements writes 0.
        to.best.extend(best.filter(|order| *order > 0).map(decoded));
    }
}

/// Returns the token and the logit of a number that orders logits.
fn decoded(order: u64) -> (u32, f32) {
    let key = (order >> 32) as u32;
    let bits = match key >> 31 {
        0 => !key,
        _ => key & 0x7fff_ffff,
    };
    (!(order as u32), f32::from_bits(bits))
}

/// Selects the kernel that finds the largest logits of each row. The operand has the logits from token `first` on. The
/// result is a [`BestMemory`].
///
/// # Errors
///
/// Returns [`Unsupported`] if the logits are not f32.
pub fn select_best_logits(first: u64, request: &Request<'_>) -> Result<Kernel, Unsupported> {
    let chosen = select(first, request);
    chosen.map_err(|reason| super::unsupported("best_logits", request, reason))
}

fn select(first: u64, request: &Request<'_>) -> Selection {
    let [x] = request.reals()?;
    if x.dtype != DType::F32 || x.max_dims[2..] != [1, 1] {
        return Err("logits are not rows of f32");
    }
    let memory = BestMemory::of(x.max_dims[0], x.max_dims[1]);
    let each = x.max_dims[0].div_ceil(memory.blocks);
    let geometry = Geometry {
        grid: [memory.blocks as u32, memory.rows.clamp(1, 64) as u32, 1],
        threads: each.next_multiple_of(32).clamp(32, MAX_THREADS) as u32,
        shared_bytes: 0,
    };
    let template = instance(FAMILY, "best_logits", &[x.dtype], Arguments::Params);
    kernel(template, Params::new().size(first)?, geometry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_gives_its_token_and_logit() {
        for (token, logit) in [(0, 0.0), (7, -0.0), (128_255, -3.5), (1, f32::NEG_INFINITY)] {
            let bits: u32 = f32::to_bits(logit);
            let key = match bits >> 31 {
                0 => bits | 0x8000_0000,
                _ => !bits,
            };
            let (t, l) = decoded(u64::from(key) << 32 | u64::from(!token));
            assert_eq!((t, l.to_bits()), (token, bits));
        }
    }

    #[test]
    fn rows_follow_the_header() {
        let memory = BestMemory::of(10_000, 3);
        assert_eq!((memory.blocks, memory.row(0, 1)), (5, (16, 5 * 16)));
        let (start, bytes) = memory.row(2, BestMemory::MAX);
        assert_eq!(start + bytes, memory.bytes());
    }
}
