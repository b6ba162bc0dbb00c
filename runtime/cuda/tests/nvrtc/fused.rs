//! Fused kernels compile for every target, without spills.

use std::collections::BTreeSet;

use tpc_cuda::kernels::{
    ExpertBias, FusedOp, Head, Heads, Instance, KeepInput, Kernel, Request, Router, RowSource,
    Scores, Tensor, WeightAxis, WeightNorm, modules, select, select_best_logits,
    select_expert_order, select_fused, select_halves, select_sum_entries,
};
use tpc_cuda::nvrtc::{TARGETS, with_prelude};
use tpc_cuda::planes::Planes;
use tpc_ir::op::{
    FlashAttn, Glu, GluKind, MulMatId, Norm, NormKind, Rope, RopeMode, Scale, SetRows,
};
use tpc_ir::{CellParts, DType};
use tpc_runtime::Options;

use crate::resources::Threads;

fn chosen(fused: &FusedOp, operands: &[Tensor], results: &[Tensor]) -> Kernel {
    let request = Request {
        operands,
        results,
        options: Options::default(),
        multiprocessors: 132,
    };
    select_fused(fused, &request).unwrap_or_else(|e| panic!("{e}"))
}

fn planes(dtype: DType) -> Tensor {
    Tensor {
        format: Planes::FORMAT,
        ..Tensor::new(dtype, [4096, 4096, 1, 1])
    }
}

fn floats(dims: [usize; 4]) -> Tensor {
    Tensor::new(DType::F32, dims)
}

fn products(tokens: usize) -> Vec<Kernel> {
    let x = floats([4096, tokens, 1, 1]);
    let (q4, q6) = (planes(DType::Q4K), planes(DType::Q6K));
    let glu = Glu::new(GluKind::Swiglu);
    let ids = Tensor::new(DType::I32, [8, tokens, 1, 1]);
    let of = MulMatId { window: None };
    let sum = FusedOp::MulMatIdSum(of.clone(), ExpertBias::Absent, 1);
    let experts = FusedOp::MulMatIdGlu(glu.clone(), of.clone());
    let mut out = vec![
        chosen(
            &FusedOp::GroupedMulMat(vec![0, 0, 0]),
            &[x, q4, q4, q6],
            &[x; 3],
        ),
        chosen(
            &FusedOp::GroupedMulMat(vec![1, 1]),
            &[x, q4, x, q4, x],
            &[x; 2],
        ),
        chosen(&FusedOp::MulMatAdd, &[q4, x, x, x], &[x]),
        chosen(&experts, &[q4, q4, x, ids], &[x, x]),
        chosen(&experts, &[q4, q4, x, ids, x, x], &[x]),
        chosen(&FusedOp::MulMatIdAdd(of.clone()), &[q6, x, ids, x], &[x]),
        chosen(&FusedOp::MulMatAdd, &[x, x, x], &[x]),
        chosen(&sum, &[q6, x, ids, x, x], &[x]),
    ];
    if tokens > 8 {
        let request = |operands: &[Tensor], f: &dyn Fn(&Request<'_>) -> Kernel| {
            f(&Request {
                operands,
                results: &[x],
                options: Options::default(),
                multiprocessors: 132,
            })
        };
        out.push(request(&[x], &|r| select_halves(r).expect("reals")));
        out.push(request(&[q6, x, ids, x, x], &|r| {
            select_sum_entries(&sum, r).expect("a sum")
        }));
        out.push(request(&[q6, ids], &|r| {
            select_expert_order(&of, r).expect("indices")
        }));
    }
    for dtype in [DType::Q4K, DType::Q6K, DType::Q8_0, DType::Mxfp4] {
        let gate = planes(dtype);
        out.push(chosen(
            &FusedOp::MulMatGlu(glu.clone()),
            &[gate, gate, x],
            &[x, x],
        ));
    }
    out
}

pub(crate) fn norms() -> Vec<Kernel> {
    let op = Norm {
        kind: NormKind::Rms,
        eps: 1e-6,
    };
    let x = floats([4096, 1, 1, 1]);
    let and = |of: RowSource| RowSource::Add(Box::new(of));
    let forms = [
        (RowSource::Tensor, 1),
        (and(RowSource::Tensor), 2),
        (
            and(RowSource::Norm(op.clone(), Box::new(RowSource::Tensor))),
            3,
        ),
        (and(RowSource::WeightedSum), 3),
        (and(RowSource::AllReduce(2)), 3),
        (
            and(RowSource::Norm(
                op.clone(),
                Box::new(RowSource::AllReduce(8)),
            )),
            10,
        ),
    ];
    let of = |(rows, n): (RowSource, usize)| {
        let fused = FusedOp::NormMul(op.clone(), rows, KeepInput::Yes);
        chosen(&fused, &vec![x; n + 1], &[x; 3])
    };
    forms.into_iter().map(of).collect()
}

