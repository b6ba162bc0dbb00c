//! Any op on any operands returns tensors of the inferred sizes or an error, and never panics.

use proptest::prelude::*;
use tpc_ir::op::*;
use tpc_ir::{CellParts, DType, Dim};

use super::*;

fn ops() -> Vec<Op> {
    let window = Some(Interval { start: 1, len: 2 });
    let dims = |d: [u64; RANK]| d.map(Dim::constant);
    let mut out: Vec<Op> = Vec::new();
    out.extend(UnaryKind::ALL.iter().map(|&kind| Unary { kind }.into()));
    out.extend(BinaryKind::ALL.iter().map(|&kind| Binary { kind }.into()));
    out.extend(SortOrder::ALL.map(|order| ArgSort { order }.into()));
    out.extend(GluKind::ALL.iter().map(|&kind| Glu::new(kind).into()));
    for kind in NormKind::ALL {
        let (eps, n) = (1e-5, 2);
        out.push(Norm { kind, eps }.into());
        out.push(NormStats { kind }.into());
        out.push(NormApply { kind, eps, n }.into());
    }
    let sections = [1, 0, 0, 1];
    let modes = [
        RopeMode::Norm,
        RopeMode::Neox,
        RopeMode::Mrope { sections },
        RopeMode::Imrope { sections },
    ];
    for mode in modes {
        let rope = Rope {
            mode,
            n_dims: 2,
            n_ctx_orig: 0,
            freq_base: 1.0,
            freq_scale: 0.0,
            ext_factor: 1.0,
            attn_factor: 1.0,
            beta_fast: 0.0,
            beta_slow: 0.0,
        };
        out.push(rope.into());
    }
    for keep in Side::ALL {
        let (offset, fill) = (1, 0.0);
        out.push(Tri { keep, offset, fill }.into());
    }
    for (kind, size) in PoolKind::ALL.into_iter().zip([0, 2]) {
        let pool = Pool2d {
            kind,
            window: [size, 1],
            stride: [1, size],
            pad: [u64::MAX / 2 * (2 - size), 1],
        };
        out.push(pool.into());
    }
    let attn = FlashAttn {
        scale: 1.0,
        max_bias: 8.0,
        softcap: 1.0,
        heads: None,
        lse: false,
    };
    let heads = vec![Interval { start: 1, len: 2 }];
    let heads = Some(HeadWindow { heads, total: 3 });
    let (min, max) = (1.0, -1.0);
    let cells = CellParts {
        first: 0,
        count: 1,
        of: 2,
    };
    out.extend([
        Weight {
            tensor: "w".into(),
            parts: None,
        }
        .into(),
        Opaque::with_name("f").into(),
        Opaque::with_name("silu_back").into(),
        Scale {
            scale: 2.0,
            bias: 1.0,
        }
        .into(),
        Clamp { min, max }.into(),
        Cast { to: DType::F16 }.into(),
        Hadamard { n: 2 }.into(),
        Arange::new(1.0, 0.5, Dim::constant(2)).into(),
        LeakyRelu { slope: 0.1 }.into(),
        Xielu {
            alpha_n: 1.0,
            alpha_p: 1.0,
            beta: 0.5,
            eps: -1e-6,
        }
        .into(),
        Fill { value: 1.0 }.into(),
        LightningIndexer.into(),
        HcComb {
            eps: 1e-6,
            iterations: 2,
        }
        .into(),
        NgramRows {
            factors: vec![3, u64::MAX],
            tables: vec![Interval { start: 0, len: 5 }, Interval { start: 5, len: 1 }],
            end: 2,
        }
        .into(),
        Mean {
            n: Dim::constant(2),
        }
        .into(),
        Cumsum.into(),
        Diag.into(),
        MulMat.into(),
        MulMatId { window: None }.into(),
        MulMatId { window }.into(),
        AddId { window: None }.into(),
        AddId { window }.into(),
        GetRows { window: None }.into(),
        GetRows { window }.into(),
        SoftMax {
            max_bias: 8.0,
            ..SoftMax::with_scale(1.0)
        }
        .into(),
        FlashAttn {
            heads,
            ..attn.clone()
        }
        .into(),
        FlashAttn {
            lse: true,
            ..attn.clone()
        }
        .into(),
        attn.into(),
        MergeAttn.into(),
        SsmConv.into(),
        SsmScan.into(),
        GatedDeltaNet.into(),
        Wkv.into(),
        Copy.into(),
        AllReduce.into(),
    ]);
    for axis in 0..5 {
        let start_len = |start, len| Slice {
            axis,
            start: Dim::constant(start),
            len: Dim::constant(len),
        };
        out.extend([
            SetRows::along(axis).into(),
            SetRows {
                axis,
                cells: Some(cells),
            }
            .into(),
            SetSlice {
                axis,
                start: Dim::constant(axis),
            }
            .into(),
            SetSlice {
                axis,
                start: Dim::constant(u64::MAX),
            }
            .into(),
            Sum { axis }.into(),
            TopK { k: axis }.into(),
            TopMask { k: axis }.into(),
            TopKMask {
                has_scores: axis % 2 == 1,
                has_members: axis > 1,
                has_extra: axis == 3,
            }
            .into(),
            start_len(1, 1).into(),
            start_len(u64::MAX, 1).into(),
            Concat { axis }.into(),
            Pad {
                axis,
                before: 1,
                after: 0,
            }
            .into(),
            AllGather { axis }.into(),
            ReduceScatter {
                axis,
                counts: vec![1, 1],
            }
            .into(),
            ReduceScatter {
                axis,
                counts: Vec::new(),
            }
            .into(),
            AllToAll {
                cut: axis,
                join: 4 - axis,
                counts: vec![1, 1],
            }
            .into(),
            Permute {
                axes: [axis, 0, 3, 2],
            }
            .into(),
        ]);
    }
    for d in [
        [0, 2, 1, 1],
        [2, 2, 1, 1],
        [2, 2, 2, 2],
        [u64::MAX, 2, 0, 1],
    ] {
        out.push(Reshape { dims: dims(d) }.into());
        out.push(Repeat { dims: dims(d) }.into());
    }
    out
}

