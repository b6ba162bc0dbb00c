//! Expert products of many tokens: close to the exact results, and the same bits fused.

use tpc_cuda::kernels::{
    ExpertBias, FusedOp, Kernel, select_expert_order, select_fused, select_halves,
    select_sum_entries, select_terms,
};
use tpc_ir::op::{AddId, Binary, BinaryKind, Glu, GluKind, MulMatId, Op, Sum};
use tpc_ir::{DType, Interval};
use tpc_op_cases::Random;

use crate::fused::{bits, empty, floats};
use crate::rig::{Rig, Seen, chosen, request};
use crate::{Weight, columns, types, widths};

type Chain = Vec<(Kernel, Vec<Seen>)>;

/// Experts, slots and tokens.
const SIZES: [usize; 3] = [5, 2, 90];

/// Chooses experts: a third of the entries at random, the others the second expert.
fn chosen_experts(experts: usize, random: &Random) -> Vec<usize> {
    let one = |i: usize| match i % 3 {
        0 => random.below(experts),
        _ => 1,
    };
    (0..SIZES[1] * SIZES[2]).map(one).collect()
}

struct Tokens {
    q: Seen,
    h: Seen,
    ids: Seen,
    kernels: Chain,
}

impl Tokens {
    fn new(rig: &mut Rig, x: Seen, ids: &[usize]) -> Tokens {
        let bytes: Vec<u8> = ids.iter().flat_map(|i| (*i as i32).to_ne_bytes()).collect();
        let ids = rig.dense(DType::I32, [SIZES[1], SIZES[2], 1, 1], Some(&bytes));
        let (q, h) = (rig.terms(x), rig.halves(x));
        let kernels = vec![
            (request(&[x], &[q], select_terms), vec![x, q]),
            (request(&[x], &[h], select_halves), vec![x, h]),
        ];
        Tokens { q, h, ids, kernels }
    }

    fn order(&self, op: &MulMatId, a: Seen, y: Seen) -> (Kernel, Vec<Seen>) {
        let order = request(&[a, self.ids], &[y], |r| select_expert_order(op, r));
        (order, vec![a, self.ids, y])
    }

    /// The product as separate kernels.
    fn product(&self, rig: &mut Rig, op: &MulMatId, a: Seen) -> (Seen, Chain) {
        let y = empty(rig, [a.rows()[1], SIZES[1], SIZES[2], 1]);
        let product = chosen(&op.clone().into(), &[a, self.q, self.ids], y);
        assert!(product.instance.name().starts_with("experts_gemm"));
        let seen = vec![a, self.q, self.ids, y, self.h];
        (y, vec![self.order(op, a, y), (product, seen)])
    }
}

#[test]
fn experts_multiply_what_many_tokens_route_to_them() {
    let Some(mut rig) = Rig::new(51) else { return };
    let [experts, slots, tokens] = SIZES;
    let window = Some(Interval { start: 1, len: 3 });
    // Every third type: all types share the decoder that products of many columns check.
    for (n, dtype) in types().enumerate().step_by(3) {
        let random = Random::new(dtype.name(), 41);
        let k = widths(dtype)[n % 2];
        let (window, own) = [(None, experts), (window, 3)][n % 2];
        let start = window.map_or(0, |w| w.start as usize);
        let rows = [70, 5][n % 2];
        let weight = Weight::random(dtype, [k, rows, own, 1], &random);
        let ids = chosen_experts(experts, &random);
        // One column per token, or one per slot.
        let each = [1, slots][n / 2 % 2];
        let x = columns(k, each * tokens, &random);
        let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_ne_bytes()).collect();
        let seen = rig.dense(DType::F32, [k, each, tokens, 1], Some(&bytes));
        let a = rig.weight(&weight);
        let of = Tokens::new(&mut rig, seen, &ids);
        let (y, product) = of.product(&mut rig, &MulMatId { window }, a);
        rig.chain(&[of.kernels, product].concat());
        let found = rig.floats(y);
        for (entry, id) in ids.iter().enumerate() {
            let column = entry / slots * each + entry % slots % each;
            let column = &x[column * k..][..k];
            for r in 0..rows {
                let found = found[entry * rows + r];
                let expert = id.checked_sub(start).filter(|e| *e < own);
                let exact = |e: usize| weight.product(e * rows + r, column);
                let (wanted, bound) = expert.map_or((0.0, 0.0), exact);
                let off = (f64::from(found) - wanted).abs();
                assert!(
                    off <= 8.0 * bound,
                    "{dtype}, entry {entry}, row {r}: {found}, expected {wanted}"
                );
            }
        }
    }
}

