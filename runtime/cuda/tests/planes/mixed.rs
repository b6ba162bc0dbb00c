//! The fused weighted sum of experts gives the same bits as separate ops.

use tpc_cuda::kernels::{ExpertBias, FusedOp, select_fused, select_terms};
use tpc_ir::DType;
use tpc_ir::op::{AddId, Binary, BinaryKind, MulMatId, Op, Sum};
use tpc_op_cases::Random;

use crate::Weight;
use crate::fused::{bits, empty, floats};
use crate::rig::{Rig, Seen, chosen, request};

/// The weight type, sizes (K, rows, experts, slots, tokens), window, bias, and number of added tensors.
type Case = (
    DType,
    [usize; 5],
    Option<tpc_ir::Interval>,
    ExpertBias,
    usize,
);

fn check(rig: &mut Rig, random: &Random, (dtype, sizes, window, biased, more): Case) {
    let [k, rows, experts, slots, n] = sizes;
    let of = MulMatId { window };
    let own = window.map_or(experts, |w| w.len as usize);
    let a = rig.weight(&Weight::random(dtype, [k, rows, own, 1], random));
    let ids = (0..slots * n).map(|i| (i * 5 + i / slots) % experts);
    let ids: Vec<u8> = ids.flat_map(|i| (i as i32).to_ne_bytes()).collect();
    let ids = rig.dense(DType::I32, [slots, n, 1, 1], Some(&ids));
    let x = floats(rig, [k, slots, n, 1], random);
    let by = floats(rig, [1, slots, n, 1], random);
    let q = rig.terms(x);
    let mut kernels = vec![(request(&[x], &[q], select_terms), vec![x, q])];
    let mut operands = vec![a, q, ids];
    let mut last = empty(rig, [rows, slots, n, 1]);
    let product = chosen(&of.clone().into(), &operands, last);
    kernels.push((product, vec![a, q, ids, last]));
    let mut apart = |rig: &mut Rig, op: Op, seen: &[Seen], dims: [usize; 4]| {
        let y = empty(rig, dims);
        kernels.push((chosen(&op, seen, y), [seen, &[y]].concat()));
        y
    };
    if biased == ExpertBias::Present {
        let bias = floats(rig, [rows, own, 1, 1], random);
        let add = AddId { window };
        last = apart(rig, add.into(), &[last, bias, ids], [rows, slots, n, 1]);
        operands.push(bias);
    }
    operands.push(by);
    let of_kind = |kind: BinaryKind| Op::from(Binary { kind });
    last = apart(
        rig,
        of_kind(BinaryKind::Mul),
        &[last, by],
        [rows, slots, n, 1],
    );
    last = apart(rig, Sum { axis: 1 }.into(), &[last], [rows, 1, n, 1]);
    last = last.shown([rows, n, 1, 1]);
    for _ in 0..more {
        let other = floats(rig, [rows, n, 1, 1], random);
        last = apart(
            rig,
            of_kind(BinaryKind::Add),
            &[last, other],
            [rows, n, 1, 1],
        );
        operands.push(other);
    }
    let fused = FusedOp::MulMatIdSum(of, biased, more);
    for dims in [[rows, n, 1, 1], [rows, 1, n, 1]] {
        let shown = |s: &Seen| match s.rows() == [rows, n] {
            true => s.shown(dims),
            false => *s,
        };
        let seen: Vec<Seen> = operands.iter().map(shown).collect();
        let both = empty(rig, dims);
        let fused = request(&seen, &[both], |r| select_fused(&fused, r));
        rig.chain(&[kernels.clone(), vec![(fused, [seen, vec![both]].concat())]].concat());
        assert_eq!(
            bits(rig, both),
            bits(rig, last),
            "{dtype} {sizes:?} {biased:?}"
        );
    }
}

#[test]
fn products_of_experts_are_added_up_in_one_kernel() {
    let Some(mut rig) = Rig::new(37) else { return };
    let random = Random::new("mixed", 4);
    let window = Some(tpc_ir::Interval { start: 2, len: 5 });
    let cases: [Case; 5] = [
        (
            DType::Q6K,
            [768, 19, 8, 8, 3],
            window,
            ExpertBias::Absent,
            1,
        ),
        (DType::Q4K, [2048, 35, 4, 2, 2], None, ExpertBias::Absent, 2),
        (
            DType::Mxfp4,
            [96, 40, 7, 3, 2],
            window,
            ExpertBias::Present,
            0,
        ),
        (
            DType::Q8_0,
            [32, 70, 33, 15, 1],
            None,
            ExpertBias::Present,
            1,
        ),
        // Rows enough for two rows per lane.
        (
            DType::Q4K,
            [256, 4099, 3, 2, 1],
            None,
            ExpertBias::Absent,
            0,
        ),
    ];
    for case in cases {
        check(&mut rig, &random, case);
    }
}