fn operands() -> impl Strategy<Value = Vec<Tensor>> {
    (0_usize..3).prop_flat_map(|usual| prop::collection::vec(operand(usual), 0..8))
}

/// Generates a size, mostly `usual`, so that operands fit each other.
fn size(usual: usize) -> impl Strategy<Value = usize> {
    prop_oneof![8 => Just(usual), 1 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(4)]
}

fn operand(usual: usize) -> impl Strategy<Value = Tensor> {
    let size = || size(usual);
    let dims = ([size(), size(), size(), size()], 1..=RANK).prop_map(|(mut dims, rank)| {
        dims[rank..].fill(1);
        dims
    });
    (dims, prop::bool::weighted(0.3), -1_i64..4).prop_map(|(dims, integer, first)| {
        let n: usize = dims.iter().product();
        let ints = (0..n as i64).map(|i| first + i % 2);
        if integer {
            Tensor::ints_of(dims, ints.collect()).expect("as many elements as sizes say")
        } else {
            let reals = ints.map(|i| [f64::NEG_INFINITY, 0.5, f64::NAN][(i + 1) as usize % 3]);
            Tensor::reals_of(dims, reals.collect()).expect("as many elements as sizes say")
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8000))]

    #[test]
    fn no_operands_make_an_op_panic(operands in operands()) {
        let operands: Vec<&Tensor> = operands.iter().collect();
        let types: Vec<TensorType> = operands.iter().map(|t| t.constant_type()).collect();
        let types: Vec<&TensorType> = types.iter().collect();
        let bindings = Bindings::default();
        let ctx = OpContext { bindings: &bindings, options: Options::default() };
        for op in ops() {
            let Ok(InferredTypes::Types(inferred)) = op.infer(&types) else {
                prop_assert!(eval(&op, &operands, &[], &ctx).is_err());
                continue;
            };
            let shapes: Vec<Shape> = inferred
                .iter()
                .map(|t| Shape::of(t, &bindings).expect("constant"))
                .collect();
            let stored = |s: &Shape| Shape { dtype: if s.dtype.is_integer() { s.dtype } else { DType::F16 }, ..*s };
            let narrow: Vec<Shape> = shapes.iter().map(stored).collect();
            for shapes in [shapes, narrow] {
                if let Ok(results) = eval(&op, &operands, &shapes, &ctx) {
                    let dims: Vec<_> = results.iter().map(Tensor::dims).collect();
                    let expected: Vec<_> = shapes.iter().map(|s| s.dims).collect();
                    prop_assert_eq!(dims, expected, "{}", op.name());
                }
            }
        }
    }
}

#[test]
fn every_op_is_tried() {
    let tried: Vec<&str> = ops().iter().map(Op::name).collect();
    for name in Op::NAMES.iter().flat_map(|n| n.iter()) {
        assert!(
            tried.contains(name) || ["input", "state"].contains(name),
            "{name} is missing above"
        );
    }
}