#[test]
fn fused_products_of_experts_have_the_bits_of_separate_ops() {
    let Some(mut rig) = Rig::new(52) else { return };
    let [experts, slots, tokens] = SIZES;
    let windowed = Some(Interval { start: 1, len: 3 });
    for (window, own, biased) in [(None, experts, false), (windowed, 3, true)] {
        let random = Random::new("experts", 42);
        let (k, rows, op) = (256, 37, MulMatId { window });
        let x = floats(&mut rig, [k, 1, tokens, 1], &random);
        let ids = chosen_experts(experts, &random);
        let of = Tokens::new(&mut rig, x, &ids);
        let mut chain = of.kernels.clone();
        let weight = |rows| Weight::random(DType::Q4K, [k, rows, own, 1], &random);
        let [gate, up] = [0; 2].map(|_| rig.weight(&weight(rows)));
        let (mut operands, dims) = (vec![gate, up, of.q, of.ids], [rows, slots, tokens, 1]);
        let each = [gate, up].map(|a| {
            let (y, kernels) = of.product(&mut rig, &op, a);
            chain.extend(kernels);
            if !biased {
                return y;
            }
            let [sum, both] = [0; 2].map(|_| empty(&mut rig, dims));
            let bias = floats(&mut rig, [rows, own, 1, 1], &random);
            let add = chosen(&AddId { window }.into(), &[y, bias, of.ids], sum);
            chain.push((add, vec![y, bias, of.ids, sum]));
            let fused = FusedOp::MulMatIdAdd(op.clone());
            let seen = [a, of.q, of.ids, bias];
            let fused = request(&seen, &[both], |r| select_fused(&fused, r));
            let fused = (fused, [&seen[..], &[both, of.h]].concat());
            rig.chain(&[chain.clone(), vec![of.order(&op, a, both), fused]].concat());
            assert_eq!(bits(&mut rig, both), bits(&mut rig, sum));
            operands.push(bias);
            sum
        });
        let glu = Glu::new(GluKind::Swiglu);
        let [out, both] = [0; 2].map(|_| empty(&mut rig, dims));
        let activation = chosen(&Op::from(glu.clone()), &each, out);
        chain.push((activation, [&each[..], &[out]].concat()));
        chain.push(of.order(&op, gate, both));
        let fused = FusedOp::MulMatIdGlu(glu, op.clone());
        let fused = request(&operands, &[both], |r| select_fused(&fused, r));
        assert!(fused.instance.name().starts_with("glu_experts_gemm"));
        chain.push((fused, [operands, vec![both, of.h]].concat()));
        rig.chain(&chain);
        assert_eq!(bits(&mut rig, both), bits(&mut rig, out), "{window:?}");
    }
}

#[test]
fn weighted_sums_of_experts_have_the_bits_of_separate_ops() {
    let Some(mut rig) = Rig::new(53) else { return };
    let [experts, slots, tokens] = SIZES;
    let windowed = Some(Interval { start: 2, len: 2 });
    for (window, own, biased, more) in [
        (None, experts, ExpertBias::Absent, 2),
        (windowed, 2, ExpertBias::Present, 0),
    ] {
        let random = Random::new("sums", 43);
        let (k, rows, op) = (96, 70, MulMatId { window });
        let x = floats(&mut rig, [k, slots, tokens, 1], &random);
        let ids = chosen_experts(experts, &random);
        let of = Tokens::new(&mut rig, x, &ids);
        let by = floats(&mut rig, [1, slots, tokens, 1], &random);
        let a = rig.weight(&Weight::random(DType::Q5_0, [k, rows, own, 1], &random));
        let mut operands = vec![a, of.q, of.ids];
        let mut chain = of.kernels.clone();
        let (mut last, kernels) = of.product(&mut rig, &op, a);
        chain.extend(kernels);
        let mut apart = |rig: &mut Rig, op: Op, seen: &[Seen], dims: [usize; 4]| {
            let y = empty(rig, dims);
            chain.push((chosen(&op, seen, y), [seen, &[y]].concat()));
            y
        };
        let dims = [rows, slots, tokens, 1];
        if biased == ExpertBias::Present {
            let bias = floats(&mut rig, [rows, own, 1, 1], &random);
            let seen = [last, bias, of.ids];
            last = apart(&mut rig, AddId { window }.into(), &seen, dims);
            operands.push(bias);
        }
        operands.push(by);
        let of_kind = |kind: BinaryKind| Op::from(Binary { kind });
        last = apart(&mut rig, of_kind(BinaryKind::Mul), &[last, by], dims);
        let summed = [rows, 1, tokens, 1];
        last = apart(&mut rig, Sum { axis: 1 }.into(), &[last], summed);
        last = last.shown([rows, tokens, 1, 1]);
        for _ in 0..more {
            let other = floats(&mut rig, [rows, tokens, 1, 1], &random);
            let add = of_kind(BinaryKind::Add);
            last = apart(&mut rig, add, &[last, other], [rows, tokens, 1, 1]);
            operands.push(other);
        }
        let both = empty(&mut rig, [rows, tokens, 1, 1]);
        let fused = FusedOp::MulMatIdSum(op.clone(), biased, more);
        let entries = request(&operands, &[both], |r| select_fused(&fused, r));
        assert!(entries.instance.name().starts_with("entries_gemm"));
        let sum = request(&operands, &[both], |r| select_sum_entries(&fused, r));
        operands.push(both);
        chain.push(of.order(&op, a, both));
        chain.push((entries, [&operands[..], &[of.h]].concat()));
        chain.push((sum, operands));
        rig.chain(&chain);
        assert_eq!(bits(&mut rig, both), bits(&mut rig, last), "{window:?}");
    }
}
