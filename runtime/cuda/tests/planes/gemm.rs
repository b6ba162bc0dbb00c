//! Products of many columns: close to the exact results, with the same bits in every tile, and the same bits fused.

use tpc_cuda::kernels::{FusedOp, Kernel, select_fused, select_halves, select_terms};
use tpc_ir::DType;
use tpc_ir::op::{Binary, BinaryKind, Glu, GluKind, MulMat, Op};
use tpc_op_cases::Random;

use crate::fused::{bits, empty, floats};
use crate::rig::{Rig, Seen, chosen, request};
use crate::{Weight, columns, types, widths};

type Chain = Vec<(Kernel, Vec<Seen>)>;

/// The kernels that make the terms and halves of activations.
fn forms(rig: &mut Rig, x: Seen) -> (Seen, Seen, Chain) {
    let (q, h) = (rig.terms(x), rig.halves(x));
    let terms = request(&[x], &[q], select_terms);
    let halves = request(&[x], &[h], select_halves);
    (q, h, vec![(terms, vec![x, q]), (halves, vec![x, h])])
}

fn product(rig: &mut Rig, [a, q, h]: [Seen; 3], dims: [usize; 4]) -> (Seen, Chain) {
    let y = empty(rig, dims);
    let kernel = chosen(&MulMat.into(), &[a, q], y);
    assert!(kernel.instance.name().starts_with("plane_gemm"));
    (y, vec![(kernel, vec![a, q, y, h])])
}

