//! Norms fused with the source of their rows give the same bits as separate ops.

use tpc_cuda::kernels::{FusedOp, KeepInput, Kernel, RowSource, select_fused, select_terms};
use tpc_ir::DType;
use tpc_ir::op::{Binary, BinaryKind, MulMat, Norm, NormKind, Op, Sum};
use tpc_op_cases::Random;

use crate::Weight;
use crate::fused::{bits, empty, floats};
use crate::rig::{Rig, Seen, chosen, request};

struct Chain {
    kernels: Vec<(Kernel, Vec<Seen>)>,
    dims: [usize; 4],
}

impl Chain {
    fn op(&mut self, rig: &mut Rig, op: &Op, operands: &[Seen]) -> Seen {
        let y = empty(rig, self.dims);
        let kernel = chosen(op, operands, y);
        self.kernels.push((kernel, [operands, &[y]].concat()));
        y
    }

    fn binary(&mut self, rig: &mut Rig, kind: BinaryKind, operands: [Seen; 2]) -> Seen {
        self.op(rig, &Binary { kind }.into(), &operands)
    }
}

/// Returns row sources, with their operands and the rows that separate ops compute.
fn made(
    rig: &mut Rig,
    chain: &mut Chain,
    random: &Random,
    norm: &Norm,
) -> Vec<(RowSource, Vec<Seen>, Seen)> {
    let [n, tokens, ..] = chain.dims;
    let x = floats(rig, chain.dims, random);
    let by = floats(rig, [n, 1, 1, 1], random);
    let more = floats(rig, chain.dims, random);
    let parts = floats(rig, [n, 3, tokens, 1], random);
    let shares = floats(rig, [1, 3, tokens, 1], random);
    let added = chain.binary(rig, BinaryKind::Add, [x, more]);
    let own = chain.op(rig, &norm.clone().into(), &[x]);
    let own = chain.binary(rig, BinaryKind::Mul, [own, by]);
    let own_added = chain.binary(rig, BinaryKind::Add, [own, more]);
    // The weighted parts have the sizes of the parts.
    let dims = std::mem::replace(&mut chain.dims, [n, 3, tokens, 1]);
    let mixed = chain.binary(rig, BinaryKind::Mul, [parts, shares]);
    chain.dims = [n, 1, tokens, 1];
    let mixed = chain.op(rig, &Sum { axis: 1 }.into(), &[mixed]).shown(dims);
    chain.dims = dims;
    let mixed_added = chain.binary(rig, BinaryKind::Add, [mixed, more]);
    let and = |of: RowSource| RowSource::Add(Box::new(of));
    // The sum over devices is a binary tree.
    let [a, b, c] = [0; 3].map(|_| floats(rig, chain.dims, random));
    let two = chain.binary(rig, BinaryKind::Add, [a, b]);
    let three = chain.binary(rig, BinaryKind::Add, [two, c]);
    let three_added = chain.binary(rig, BinaryKind::Add, [three, more]);
    let two_normed = chain.op(rig, &norm.clone().into(), &[two]);
    let two_normed = chain.binary(rig, BinaryKind::Mul, [two_normed, by]);
    let two_normed = chain.binary(rig, BinaryKind::Add, [two_normed, more]);
    let normed = |of: RowSource| RowSource::Norm(norm.clone(), Box::new(of));
    let (reduced, own_reduced) = (RowSource::AllReduce(3), normed(RowSource::AllReduce(2)));
    let normed = normed(RowSource::Tensor);
    vec![
        (RowSource::AllReduce(2), vec![a, b], two),
        (and(reduced), vec![a, b, c, more], three_added),
        (and(own_reduced), vec![a, b, by, more], two_normed),
        (RowSource::Tensor, vec![x], x),
        (and(RowSource::Tensor), vec![x, more], added),
        (normed.clone(), vec![x, by], own),
        (and(normed), vec![x, by, more], own_added),
        (RowSource::WeightedSum, vec![parts, shares], mixed),
        (
            and(RowSource::WeightedSum),
            vec![parts, shares, more],
            mixed_added,
        ),
    ]
}

#[test]
fn a_norm_with_what_comes_before_and_the_terms_are_one_kernel() {
    let Some(mut rig) = Rig::new(23) else { return };
    let random = Random::new("norm", 9);
    for (kind, k, rows, n) in [(NormKind::Rms, 96, 5, 1), (NormKind::Layer, 2208, 3, 3)] {
        let op = Norm { kind, eps: 1e-6 };
        let mut chain = Chain {
            kernels: Vec::new(),
            dims: [k, n, 1, 1],
        };
        let a = rig.weight(&Weight::random(DType::Q8_0, [k, rows, 1, 1], &random));
        let w = floats(&mut rig, [k, 1, 1, 1], &random);
        for (of, operands, x) in made(&mut rig, &mut chain, &random, &op) {
            let plain = chain.op(&mut rig, &op.clone().into(), &[x]);
            let wanted = chain.binary(&mut rig, BinaryKind::Mul, [plain, w]);
            let [fused, kept, summed] = [0; 3].map(|_| empty(&mut rig, [k, n, 1, 1]));
            let (p, q) = (rig.terms(wanted), rig.terms(fused));
            let [y, z] = [0; 2].map(|_| empty(&mut rig, [rows, n, 1, 1]));
            let apart = request(&[wanted], &[p], select_terms);
            let given = [operands.as_slice(), &[w]].concat();
            let product = chosen(&MulMat.into(), &[a, p], y);
            let together = FusedOp::NormMul(op.clone(), of.clone(), KeepInput::Yes);
            let both = request(&given, &[kept, fused, q], |r| select_fused(&together, r));
            let alone = FusedOp::MulSumAdd(of.clone());
            let alone = request(&operands, &[summed], |r| select_fused(&alone, r));
            let mut kernels = std::mem::take(&mut chain.kernels);
            kernels.extend([
                (apart, vec![wanted, p]),
                (both, [given.clone(), vec![kept, fused, q]].concat()),
                (alone, [operands, vec![summed]].concat()),
                (product.clone(), vec![a, p, y]),
                (product, vec![a, q, z]),
            ]);
            rig.chain(&kernels);
            assert_eq!(bits(&mut rig, kept), bits(&mut rig, x), "{of:?}");
            assert_eq!(bits(&mut rig, summed), bits(&mut rig, x), "{of:?}");
            assert_eq!(bits(&mut rig, fused), bits(&mut rig, wanted), "{of:?}");
            assert_eq!(bits(&mut rig, z), bits(&mut rig, y), "{of:?}");
            let other = empty(&mut rig, [k, n, 1, 1]);
            let alone = FusedOp::NormMul(op.clone(), of.clone(), KeepInput::No);
            let alone = request(&given, &[other], |r| select_fused(&alone, r));
            rig.chain(&[(alone, [given, vec![other]].concat())]);
            assert_eq!(bits(&mut rig, other), bits(&mut rig, wanted), "{of:?}");
        }
    }
}
