//! Fused kernels give the same bits as separate ops.

use tpc_cuda::kernels::{FusedOp, Kernel, select, select_fused, select_terms};
use tpc_ir::DType;
use tpc_ir::op::{AddId, Binary, BinaryKind, FlashAttn, Glu, GluKind, MulMat, MulMatId, Op};
use tpc_op_cases::Random;

use crate::rig::{Rig, Seen, chosen, request};
use crate::{Weight, columns};

/// Types with steps and minima, with half groups, and with tables.
const TYPES: [DType; 3] = [DType::Q4K, DType::Q6K, DType::Mxfp4];
/// K, rows, and tokens.
const SIZES: [(usize, usize, usize); 3] = [(768, 19, 1), (256, 35, 8), (2304, 19, 1)];

pub(crate) fn floats(rig: &mut Rig, dims: [usize; 4], random: &Random) -> Seen {
    let values = columns(dims[0], dims[1] * dims[2] * dims[3], random);
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    rig.dense(DType::F32, dims, Some(&bytes))
}

pub(crate) fn empty(rig: &mut Rig, dims: [usize; 4]) -> Seen {
    rig.dense(DType::F32, dims, None)
}

pub(crate) fn bits(rig: &mut Rig, seen: Seen) -> Vec<u32> {
    let values = rig.floats(seen);
    assert!(values.iter().any(|x| *x != 0.0));
    values.iter().map(|x| x.to_bits()).collect()
}

fn sum(rig: &mut Rig, [a, b]: [Seen; 2], dims: [usize; 4]) -> (Kernel, Vec<Seen>, Seen) {
    let kind = BinaryKind::Add;
    let sum = empty(rig, dims);
    let add = chosen(&Binary { kind }.into(), &[a, b], sum);
    (add, vec![a, b, sum], sum)
}

#[test]
fn a_product_and_what_is_added_are_one_kernel() {
    let Some(mut rig) = Rig::new(21) else { return };
    for dtype in TYPES {
        let random = Random::new(dtype.name(), 7);
        for (k, rows, n) in SIZES {
            let a = rig.weight(&Weight::random(dtype, [k, rows, 1, 1], &random));
            let x = floats(&mut rig, [k, n, 1, 1], &random);
            let q = rig.terms(x);
            let apart = request(&[x], &[q], select_terms);
            let dims = [rows, n, 1, 1];
            // A residual with the sizes of the result, a bias of one row, or both.
            let [full, bias] = [n, 1].map(|more| floats(&mut rig, [rows, more, 1, 1], &random));
            for more in [vec![full], vec![bias], vec![bias, full]] {
                let [y, both] = [0; 2].map(|_| empty(&mut rig, dims));
                let product = chosen(&MulMat.into(), &[a, q], y);
                let mut kernels = vec![(apart.clone(), vec![x, q]), (product, vec![a, q, y])];
                let mut wanted = y;
                for m in &more {
                    let (add, seen, sum) = sum(&mut rig, [wanted, *m], dims);
                    kernels.push((add, seen));
                    wanted = sum;
                }
                let operands = [vec![a, q], more].concat();
                let fused = request(&operands, &[both], |r| select_fused(&FusedOp::MulMatAdd, r));
                kernels.push((fused, [operands, vec![both]].concat()));
                rig.chain(&kernels);
                assert_eq!(
                    bits(&mut rig, both),
                    bits(&mut rig, wanted),
                    "{dtype}, {n} tokens"
                );
            }
        }
    }
}

#[test]
fn products_side_by_side_are_one_kernel() {
    let Some(mut rig) = Rig::new(24) else { return };
    let random = Random::new("joined", 3);
    for (k, n) in [(768, 1), (256, 7), (2048, 1), (2304, 1)] {
        let x = floats(&mut rig, [k, n, 1, 1], &random);
        let q = rig.terms(x);
        let mut kernels = vec![(request(&[x], &[q], select_terms), vec![x, q])];
        let (mut operands, mut results, mut wanted) = (vec![q], Vec::new(), Vec::new());
        for (dtype, rows) in [(DType::Q4K, 37), (DType::Q6K, 16), (DType::Q4K, 5)] {
            let a = rig.weight(&Weight::random(dtype, [k, rows, 1, 1], &random));
            let [y, own] = [0; 2].map(|_| empty(&mut rig, [rows, n, 1, 1]));
            kernels.push((chosen(&MulMat.into(), &[a, q], y), vec![a, q, y]));
            operands.push(a);
            let mut last = y;
            if dtype == DType::Q6K {
                let bias = floats(&mut rig, [rows, 1, 1, 1], &random);
                let (add, seen, sum) = sum(&mut rig, [y, bias], [rows, n, 1, 1]);
                kernels.push((add, seen));
                operands.push(bias);
                last = sum;
            }
            results.push(own);
            wanted.push(last);
        }
        let fused = FusedOp::GroupedMulMat(vec![0, 1, 0]);
        let fused = request(&operands, &results, |r| select_fused(&fused, r));
        kernels.push((fused, [operands, results.clone()].concat()));
        rig.chain(&kernels);
        for (found, wanted) in results.into_iter().zip(wanted) {
            assert_eq!(bits(&mut rig, found), bits(&mut rig, wanted), "{n} tokens");
        }
    }
}

