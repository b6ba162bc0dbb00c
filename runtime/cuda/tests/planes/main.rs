//! Weights in planes on emulated devices that check each access, or on the card in `TPC_TEST_DRIVER`. Planes and file blocks decode to the same bits.
//! Products are close to the exact results, with the same bits for up to eight tokens. Skipped without a C++
//! compiler.

mod experts;
mod fused;
mod gemm;
mod gemv;
mod heads;
mod mixed;
mod norms;
mod rig;
mod router;

use rig::Rig;
use tpc_cuda::planes::Planes;
use tpc_ir::DType;
use tpc_ir::op::{GetRows, MulMat, MulMatId, Op};
use tpc_op_cases::Random;
use tpc_runtime::quant::dequantise;

struct Weight {
    dtype: DType,
    dims: [usize; 4],
    bytes: Vec<u8>,
    values: Vec<f32>,
}

impl Weight {
    fn random(dtype: DType, dims: [usize; 4], random: &Random) -> Weight {
        let rows: usize = dims[1..].iter().product();
        let planes = Planes::new(dtype, dims[0]).expect("a type in planes");
        // Bytes below 0x70 give finite scales.
        let file: Vec<u8> = (0..rows * planes.file_bytes())
            .map(|_| random.below(0x70) as u8)
            .collect();
        let mut values = vec![0.0; rows * dims[0]];
        dequantise(dtype, &file, &mut values).expect("a decoder");
        let packed = planes.packed(&file, random.within(1, 3), 0xa5);
        let bytes = packed.expect("whole rows");
        Weight {
            dtype,
            dims,
            bytes,
            values,
        }
    }

    fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.dims[0]..(row + 1) * self.dims[0]]
    }

    /// Returns the product of a row and a column, and a bound of the rounding error.
    fn product(&self, row: usize, column: &[f32]) -> (f64, f64) {
        let (mut sum, mut bound) = (0.0, 0.0);
        let largest = |x: &[f32]| f64::from(x.iter().fold(0.0_f32, |m, x| m.max(x.abs())));
        for (w, x) in self.row(row).chunks(32).zip(column.chunks(32)) {
            let each = w.iter().zip(x).map(|(w, x)| f64::from(*w) * f64::from(*x));
            sum += each.sum::<f64>();
            bound += largest(w) * largest(x) * 32.0;
        }
        (sum, bound * 3e-5)
    }
}

fn types() -> impl Iterator<Item = DType> {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let all = DType::ALL.iter().copied().filter(|t| Planes::supports(*t));
    all.filter(move |t| t.name().contains(&only))
}

/// Returns row lengths with few pairs, an odd number of groups, and more pairs than a tile.
fn widths(dtype: DType) -> [usize; 3] {
    match dtype.block_len() {
        256 => [256, 768, 2304],
        64 => [64, 192, 2240],
        _ => [32, 96, 2208],
    }
}

fn columns(k: usize, n: usize, random: &Random) -> Vec<f32> {
    let scale = |i: usize| if i / 32 % 5 == 3 { 1000.0 } else { 1.0 };
    (0..k * n)
        .map(|i| (random.real() * scale(i)) as f32)
        .collect()
}

#[test]
fn rows_of_planes_have_the_bits_of_the_file() {
    let Some(mut rig) = Rig::new(11) else { return };
    for dtype in types() {
        let random = Random::new(dtype.name(), 2);
        for k in widths(dtype) {
            let weight = Weight::random(dtype, [k, 5, 1, 1], &random);
            let ids = [3, 0, 4];
            let op = Op::GetRows(GetRows { window: None });
            let found = rig.rows(&op, &weight, &ids);
            let wanted: Vec<f32> = ids.iter().flat_map(|r| weight.row(*r).to_vec()).collect();
            assert_eq!(found.len(), wanted.len());
            for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
                assert!(
                    f.to_bits() == w.to_bits() || f == w,
                    "{dtype} {k}, element {i}: {f}, expected {w}"
                );
            }
        }
    }
}

