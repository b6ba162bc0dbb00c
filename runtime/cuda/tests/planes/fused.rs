//! Kernels of several ops have the bits of these ops one after another.

use tpc_cuda::kernels::{Fused, select_fused, select_terms};
use tpc_ir::DType;
use tpc_ir::op::{Binary, BinaryKind, Glu, GluKind, MulMat, Norm, NormKind, Op};
use tpc_op_cases::Random;

use crate::rig::{Rig, Seen, chosen, request};
use crate::{Weight, columns};

/// Types of which products are tried: with steps and minima, with halves, with tables.
const TYPES: [DType; 3] = [DType::Q4K, DType::Q6K, DType::Mxfp4];
/// The sizes of K, of rows, and numbers of tokens.
const SIZES: [(usize, usize, usize); 2] = [(768, 19, 1), (256, 35, 11)];

fn floats(rig: &mut Rig, dims: [usize; 4], random: &Random) -> Seen {
    let values = columns(dims[0], dims[1], random);
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_ne_bytes()).collect();
    rig.dense(DType::F32, dims, Some(&bytes))
}

fn empty(rig: &mut Rig, dims: [usize; 4]) -> Seen {
    rig.dense(DType::F32, dims, None)
}

fn bits(rig: &mut Rig, seen: Seen) -> Vec<u32> {
    let values = rig.floats(seen);
    assert!(values.iter().any(|x| *x != 0.0));
    values.iter().map(|x| x.to_bits()).collect()
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
            // A residual of the result's sizes, and a bias of a row.
            for more in [n, 1] {
                let more = floats(&mut rig, [rows, more, 1, 1], &random);
                let [y, sum, both] = [0; 3].map(|_| empty(&mut rig, [rows, n, 1, 1]));
                let product = chosen(&MulMat.into(), &[a, q], y);
                let kind = BinaryKind::Add;
                let add = chosen(&Binary { kind }.into(), &[y, more], sum);
                let fused = request(&[a, q, more], &[both], |r| {
                    select_fused(&Fused::MulMatAdd, r)
                });
                rig.chain(&[
                    (apart.clone(), vec![x, q]),
                    (product, vec![a, q, y]),
                    (add, vec![y, more, sum]),
                    (fused, vec![a, q, more, both]),
                ]);
                assert_eq!(
                    bits(&mut rig, both),
                    bits(&mut rig, sum),
                    "{dtype}, {n} tokens"
                );
            }
        }
    }
}

#[test]
fn gated_products_are_one_kernel() {
    let Some(mut rig) = Rig::new(22) else { return };
    let glu = Glu::new(GluKind::Swiglu);
    for dtype in TYPES {
        let random = Random::new(dtype.name(), 8);
        for (k, rows, n) in SIZES {
            let [gate, up] = [0; 2].map(|_| {
                let weight = Weight::random(dtype, [k, rows, 1, 1], &random);
                rig.weight(&weight)
            });
            let x = floats(&mut rig, [k, n, 1, 1], &random);
            let q = rig.terms(x);
            let [g, u, out, both] = [0; 4].map(|_| empty(&mut rig, [rows, n, 1, 1]));
            let product = chosen(&MulMat.into(), &[gate, q], g);
            let activation = chosen(&Op::from(glu.clone()), &[g, u], out);
            let fused = Fused::Gated(glu.clone());
            let fused = request(&[gate, up, q], &[both], |r| select_fused(&fused, r));
            rig.chain(&[
                (request(&[x], &[q], select_terms), vec![x, q]),
                (product.clone(), vec![gate, q, g]),
                (product, vec![up, q, u]),
                (activation, vec![g, u, out]),
                (fused, vec![gate, up, q, both]),
            ]);
            assert_eq!(
                bits(&mut rig, both),
                bits(&mut rig, out),
                "{dtype}, {n} tokens"
            );
        }
    }
}

#[test]
fn a_norm_its_factor_and_the_terms_are_one_kernel() {
    let Some(mut rig) = Rig::new(23) else { return };
    let random = Random::new("norm", 9);
    for kind in [NormKind::Rms, NormKind::Layer] {
        for (k, rows, n) in [(96, 5, 1), (2208, 3, 3)] {
            let op = Norm { kind, eps: 1e-6 };
            let a = rig.weight(&Weight::random(DType::Q8_0, [k, rows, 1, 1], &random));
            let x = floats(&mut rig, [k, n, 1, 1], &random);
            let w = floats(&mut rig, [k, 1, 1, 1], &random);
            let [plain, scaled, fused] = [0; 3].map(|_| empty(&mut rig, [k, n, 1, 1]));
            let [y, z] = [0; 2].map(|_| empty(&mut rig, [rows, n, 1, 1]));
            let (p, q) = (rig.terms(scaled), rig.terms(fused));
            let kind = BinaryKind::Mul;
            let norm = chosen(&op.clone().into(), &[x], plain);
            let mul = chosen(&Binary { kind }.into(), &[plain, w], scaled);
            let apart = request(&[scaled], &[p], select_terms);
            let together = Fused::NormMul(op);
            let alone = request(&[x, w], &[fused], |r| select_fused(&together, r));
            let both = request(&[x, w], &[fused, q], |r| select_fused(&together, r));
            let product = chosen(&MulMat.into(), &[a, p], y);
            rig.chain(&[
                (norm, vec![x, plain]),
                (mul, vec![plain, w, scaled]),
                (apart, vec![scaled, p]),
                (alone, vec![x, w, fused]),
            ]);
            let wanted = bits(&mut rig, scaled);
            assert_eq!(bits(&mut rig, fused), wanted, "{k} wide");
            rig.chain(&[
                (both, vec![x, w, fused, q]),
                (product.clone(), vec![a, p, y]),
                (product, vec![a, q, z]),
            ]);
            assert_eq!(bits(&mut rig, fused), wanted, "{k} wide");
            assert_eq!(bits(&mut rig, z), bits(&mut rig, y), "{k} wide");
        }
    }
}