#[test]
fn gated_products_are_one_kernel() {
    let Some(mut rig) = Rig::new(22) else { return };
    let glu = Glu::new(GluKind::Swiglu);
    for dtype in TYPES {
        let random = Random::new(dtype.name(), 8);
        // Rows with terms (an even and an odd number of groups), and rows without terms.
        for (k, rows, n) in [
            (768, 96, 1),
            (256, 64, 8),
            (256, 35, 1),
            (256, 35, 3),
            (2048, 96, 1),
            (2304, 64, 1),
            (2304, 35, 1),
        ] {
            let [gate, up] = [0; 2].map(|_| {
                let weight = Weight::random(dtype, [k, rows, 1, 1], &random);
                rig.weight(&weight)
            });
            let x = floats(&mut rig, [k, n, 1, 1], &random);
            let q = rig.terms(x);
            let [g, u, out, both] = [0; 4].map(|_| empty(&mut rig, [rows, n, 1, 1]));
            let product = chosen(&MulMat.into(), &[gate, q], g);
            let activation = chosen(&Op::from(glu.clone()), &[g, u], out);
            let fused = FusedOp::MulMatGlu(glu.clone());
            let alone = request(&[gate, up, q], &[both], |r| select_fused(&fused, r));
            rig.chain(&[
                (request(&[x], &[q], select_terms), vec![x, q]),
                (product.clone(), vec![gate, q, g]),
                (product, vec![up, q, u]),
                (activation, vec![g, u, out]),
                (alone, vec![gate, up, q, both]),
            ]);
            let wanted = bits(&mut rig, out);
            assert_eq!(bits(&mut rig, both), wanted, "{dtype}, {n} tokens");
            if rows % 32 > 0 {
                continue;
            }
            // A product with the terms shows that they belong to the result.
            let weight = Weight::random(DType::Q8_0, [rows, 9, 1, 1], &random);
            let down = rig.weight(&weight);
            let [made, there] = [0; 2].map(|_| rig.terms(out));
            let [y, z] = [0; 2].map(|_| empty(&mut rig, [9, n, 1, 1]));
            let fused = request(&[gate, up, q], &[both, made], |r| select_fused(&fused, r));
            let product = chosen(&MulMat.into(), &[down, there], y);
            rig.chain(&[
                (fused, vec![gate, up, q, both, made]),
                (request(&[out], &[there], select_terms), vec![out, there]),
                (product.clone(), vec![down, there, y]),
                (product, vec![down, made, z]),
            ]);
            assert_eq!(
                bits(&mut rig, both),
                wanted,
                "{dtype}, {n} tokens, with terms"
            );
            assert_eq!(
                bits(&mut rig, z),
                bits(&mut rig, y),
                "{dtype}, {n} tokens, terms"
            );
        }
    }
}