#[test]
fn products_are_near_and_have_the_same_bits_for_up_to_eight_tokens() {
    let Some(mut rig) = Rig::new(12) else { return };
    for (n, dtype) in types().enumerate() {
        let random = Random::new(dtype.name(), 3);
        for (i, k) in widths(dtype).into_iter().enumerate() {
            let (rows, count) = ([19, 3, 33][i], [2, 8, 5][(n + i) % 3]);
            let stacks = if i == 1 { 2 } else { 1 };
            let weight = Weight::random(dtype, [k, rows, stacks, 1], &random);
            let x = columns(k, count * stacks, &random);
            let of = |count: usize, x: &[f32], weight: &Weight, rig: &mut Rig| {
                let dims = [k, count, stacks, 1];
                rig.product(&MulMat.into(), weight, (x, dims), None)
            };
            let together = of(count, &x, &weight, &mut rig);
            for stack in 0..stacks {
                for c in 0..count {
                    let column = &x[(stack * count + c) * k..][..k];
                    for r in 0..rows {
                        let found = together[(stack * count + c) * rows + r];
                        let (wanted, bound) = weight.product(stack * rows + r, column);
                        let off = (f64::from(found) - wanted).abs();
                        assert!(
                            off <= bound,
                            "{dtype}, {k} wide, row {r}, column {c}: {found}, expected {wanted}, off {off:e} of {bound:e}"
                        );
                    }
                }
            }
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            for c in 0..count {
                let of_stacks = |from: &[f32], n: usize| -> Vec<f32> {
                    let each = (0..stacks).flat_map(|s| &from[(s * count + c) * n..][..n]);
                    each.copied().collect()
                };
                let alone = of(1, &of_stacks(&x, k), &weight, &mut rig);
                assert!(
                    bits(&alone) == bits(&of_stacks(&together, rows)),
                    "{dtype}, {k} wide: column {c} of {count} alone has other bits"
                );
            }
        }
    }
}

#[test]
fn experts_multiply_what_is_routed_to_them() {
    let Some(mut rig) = Rig::new(13) else { return };
    for dtype in types() {
        let random = Random::new(dtype.name(), 4);
        let k = widths(dtype)[1];
        let weight = Weight::random(dtype, [k, 7, 3, 1], &random);
        // Three tokens with two slots each. One slot has an expert of another device.
        let ids = [6, 5, 4, 7, 5, 6];
        let x = columns(k, 6, &random);
        let op = Op::MulMatId(MulMatId {
            window: Some(tpc_ir::Interval { start: 4, len: 3 }),
        });
        let found = rig.product(&op, &weight, (&x, [k, 2, 3, 1]), Some((&ids, [2, 3, 1, 1])));
        for (entry, id) in ids.iter().enumerate() {
            for r in 0..7 {
                let found = found[entry * 7 + r];
                let (wanted, bound) = match id {
                    4..7 => weight.product((id - 4) * 7 + r, &x[entry * k..(entry + 1) * k]),
                    _ => (0.0, 0.0),
                };
                let off = (f64::from(found) - wanted).abs();
                assert!(
                    off <= bound,
                    "{dtype}, entry {entry}: {found}, expected {wanted}"
                );
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_none() {
    let Some(mut rig) = Rig::new(14) else { return };
    let random = Random::new("nan", 5);
    let weight = Weight::random(DType::Q4K, [256, 4, 1, 1], &random);
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = columns(256, 2, &random);
        x[256 + 40] = wrong;
        let found = rig.product(&MulMat.into(), &weight, (&x, [256, 2, 1, 1]), None);
        assert!(found[..4].iter().all(|y| y.is_finite()), "{found:?}");
        assert!(found[4..].iter().all(|y| !y.is_finite()), "{found:?}");
    }
}
