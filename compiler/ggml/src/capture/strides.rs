//! The slices, reshapes and permutations that select a view's elements.
//!
//! An index into a packed tensor is a number in mixed radix: its digits are the axes' indices, the last axis first. A
//! view's strides are products of digits; a stride inside a digit splits the digit. A view is a *box* if it takes one
//! range of every digit: a reshape to these digits, slices, and a permutation.

use tpc_ir::RANK;

use super::record::Layout;

/// A digit, and the range that a view takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub(super) n: u64,
    pub(super) start: u64,
    pub(super) len: u64,
}

impl Digit {
    pub(super) const fn whole(n: u64) -> Digit {
        Digit {
            n,
            start: 0,
            len: n,
        }
    }

    pub(super) const fn is_whole(self) -> bool {
        self.len == self.n
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// The packed tensor's digits, least significant first.
    pub(super) digits: Vec<Digit>,
    /// The sizes of the view in memory order.
    pub(super) dims: [u64; RANK],
    /// The view's axis for each of `dims`.
    pub(super) axes: [u64; RANK],
}

impl Selection {
    pub(super) fn is_everything(&self) -> bool {
        self.digits.iter().all(|d| d.is_whole())
    }

    pub(super) fn is_permuted(&self) -> bool {
        self.axes != [0, 1, 2, 3]
    }
}

/// Returns the digits of a packed tensor of sizes `ne` that the view `strides` takes; `None` if the view is not a
/// box. A block has `block_len` elements and `block_bytes` bytes. All sizes are above 0.
pub(super) fn select(
    ne: [u64; RANK],
    block_len: u64,
    block_bytes: u64,
    layout: &Layout,
) -> Option<Selection> {
    let blocks = |ne: [u64; RANK]| [ne[0] / block_len, ne[1], ne[2], ne[3]];
    let unit = |bytes: u64| {
        bytes
            .is_multiple_of(block_bytes)
            .then(|| bytes / block_bytes)
    };
    let sizes = blocks(layout.ne);
    // (step in blocks, size, axis), smallest step first.
    let mut steps: Vec<(u64, u64, usize)> = Vec::with_capacity(RANK);
    for (axis, (&size, stride)) in sizes.iter().zip(layout.nb).enumerate() {
        if size > 1 {
            steps.push((unit(stride)?, size, axis));
        }
    }
    if block_len > 1 && (layout.nb[0] != block_bytes || steps.iter().any(|s| s.0 == 0)) {
        return None;
    }
    steps.sort_unstable();
    // Most significant digit first.
    let seq: Vec<u64> = blocks(ne)
        .iter()
        .rev()
        .copied()
        .filter(|&n| n > 1)
        .collect();
    let dims: Vec<(u64, u64)> = steps.iter().map(|s| (s.0, s.1)).collect();
    let mut digits = select_box(&seq, unit(layout.offset)?, &dims)?;
    digits.retain(|d| d.n > 1);
    digits.reverse();
    if block_len > 1 {
        // The elements of a block are one digit.
        match digits.first_mut() {
            Some(d) if ne[0] > block_len => {
                *d = Digit {
                    n: d.n * block_len,
                    start: d.start * block_len,
                    len: d.len * block_len,
                };
            }
            _ => digits.insert(0, Digit::whole(block_len)),
        }
    }
    let mut order: Vec<usize> = steps.iter().map(|s| s.2).collect();
    if block_len > 1 && !order.contains(&0) {
        order.insert(0, 0);
    }
    let mut axes = [0, 1, 2, 3];
    let mut out_dims = layout.ne;
    if !order.is_sorted() {
        order.extend((0..RANK).filter(|a| sizes[*a] == 1 && (block_len == 1 || *a != 0)));
        for (k, &axis) in order.iter().enumerate() {
            out_dims[k] = layout.ne[axis];
            axes[k] = axis as u64;
        }
    }
    Some(Selection {
        digits,
        dims: out_dims,
        axes,
    })
}

/// Returns the digits that a box takes from a number with digits `seq`. The box starts at `at` and has the dimensions
/// `dims` (step, size), smallest step first.
fn select_box(seq: &[u64], at: u64, dims: &[(u64, u64)]) -> Option<Vec<Digit>> {
    let Some(&(lo, mut run)) = dims.first() else {
        return select_range(seq, at, 1);
    };
    if lo == 0 {
        return None;
    }
    let above = |dims: &[(u64, u64)], by: u64| -> Option<Vec<(u64, u64)>> {
        dims.iter()
            .map(|&(step, n)| step.is_multiple_of(by).then(|| (step / by, n)))
            .collect()
    };
    if lo != 1 {
        let (high, low) = cut(seq, lo)?;
        let mut out = select_box(&high, at / lo, &above(dims, lo)?)?;
        out.extend(select_range(&low, at % lo, 1)?);
        return Some(out);
    }
    let mut tight = 1;
    while dims.get(tight).is_some_and(|d| d.0 == run) {
        run = run.checked_mul(dims[tight].1)?;
        tight += 1;
    }
    let Some(&(gap, _)) = dims.get(tight) else {
        return select_range(seq, at, run);
    };
    if gap < run {
        return None;
    }
    let (high, low) = cut(seq, gap)?;
    let mut out = select_box(&high, at / gap, &above(&dims[tight..], gap)?)?;
    out.extend(select_box(&low, at % gap, &dims[..tight])?);
    Some(out)
}

/// Splits the digits into those above `k` and those below.
fn cut(seq: &[u64], k: u64) -> Option<(Vec<u64>, Vec<u64>)> {
    let mut high = seq.to_vec();
    let mut low = Vec::new();
    let mut left = k;
    while left > 1 {
        let n = high.pop()?;
        if left.is_multiple_of(n) {
            low.insert(0, n);
            left /= n;
        } else if n.is_multiple_of(left) {
            high.push(n / left);
            low.insert(0, left);
            left = 1;
        } else {
            // `k` cuts through a digit: merge all digits into one.
            let all: u64 = seq.iter().product();
            return all.is_multiple_of(k).then(|| (vec![all / k], vec![k]));
        }
    }
    Some((high, low))
}

/// Returns the digits of the range `[at, at + len)`.
fn select_range(seq: &[u64], at: u64, len: u64) -> Option<Vec<Digit>> {
    let all: u64 = seq.iter().product();
    if at.checked_add(len)? > all {
        return None;
    }
    if len == all {
        return Some(seq.iter().map(|&n| Digit::whole(n)).collect());
    }
    let (&first, rest) = seq.split_first()?;
    let unit: u64 = rest.iter().product();
    if at.is_multiple_of(unit) && len.is_multiple_of(unit) {
        let mut out = vec![Digit {
            n: first,
            start: at / unit,
            len: len / unit,
        }];
        out.extend(rest.iter().map(|&n| Digit::whole(n)));
        return Some(out);
    }
    if at / unit == (at + len - 1) / unit {
        let mut out = vec![Digit {
            n: first,
            start: at / unit,
            len: 1,
        }];
        out.extend(select_range(rest, at % unit, len)?);
        return Some(out);
    }
    // The range crosses digits: merge them.
    Some(vec![Digit {
        n: all,
        start: at,
        len,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(ne: [u64; 4], nb: [u64; 4], offset: u64) -> Layout {
        Layout { ne, nb, offset }
    }

    fn digit(n: u64, start: u64, len: u64) -> Digit {
        Digit { n, start, len }
    }

    #[test]
    fn a_fused_projection_is_a_slice() {
        // Keys of a fused QKV: [768, 8] → [128, 2, 8] from element 256 on.
        let l = layout([128, 2, 8, 1], [4, 512, 3072, 24576], 1024);
        let s = select([768, 8, 1, 1], 1, 4, &l).expect("a box");
        assert_eq!(s.digits, [digit(768, 256, 256), digit(8, 0, 8)]);
        assert_eq!((s.dims, s.is_permuted()), ([128, 2, 8, 1], false));
    }

    #[test]
    fn interleaved_heads_are_a_slice_inside_a_digit() {
        // The query half of [q | gate] per head.
        let l = layout([128, 2, 8, 1], [4, 1024, 2048, 16384], 512);
        let s = select([512, 8, 1, 1], 1, 4, &l).expect("a box");
        assert_eq!(
            s.digits,
            [digit(256, 128, 128), digit(2, 0, 2), digit(8, 0, 8)]
        );
    }

    #[test]
    fn a_permuted_cache_is_reshaped_and_permuted() {
        let l = layout([128, 512, 2, 1], [2, 512, 256, 262144], 0);
        let s = select([256, 512, 1, 1], 1, 2, &l).expect("a box");
        assert!(s.is_everything());
        assert_eq!(s.dims, [128, 2, 512, 1]);
        assert_eq!(s.axes, [0, 2, 1, 3]);
    }

    #[test]
    fn blocks_stay_whole() {
        let l = layout([128, 2, 512, 1], [34, 136, 272, 139264], 0);
        let s = select([256, 512, 1, 1], 32, 34, &l).expect("a box");
        assert!(s.is_everything());
        assert_eq!(s.dims, [128, 2, 512, 1]);
        let half = layout([32, 512, 1, 1], [34, 272, 139264, 139264], 34);
        let s = select([256, 512, 1, 1], 32, 34, &half).expect("a box");
        assert_eq!(s.digits, [digit(256, 32, 32), digit(512, 0, 512)]);
    }

    #[test]
    fn overlapping_rows_are_no_box() {
        let l = layout([4, 5, 1, 1], [4, 4, 32, 32], 0);
        assert_eq!(select([8, 1, 1, 1], 1, 4, &l), None);
        let l = layout([4, 2, 1, 1], [4, 0, 32, 32], 0);
        assert_eq!(select([8, 1, 1, 1], 1, 4, &l), None);
    }
}