/// Returns the kernels before attention, with caches of all cells or of parts of the cells.
fn heads(cells: Option<CellParts>) -> Vec<Kernel> {
    let stores = SetRows { axis: 2, cells };
    let rope = Rope::with_defaults(RopeMode::Neox, 128);
    let norm = Norm {
        kind: NormKind::Rms,
        eps: 1e-6,
    };
    let scale = Scale {
        scale: 0.5,
        bias: 0.0,
    };
    let part = |stored: bool| Head {
        norm: Some(norm.clone()),
        rope: true,
        scale: (!stored).then(|| scale.clone()),
        set_rows: stored.then(|| stores.clone()),
    };
    let values = Head {
        norm: None,
        rope: false,
        scale: None,
        set_rows: Some(stores.clone()),
    };
    let heads = Heads {
        rope: Some((rope, false)),
        parts: vec![part(false), part(true), values],
    };
    let x = floats([128, 8, 1, 1]);
    let at = Tensor::new(DType::I64, [1, 1, 1, 1]);
    let cache = |dtype| Tensor::new(dtype, [128, 8, 64, 1]);
    let operands = [at, x, x, x, x, at, x, at];
    let both = |dtype| [x, cache(dtype), cache(dtype)];
    let fused = FusedOp::Heads(heads);
    [DType::F16, DType::Q8_0, DType::Iq4Nl]
        .into_iter()
        .map(|dtype| chosen(&fused, &operands, &both(dtype)))
        .collect()
}

pub(crate) fn attention() -> Vec<Kernel> {
    let mut out = heads(None);
    let x = floats([128, 8, 1, 1]);
    let op = FlashAttn {
        scale: 0.1,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    };
    let (q, mask) = (floats([128, 1, 8, 1]), floats([256, 1, 1, 1]));
    for dtype in [DType::F16, DType::Q8_0] {
        let k = Tensor::new(dtype, [128, 256, 2, 1]);
        let request = Request {
            operands: &[q, k, k, mask],
            results: &[x, x],
            options: Options::default(),
            multiprocessors: 132,
        };
        let kernel = select(&op.clone().into(), &request).unwrap_or_else(|e| panic!("{e}"));
        out.push(kernel);
    }
    out
}

pub(crate) fn router() -> Kernel {
    let router = Router {
        scores: Scores::SoftMax,
        has_bias: false,
        weights: WeightNorm::Sum(None),
        along: WeightAxis::Axis1,
        scale: None,
    };
    let x = floats([128, 1, 1, 1]);
    let ids = Tensor::new(DType::I32, [8, 1, 1, 1]);
    chosen(&FusedOp::Router(router), &[x], &[ids, floats([1, 8, 1, 1])])
}

fn best_logits() -> Kernel {
    let request = Request {
        operands: &[floats([128_256, 1, 1, 1])],
        results: &[],
        options: Options::default(),
        multiprocessors: 132,
    };
    select_best_logits(64_128, &request).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn kernels_of_several_ops_compile_for_cards() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let part = CellParts {
        first: 1,
        count: 1,
        of: 4,
    };
    let mut all = [
        products(1),
        products(8),
        products(512),
        norms(),
        attention(),
        heads(Some(part)),
    ]
    .concat();
    all.push(router());
    all.push(best_logits());
    let mut threads = Threads::default();
    all.iter().for_each(|kernel| threads.add(kernel));
    let all: BTreeSet<Instance> = all.into_iter().map(|kernel| kernel.instance).collect();
    let mut failed = Vec::new();
    for (t, target) in TARGETS.iter().enumerate() {
        let mine = all.iter().enumerate();
        let mine = mine.filter(|(i, _)| full || i % TARGETS.len() == t);
        let mine: BTreeSet<Instance> = mine.map(|(_, instance)| instance.clone()).collect();
        for module in modules(&mine) {
            match nvrtc.compile(module.name, &with_prelude(&module.text), target) {
                Err(e) => failed.push(format!("{target}: {e}")),
                Ok(compiled) => failed.extend(threads.faults(&compiled, target, nvrtc.version())),
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