#[test]
fn products_of_many_columns_are_near() {
    let Some(mut rig) = Rig::new(41) else { return };
    for (n, dtype) in types().enumerate() {
        let random = Random::new(dtype.name(), 31);
        for (i, k) in widths(dtype).into_iter().enumerate() {
            let (rows, count) = ([70, 3, 33][i], [9, 70, 20][(n + i) % 3]);
            let stacks = if i == 1 { 2 } else { 1 };
            let weight = Weight::random(dtype, [k, rows, stacks, 1], &random);
            let x = columns(k, count * stacks, &random);
            let found = rig.product(&MulMat.into(), &weight, (&x, [k, count, stacks, 1]), None);
            for c in 0..count * stacks {
                for r in 0..rows {
                    let found = found[c * rows + r];
                    let column = &x[c * k..][..k];
                    let (wanted, bound) = weight.product(c / count * rows + r, column);
                    let off = (f64::from(found) - wanted).abs();
                    // Scales, weights and activations have 11 bits.
                    assert!(
                        off <= 8.0 * bound,
                        "{dtype}, {k} wide, row {r}, column {c}: {found}, expected {wanted}, off {off:e} of {bound:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_element_has_the_same_bits_in_every_tile() {
    let Some(mut rig) = Rig::new(42) else { return };
    let random = Random::new("tiles", 1);
    // 96 batches are multiplied in large tiles, one batch in small tiles.
    let (k, rows, count, batches) = (288, 5, 9, 96);
    let weight = Weight::random(DType::Q5_1, [k, rows, 1, 1], &random);
    let x = columns(k, count * batches, &random);
    let of = |rig: &mut Rig, x: &[f32], batches: usize| {
        let found = rig.product(&MulMat.into(), &weight, (x, [k, count, batches, 1]), None);
        found.iter().map(|y| y.to_bits()).collect::<Vec<u32>>()
    };
    let all = of(&mut rig, &x, batches);
    for batch in [0, 50, 95] {
        let own = &x[batch * count * k..][..count * k];
        let alone = of(&mut rig, own, 1);
        assert!(alone == all[batch * count * rows..][..count * rows]);
        // In another order, and more columns.
        let (first, rest) = own.split_at(k);
        let turned = of(&mut rig, &[rest, first].concat(), 1);
        assert!(turned[(count - 1) * rows..] == alone[..rows]);
        assert!(turned[..rows] == alone[rows..2 * rows]);
    }
}

#[test]
fn columns_with_infinities_have_no_numbers() {
    let Some(mut rig) = Rig::new(43) else { return };
    let random = Random::new("nan", 6);
    let weight = Weight::random(DType::Q4K, [256, 4, 1, 1], &random);
    for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = columns(256, 12, &random);
        x[256 + 40] = wrong;
        let found = rig.product(&MulMat.into(), &weight, (&x, [256, 12, 1, 1]), None);
        for (c, column) in found.chunks(4).enumerate() {
            let expected = c != 1;
            assert!(
                column.iter().all(|y| y.is_finite() == expected),
                "{column:?}"
            );
        }
    }
}

#[test]
fn columns_of_every_magnitude_keep_their_bits() {
    let Some(mut rig) = Rig::new(44) else { return };
    let random = Random::new("magnitudes", 2);
    let weight = Weight::random(DType::Q8_0, [64, 9, 1, 1], &random);
    let one = columns(64, 1, &random);
    let powers = [-100, -60, -20, -3, 0, 1, 17, 40, 80];
    let scaled = |p: i32| one.iter().map(move |x| x * (f64::from(p).exp2() as f32));
    let x: Vec<f32> = powers.iter().flat_map(|p| scaled(*p)).collect();
    let found = rig.product(
        &MulMat.into(),
        &weight,
        (&x, [64, powers.len(), 1, 1]),
        None,
    );
    let middle = found[4 * 9..5 * 9].to_vec();
    for (p, column) in powers.iter().zip(found.chunks(9)) {
        for (y, wanted) in column.iter().zip(&middle) {
            assert_eq!(
                f64::from(*y),
                f64::from(*wanted) * f64::from(*p).exp2(),
                "2^{p}"
            );
        }
    }
}

#[test]
fn fused_products_of_many_columns_have_the_bits_of_separate_ops() {
    let Some(mut rig) = Rig::new(45) else { return };
    for (dtype, k, n) in [(DType::Q4K, 256, 11), (DType::Mxfp4, 96, 70)] {
        let random = Random::new(dtype.name(), 32);
        let x = floats(&mut rig, [k, n, 1, 1], &random);
        let (q, h, mut chain) = forms(&mut rig, x);
        let (mut operands, mut results, mut wanted) = (vec![q], Vec::new(), Vec::new());
        for (rows, more) in [(37, 0), (130, 2), (5, 1)] {
            let a = rig.weight(&Weight::random(dtype, [k, rows, 1, 1], &random));
            let dims = [rows, n, 1, 1];
            let (mut last, kernels) = product(&mut rig, [a, q, h], dims);
            chain.extend(kernels);
            operands.push(a);
            let mut own = vec![a, q];
            // A bias of one row, then a residual.
            for columns in [1, n].into_iter().take(more) {
                let other = floats(&mut rig, [rows, columns, 1, 1], &random);
                let sum = empty(&mut rig, dims);
                let add = Binary {
                    kind: BinaryKind::Add,
                };
                let add = chosen(&add.into(), &[last, other], sum);
                chain.push((add, vec![last, other, sum]));
                operands.push(other);
                own.push(other);
                last = sum;
            }
            if more > 0 {
                let both = empty(&mut rig, dims);
                let fused = request(&own, &[both], |r| select_fused(&FusedOp::MulMatAdd, r));
                chain.push((fused, [own, vec![both, h]].concat()));
                results.push(both);
                wanted.push(last);
            }
            wanted.push(last);
            results.push(empty(&mut rig, dims));
        }
        let joined = [results[0], results[2], results[4]];
        let fused = FusedOp::GroupedMulMat(vec![0, 2, 1]);
        let fused = request(&operands, &joined, |r| select_fused(&fused, r));
        assert!(fused.instance.name().starts_with("grouped_gemms"));
        chain.push((fused, [&operands[..], &joined, &[h]].concat()));
        rig.chain(&chain);
        for (found, wanted) in results.into_iter().zip(wanted) {
            assert_eq!(bits(&mut rig, found), bits(&mut rig, wanted), "{dtype}");
        }
    }
}

#[test]
fn gated_products_of_many_columns_are_one_kernel() {
    let Some(mut rig) = Rig::new(46) else { return };
    let glu = Glu::new(GluKind::Swiglu);
    let random = Random::new("gated", 3);
    for (dtype, k, rows, n) in [(DType::Q6K, 256, 96, 11), (DType::Q4_0, 96, 35, 70)] {
        let weight = |rows: usize| Weight::random(dtype, [k, rows, 1, 1], &random);
        let [gate, up] = [0; 2].map(|_| rig.weight(&weight(rows)));
        let both = rig.weight(&weight(2 * rows));
        let x = floats(&mut rig, [k, n, 1, 1], &random);
        let (q, h, mut chain) = forms(&mut rig, x);
        let dims = [rows, n, 1, 1];
        let (g, kernels) = product(&mut rig, [gate, q, h], dims);
        chain.extend(kernels);
        let (u, kernels) = product(&mut rig, [up, q, h], dims);
        chain.extend(kernels);
        let (y, third) = product(&mut rig, [both, q, h], [2 * rows, n, 1, 1]);
        chain.extend(third);
        let [apart, halved, fused, fused_half] = [0; 4].map(|_| empty(&mut rig, dims));
        let of = Op::from(glu.clone());
        chain.push((chosen(&of, &[g, u], apart), vec![g, u, apart]));
        chain.push((chosen(&of, &[y], halved), vec![y, halved]));
        let op = FusedOp::MulMatGlu(glu.clone());
        // The kernel ignores a view of terms.
        let made = rig.terms(apart);
        let one = request(&[gate, up, q], &[fused, made], |r| select_fused(&op, r));
        chain.push((one, vec![gate, up, q, fused, made, h]));
        let one = request(&[both, q], &[fused_half], |r| select_fused(&op, r));
        chain.push((one, vec![both, q, fused_half, h]));
        rig.chain(&chain);
        assert_eq!(bits(&mut rig, fused), bits(&mut rig, apart), "{dtype}");
        assert_eq!(
            bits(&mut rig, fused_half),
            bits(&mut rig, halved),
            "{dtype}"
        );
    }
}
