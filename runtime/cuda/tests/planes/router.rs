//! The fused router gives the same bits as separate ops.

use tpc_cuda::kernels::{FusedOp, Router, Scores, WeightAxis, WeightNorm, select_fused};
use tpc_ir::DType;
use tpc_ir::op::{
    Binary, BinaryKind, Clamp, GetRows, Op, Scale, SoftMax, Sum, TopK, Unary, UnaryKind,
};
use tpc_op_cases::Random;

use crate::fused::{bits, empty, floats};
use crate::rig::{Rig, Seen, chosen, request};

fn soft_max() -> Op {
    SoftMax {
        scale: 1.0,
        max_bias: 0.0,
        heads: None,
    }
    .into()
}

#[test]
fn the_choice_of_experts_is_one_kernel() {
    let Some(mut rig) = Rig::new(29) else { return };
    let random = Random::new("router", 8);
    let clamp = Clamp {
        min: 6e-5,
        max: f32::INFINITY,
    };
    let scale = Scale {
        scale: 2.5,
        bias: 0.0,
    };
    for (experts, k, scores, biased, weights, scale) in [
        (
            128,
            8,
            Scores::SoftMax,
            false,
            WeightNorm::Sum(Some(clamp)),
            None,
        ),
        (
            40,
            3,
            Scores::Sigmoid,
            true,
            WeightNorm::Sum(None),
            Some(scale.clone()),
        ),
        (300, 4, Scores::Logits, false, WeightNorm::SoftMax, None),
        (8, 2, Scores::SoftMax, true, WeightNorm::None, Some(scale)),
    ] {
        let tokens = 3;
        let x = floats(&mut rig, [experts, tokens, 1, 1], &random);
        let bias = floats(&mut rig, [experts, 1, 1, 1], &random);
        let mut kernels = Vec::new();
        let mut op = |rig: &mut Rig, op: Op, seen: Vec<Seen>, dims: [usize; 4]| {
            let dtype = if let Op::TopK(_) = op {
                DType::I32
            } else {
                DType::F32
            };
            let y = rig.dense(dtype, dims, None);
            kernels.push((chosen(&op, &seen, y), [seen, vec![y]].concat()));
            y
        };
        let (whole, chosen_dims) = ([experts, tokens, 1, 1], [1, k, tokens, 1]);
        let kind = UnaryKind::Sigmoid;
        let scored = match scores {
            Scores::Logits => x,
            Scores::SoftMax => op(&mut rig, soft_max(), vec![x], whole),
            Scores::Sigmoid => op(&mut rig, Unary { kind }.into(), vec![x], whole),
        };
        let binary = |kind: BinaryKind| -> Op { Binary { kind }.into() };
        let by = match biased {
            true => op(&mut rig, binary(BinaryKind::Add), vec![scored, bias], whole),
            false => scored,
        };
        let ids = op(
            &mut rig,
            TopK { k: k as u64 }.into(),
            vec![by],
            [k, tokens, 1, 1],
        );
        let rows = scored.shown([1, experts, tokens, 1]);
        let rows = op(
            &mut rig,
            GetRows { window: None }.into(),
            vec![rows, ids],
            chosen_dims,
        );
        let one = [1, 1, tokens, 1];
        let mut last = match &weights {
            WeightNorm::None => rows,
            WeightNorm::SoftMax => {
                let flat = rows.shown([k, tokens, 1, 1]);
                op(&mut rig, soft_max(), vec![flat], [k, tokens, 1, 1]).shown(chosen_dims)
            }
            WeightNorm::Sum(clamp) => {
                let mut sum = op(&mut rig, Sum { axis: 1 }.into(), vec![rows], one);
                if let Some(clamp) = clamp {
                    sum = op(&mut rig, clamp.clone().into(), vec![sum], one);
                }
                op(
                    &mut rig,
                    binary(BinaryKind::Div),
                    vec![rows, sum],
                    chosen_dims,
                )
            }
        };
        if let Some(scale) = &scale {
            last = op(&mut rig, scale.clone().into(), vec![last], chosen_dims);
        }
        for (along, dims) in [
            (WeightAxis::Axis1, chosen_dims),
            (WeightAxis::Axis0, [k, tokens, 1, 1]),
        ] {
            let fused = FusedOp::Router(Router {
                scores,
                has_bias: biased,
                weights: weights.clone(),
                along,
                scale: scale.clone(),
            });
            let found = rig.dense(DType::I32, [k, tokens, 1, 1], None);
            let shares = empty(&mut rig, dims);
            let operands = if biased { vec![x, bias] } else { vec![x] };
            let kernel = request(&operands, &[found, shares], |r| select_fused(&fused, r));
            let mut all = kernels.clone();
            all.push((kernel, [operands, vec![found, shares]].concat()));
            rig.chain(&all);
            assert_eq!(rig.bytes(found), rig.bytes(ids), "{scores:?}");
            assert_eq!(
                bits(&mut rig, shares),
                bits(&mut rig, last),
                "{scores:?} {weights:?}"
            );
        }
    }
}
