//! Elements of tensors: from bytes into the inputs of a program, and from its outputs back.

use half::{bf16, f16};
use tpc_ir::{DType, Interval, RANK};
use tpc_runtime::{ExecError, Slot, Tensor};

/// Bytes in chunks of `N`.
fn chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.as_chunks::<N>().0.iter().copied()
}

/// Writes the elements of a packed tensor to an input.
///
/// # Errors
/// Those of the [`Slot`], and for a type that no input has.
pub(super) fn supply(
    dtype: DType,
    ne: [u64; RANK],
    bytes: &[u8],
    to: Slot<'_>,
) -> Result<(), ExecError> {
    let dims = ne.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    match dtype {
        DType::F32 => to.reals(dims, chunks(bytes).map(|b| f32::from_le_bytes(b).into())),
        DType::F16 => to.reals(dims, chunks(bytes).map(|b| f16::from_le_bytes(b).to_f64())),
        DType::Bf16 => to.reals(dims, chunks(bytes).map(|b| bf16::from_le_bytes(b).to_f64())),
        DType::I32 => to.ints(dims, chunks(bytes).map(|b| i32::from_le_bytes(b).into())),
        DType::I64 => to.ints(dims, chunks(bytes).map(i64::from_le_bytes)),
        other => Err(ExecError::Parameter {
            what: format!("an input of type {other}"),
        }),
    }
}

/// Writes the elements of a result to its memory, which has the strides `nb`.
///
/// # Errors
/// When they are not real, or the memory has another type than f32 or f16.
pub(super) fn store(
    result: &Tensor,
    dtype: DType,
    nb: [u64; RANK],
    to: &mut [u8],
) -> Result<(), ExecError> {
    let values = result.reals()?;
    let [n0, n1, n2, _] = result.dims();
    let nb = nb.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    for (i, &x) in values.iter().enumerate() {
        let at = [i % n0, i / n0 % n1, i / (n0 * n1) % n2, i / (n0 * n1 * n2)];
        let start = at
            .iter()
            .zip(nb)
            .fold(0_usize, |s, (i, nb)| s.saturating_add(i.saturating_mul(nb)));
        let element = to.get_mut(start..).unwrap_or_default();
        match dtype {
            DType::F32 => put(element, (x as f32).to_le_bytes()),
            DType::F16 => put(element, f16::from_f64(x).to_le_bytes()),
            other => {
                return Err(ExecError::Parameter {
                    what: format!("a result of type {other}"),
                });
            }
        }
    }
    Ok(())
}

fn put<const N: usize>(to: &mut [u8], bytes: [u8; N]) {
    if let Some(to) = to.first_chunk_mut() {
        *to = bytes;
    }
}

/// Writes the part of a packed tensor that a device has back to the whole; `parts` are its intervals per axis.
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
    fn parts_are_put_back_where_they_were_cut() {
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
        let result = Tensor::reals_of([2, 2, 1, 1], vec![1.0, 2.0, 3.0, 4.0]).expect("four");
        let mut to = [0; 16];
        store(&result, DType::F32, [8, 4, 16, 16], &mut to).expect("f32");
        let found: Vec<f32> = chunks(&to).map(f32::from_le_bytes).collect();
        assert_eq!(found, [1.0, 3.0, 2.0, 4.0]);
        assert!(store(&result, DType::Q8_0, [8, 4, 16, 16], &mut to).is_err());
    }
}
