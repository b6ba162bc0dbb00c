//! Copies elements between a client's memory and a program.

use tpc_ir::{DType, Interval, RANK};
use tpc_runtime::{ExecError, Slot};

/// Writes the elements of a packed tensor to an input.
///
/// # Errors
/// Returns the errors of [`Slot::packed`].
pub(super) fn supply(
    dtype: DType,
    ne: [u64; RANK],
    bytes: &[u8],
    to: Slot<'_>,
) -> Result<(), ExecError> {
    let dims = ne.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    to.packed(dtype, dims, bytes)
}

/// Writes packed elements to memory with strides `nb`.
pub(super) fn store(
    packed: &[u8],
    (dtype, ne): (DType, [u64; RANK]),
    nb: [u64; RANK],
    to: &mut [u8],
) {
    let (width, blocks) = (dtype.block_bytes(), ne[0] / dtype.block_len());
    // If the blocks of a row are contiguous, copy the whole row.
    let (pieces, bytes) = match nb[0] == width {
        true => (1, blocks * width),
        false => (blocks, width),
    };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).max(1);
    for (i, piece) in (0_u64..).zip(packed.chunks_exact(bytes)) {
        let row = i / pieces.max(1);
        let at = [
            i % pieces.max(1),
            row % ne[1],
            row / ne[1] % ne[2],
            row / (ne[1] * ne[2]),
        ];
        let steps = at.into_iter().zip(nb);
        let start = steps.fold(0_u64, |s, (i, nb)| s.saturating_add(i.saturating_mul(nb)));
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        if let Some(to) = to.get_mut(start..).and_then(|to| to.get_mut(..bytes)) {
            to.copy_from_slice(piece);
        }
    }
}

/// Writes one device's part of a packed tensor to the whole tensor. `parts` are the part's intervals per axis.
pub(super) fn scatter(
    (dtype, ne): (DType, [u64; RANK]),
    parts: &[Vec<Interval>],
    local: &[u8],
    whole: &mut [u8],
) {
    let (len, width) = (dtype.block_len(), dtype.block_bytes());
    let row = ne[0] / len * width;
    let all = |axis: usize| {
        vec![Interval {
            start: 0,
            len: ne[axis],
        }]
    };
    let of = |axis: usize| parts.get(axis).cloned().unwrap_or_else(|| all(axis));
    let [first, rows, planes, blocks] = [of(0), of(1), of(2), of(3)];
    let indices = |all: &[Interval]| -> Vec<u64> {
        all.iter().flat_map(|r| r.start..r.start + r.len).collect()
    };
    let (rows, planes, blocks) = (indices(&rows), indices(&planes), indices(&blocks));
    let mut from = local;
    for &i3 in &blocks {
        for &i2 in &planes {
            for &i1 in &rows {
                let start = ((i3 * ne[2] + i2) * ne[1] + i1) * row;
                for r in &first {
                    let n = usize::try_from(r.len / len * width)
                        .unwrap_or(0)
                        .min(from.len());
                    let at = usize::try_from(start + r.start / len * width).unwrap_or(usize::MAX);
                    let (head, rest) = from.split_at(n);
                    if let Some(to) = whole.get_mut(at..).and_then(|w| w.get_mut(..n)) {
                        to.copy_from_slice(head);
                    }
                    from = rest;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpc_runtime::{WeightData, pack};

    #[test]
    fn scattering_all_parts_restores_the_tensor() {
        let (dtype, ne) = (DType::F16, [4, 3, 2, 1]);
        let bytes: Vec<u8> = (0..48).collect();
        let run = |start, len| Interval { start, len };
        let halves = [
            vec![vec![run(0, 1), run(2, 1)], vec![run(0, 3)]],
            vec![vec![run(1, 1), run(3, 1)], vec![run(0, 3)]],
        ];
        let mut whole = vec![0; 48];
        for parts in &halves {
            let data = WeightData {
                dtype,
                ne,
                bytes: &bytes,
            };
            let cut = pack("s", data, Some(parts)).expect("a part");
            scatter((dtype, ne), parts, &cut.bytes, &mut whole);
        }
        assert_eq!(whole, bytes);
    }

    #[test]
    fn results_are_stored_by_strides() {
        let packed: Vec<u8> = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).concat();
        let mut to = [0; 16];
        store(&packed, (DType::F32, [2, 2, 1, 1]), [8, 4, 16, 16], &mut to);
        let found = to.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
        assert_eq!(found.collect::<Vec<_>>(), [1.0, 3.0, 2.0, 4.0]);
        // Blocks of quantised types are copied byte for byte.
        let (packed, mut to): (Vec<u8>, _) = ((0..68).collect(), [0; 68]);
        store(
            &packed,
            (DType::Q8_0, [32, 2, 1, 1]),
            [34, 34, 68, 68],
            &mut to,
        );
        assert_eq!(to.to_vec(), packed);
    }
}