#[test]
fn a_gated_product_of_halves_is_one_kernel() {
    let Some(mut rig) = Rig::new(31) else { return };
    let glu = Glu::new(GluKind::Swiglu);
    let random = Random::new("halves", 2);
    for (k, rows, n) in [
        (768, 96, 1),
        (256, 64, 8),
        (256, 35, 1),
        (256, 35, 3),
        (2048, 96, 1),
        (2304, 35, 1),
    ] {
        let a = rig.weight(&Weight::random(DType::Q4K, [k, 2 * rows, 1, 1], &random));
        let x = floats(&mut rig, [k, n, 1, 1], &random);
        let q = rig.terms(x);
        let y = empty(&mut rig, [2 * rows, n, 1, 1]);
        let [out, both] = [0; 2].map(|_| empty(&mut rig, [rows, n, 1, 1]));
        let (made, there) = (rig.terms(out), rig.terms(out));
        let fused = FusedOp::MulMatGlu(glu.clone());
        let mut results = vec![both];
        if rows % 32 == 0 {
            results.push(made);
        }
        let fused = request(&[a, q], &results, |r| select_fused(&fused, r));
        rig.chain(&[
            (request(&[x], &[q], select_terms), vec![x, q]),
            (chosen(&MulMat.into(), &[a, q], y), vec![a, q, y]),
            (chosen(&Op::from(glu.clone()), &[y], out), vec![y, out]),
            (fused, [vec![a, q], results].concat()),
        ]);
        assert_eq!(bits(&mut rig, both), bits(&mut rig, out), "{n} tokens");
        if rows % 32 > 0 {
            continue;
        }
        let down = rig.weight(&Weight::random(DType::Q8_0, [rows, 9, 1, 1], &random));
        let [y, z] = [0; 2].map(|_| empty(&mut rig, [9, n, 1, 1]));
        let product = chosen(&MulMat.into(), &[down, there], y);
        rig.chain(&[
            (request(&[out], &[there], select_terms), vec![out, there]),
            (product.clone(), vec![down, there, y]),
            (product, vec![down, made, z]),
        ]);
        assert_eq!(bits(&mut rig, z), bits(&mut rig, y), "{n} tokens, terms");
    }
}

#[test]
fn gated_products_of_experts_are_one_kernel() {
    let Some(mut rig) = Rig::new(25) else { return };
    let glu = Glu::new(GluKind::Swiglu);
    let random = Random::new("experts", 4);
    let window = Some(tpc_ir::Interval { start: 1, len: 3 });
    for (window, experts, biased) in [(None, 4, false), (window, 3, false), (window, 3, true)] {
        let (k, rows, slots, n) = (512, 96, 2, 3);
        let of = MulMatId { window };
        let weight = |rig: &mut Rig, dims| rig.weight(&Weight::random(DType::Q4K, dims, &random));
        let [gate, up] = [0; 2].map(|_| weight(&mut rig, [k, rows, experts, 1]));
        let ids = [0, 3, 1, 2, 3, 1].into_iter().flat_map(i32::to_ne_bytes);
        let ids: Vec<u8> = ids.collect();
        let ids = rig.dense(DType::I32, [slots, n, 1, 1], Some(&ids));
        let x = floats(&mut rig, [k, 1, n, 1], &random);
        let q = rig.terms(x);
        let mut kernels = vec![(request(&[x], &[q], select_terms), vec![x, q])];
        let mut operands = vec![gate, up, q, ids];
        let each = [gate, up].map(|a| {
            let y = empty(&mut rig, [rows, slots, n, 1]);
            let product = chosen(&of.clone().into(), &[a, q, ids], y);
            kernels.push((product, vec![a, q, ids, y]));
            if !biased {
                return y;
            }
            // Add the bias per expert in a separate kernel, and in the kernel of the product.
            let [sum, both] = [0; 2].map(|_| empty(&mut rig, [rows, slots, n, 1]));
            let bias = floats(&mut rig, [rows, experts, 1, 1], &random);
            let add = chosen(&AddId { window }.into(), &[y, bias, ids], sum);
            kernels.push((add, vec![y, bias, ids, sum]));
            let fused = FusedOp::MulMatIdAdd(of.clone());
            let seen = [a, q, ids, bias];
            let fused = request(&seen, &[both], |r| select_fused(&fused, r));
            rig.chain(
                &[
                    kernels.clone(),
                    vec![(fused, [&seen[..], &[both]].concat())],
                ]
                .concat(),
            );
            assert_eq!(bits(&mut rig, both), bits(&mut rig, sum));
            operands.push(bias);
            sum
        });
        let [out, both] = [0; 2].map(|_| empty(&mut rig, [rows, slots, n, 1]));
        let activation = chosen(&Op::from(glu.clone()), &each, out);
        let down = rig.weight(&Weight::random(DType::Q8_0, [rows, 7, experts, 1], &random));
        let [made, there] = [0; 2].map(|_| rig.terms(out));
        let [y, z] = [0; 2].map(|_| empty(&mut rig, [7, slots, n, 1]));
        let fused = FusedOp::MulMatIdGlu(glu.clone(), of.clone());
        let fused = request(&operands, &[both, made], |r| select_fused(&fused, r));
        let last = chosen(&of.into(), &[down, there, ids], y);
        kernels.extend([
            (activation, [&each[..], &[out]].concat()),
            (request(&[out], &[there], select_terms), vec![out, there]),
            (fused, [operands, vec![both, made]].concat()),
            (last.clone(), vec![down, there, ids, y]),
            (last, vec![down, made, ids, z]),
        ]);
        rig.chain(&kernels);
        assert_eq!(bits(&mut rig, both), bits(&mut rig, out), "{window:?}");
        assert_eq!(bits(&mut rig, z), bits(&mut rig, y), "{window:?}, terms");
    }
}

#[test]
fn a_product_with_a_weight_of_the_file_and_what_is_added_are_one_kernel() {
    let Some(mut rig) = Rig::new(30) else { return };
    let random = Random::new("plain", 1);
    for (k, rows, n) in [(96, 40, 1), (256, 7, 11)] {
        let a = floats(&mut rig, [k, rows, 1, 1], &random);
        let x = floats(&mut rig, [k, n, 1, 1], &random);
        let bias = floats(&mut rig, [rows, 1, 1, 1], &random);
        let [y, both] = [0; 2].map(|_| empty(&mut rig, [rows, n, 1, 1]));
        let product = chosen(&MulMat.into(), &[a, x], y);
        let (add, seen, sum) = sum(&mut rig, [y, bias], [rows, n, 1, 1]);
        let operands = [a, x, bias];
        let fused = request(&operands, &[both], |r| select_fused(&FusedOp::MulMatAdd, r));
        rig.chain(&[
            (product, vec![a, x, y]),
            (add, seen),
            (fused, [&operands[..], &[both]].concat()),
        ]);
        assert_eq!(bits(&mut rig, both), bits(&mut rig, sum), "{n} tokens");
    }
}

#[test]
fn attention_makes_the_terms_of_its_result() {
    // Few tokens, many tokens with a cache that f16 can hold, and many tokens with an f32 cache.
    for (tokens, cache) in [
        (2, DType::F32),
        (12, DType::F16),
        (70, DType::F16),
        (12, DType::F32),
    ] {
        let Some(mut rig) = Rig::new(26) else { return };
        attention_makes_terms(&mut rig, tokens, cache);
    }
}

fn attention_makes_terms(rig: &mut Rig, tokens: usize, cache: DType) {
    let random = Random::new("attention", 5);
    let (n, heads, cells) = (64, 3, 70);
    let q = floats(rig, [n, tokens, heads, 1], &random);
    let [k, v] = [0; 2].map(|_| {
        if cache == DType::F32 {
            return floats(rig, [n, cells, 1, 1], &random);
        }
        // Absolute values from 0.5 to 1 in f16, with both signs.
        let halves = (0..n * cells).flat_map(|_| {
            let high = 0x38 + 0x80 * random.below(2) + random.below(4);
            [random.below(256) as u8, high as u8]
        });
        rig.dense(cache, [n, cells, 1, 1], Some(&halves.collect::<Vec<_>>()))
    });
    let mask = rig.dense(
        DType::F32,
        [cells, tokens, 1, 1],
        Some(&vec![0; cells * tokens * 4]),
    );
    let op = FlashAttn {
        scale: 0.125,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    };
    let [plain, both] = [0; 2].map(|_| empty(rig, [n, heads, tokens, 1]));
    let rows = plain.shown([n * heads, tokens, 1, 1]);
    let [made, there] = [0; 2].map(|_| rig.terms(rows));
    let a = rig.weight(&Weight::random(DType::Q8_0, [n * heads, 9, 1, 1], &random));
    // One column per batch, because products of many columns do not read terms.
    let [y, z] = [0; 2].map(|_| empty(rig, [9, 1, tokens, 1]));
    let [of_made, of_there] = [made, there].map(Seen::as_batches);
    let operands = [q, k, v, mask];
    let alone = chosen(&op.clone().into(), &operands, plain);
    let fused = request(&operands, &[both, made], |r| select(&op.clone().into(), r));
    let product = chosen(&MulMat.into(), &[a, of_there], y);
    rig.chain(&[
        (alone, [&operands[..], &[plain]].concat()),
        (request(&[rows], &[there], select_terms), vec![rows, there]),
        (fused, [&operands[..], &[both, made]].concat()),
        (product.clone(), vec![a, of_there, y]),
        (product, vec![a, of_made, z]),
    ]);
    assert_eq!(bits(rig, both), bits(rig, plain));
    assert_eq!(bits(rig, z), bits(rig, y));
}
