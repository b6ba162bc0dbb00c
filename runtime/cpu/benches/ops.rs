//! Benchmarks kernels next to the bytes and operations they need. No speed is asserted.
//!
//!     cargo bench -p tpc-cpu --bench ops [FILTER] [THREADS]

#![allow(unsafe_code)]

use std::time::Instant;
use tpc_ir::random::SplitMix64;

use tpc_cpu::{Kernel, Sizes, Team, View};
use tpc_ir::DType;
use tpc_ir::op::{Binary, BinaryKind, FlashAttn, Glu, GluKind, Norm, NormKind, Op, Rope, RopeMode};
use tpc_ir::op::{SetRows, SoftMax, Sum};
use tpc_runtime::Options;
use tpc_runtime::quant::quantise;

/// Tensors of one type, larger than the caches in total.
struct Buffer {
    bytes: Vec<u8>,
    views: Vec<View>,
}

fn noise(n: usize) -> Vec<f32> {
    let mut random = SplitMix64::new(1);
    (0..n).map(|_| random.signed() as f32).collect()
}

impl Buffer {
    fn new(dtype: DType, ne: Sizes, copies: usize) -> Buffer {
        let n: usize = ne.iter().product();
        let mut one = Vec::new();
        if dtype.is_integer() {
            one.extend((0..n as i32).flat_map(i32::to_le_bytes));
        } else {
            quantise(dtype, &noise(n), &mut one).expect("an encoder");
        }
        let mut bytes = one.repeat(copies);
        let base = bytes.as_mut_ptr();
        let views = (0..copies)
            .map(|i| View::dense(base.wrapping_add(i * one.len()), dtype, ne))
            .collect();
        Buffer { bytes, views }
    }
}

struct Bench {
    filter: String,
    threads: usize,
    team: Team,
}

impl Bench {
    /// Times `op` on operands of these types and sizes, cycling through `copies` copies. Prints the median.
    fn run(
        &mut self,
        name: &str,
        op: &Op,
        operands: &[(DType, Sizes)],
        result: (DType, Sizes),
        [copies, flops]: [usize; 2],
    ) {
        if !name.contains(&self.filter) {
            return;
        }
        let inputs: Vec<Buffer> = operands
            .iter()
            .map(|&(t, ne)| Buffer::new(t, ne, copies))
            .collect();
        let output = Buffer::new(result.0, result.1, copies);
        let types: Vec<DType> = operands.iter().map(|o| o.0).collect();
        let kernel = Kernel::select(op, &types, &[result.0], Options::default()).expect("a kernel");
        let sizes: Vec<Sizes> = operands.iter().map(|o| o.1).collect();
        let bytes = kernel.scratch_bytes(&sizes, &[result.1]);
        let mut scratch: Vec<Vec<u8>> = (0..self.threads).map(|_| vec![0; bytes]).collect();
        let scratch: Vec<usize> = scratch
            .iter_mut()
            .map(|s| s.as_mut_ptr() as usize)
            .collect();
        let mut times = Vec::new();
        let begin = Instant::now();
        for round in 0.. {
            let at = round % copies;
            let operands: Vec<View> = inputs.iter().map(|b| b.views[at]).collect();
            let result = if op.is_update() {
                operands[0]
            } else {
                output.views[at]
            };
            let start = Instant::now();
            self.team
                .run(|worker| {
                    // SAFETY: the views and the scratch memory live; each worker has its own.
                    unsafe {
                        let own = scratch[worker.index()] as *mut u8;
                        let own = std::slice::from_raw_parts_mut(own, bytes);
                        kernel.run(worker, &operands, &[result], own)
                    }
                })
                .expect("no failure");
            times.push(start.elapsed().as_secs_f64());
            if begin.elapsed().as_secs_f64() > 0.7 && round > 5 {
                break;
            }
        }
        times.sort_by(f64::total_cmp);
        let (best, median) = (times[times.len() / 10], times[times.len() / 2]);
        let total: usize = inputs.iter().map(|b| b.bytes.len() / copies).sum();
        println!(
            "{name:<44} {:>10.1} us  {:>7.1} GB/s read  {:>7.1} GFLOP/s  (tenth {:.1} us)",
            median * 1e6,
            total as f64 / median / 1e9,
            flops as f64 / median / 1e9,
            best * 1e6
        );
    }
}

fn attention(bench: &mut Bench) {
    let op = |dk: usize| FlashAttn {
        scale: 1.0 / (dk as f32).sqrt(),
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    };
    for (dk, tokens, cells) in [
        (64, 1, 8192),
        (128, 1, 8192),
        (64, 128, 128),
        (128, 512, 512),
        (128, 128, 2048),
    ] {
        for dtype in [
            DType::F16,
            DType::Q8_0,
            DType::Q4_0,
            DType::F32,
            DType::Bf16,
            DType::Iq4Nl,
        ] {
            let (heads, kv) = (32, 8);
            let copies = if tokens == 1 { 12 } else { 1 };
            bench.run(
                &format!("attention {dk} x {tokens} x {cells} {dtype}"),
                &op(dk).into(),
                &[
                    (DType::F32, [dk, tokens, heads, 1]),
                    (dtype, [dk, cells, kv, 1]),
                    (dtype, [dk, cells, kv, 1]),
                    (DType::F32, [cells, tokens, 1, 1]),
                ],
                (DType::F32, [dk, heads, tokens, 1]),
                [copies, 4 * dk * cells * tokens * heads],
            );
        }
    }
}

fn others(bench: &mut Bench) {
    let f32 = DType::F32;
    let (long, sums) = ([1 << 16, 1024, 1, 1], [1, 1024, 1, 1]);
    bench.run(
        "read limit (sum)",
        &Sum { axis: 0 }.into(),
        &[(f32, long)],
        (f32, sums),
        [1, 0],
    );
    for tokens in [1, 128] {
        let wide = [2048, tokens, 1, 1];
        let norm = Norm {
            kind: NormKind::Rms,
            eps: 1e-5,
        };
        bench.run(
            &format!("rms_norm 2048 x {tokens}"),
            &norm.into(),
            &[(f32, wide)],
            (f32, wide),
            [1, 0],
        );
        let (add, mul) = (BinaryKind::Add, BinaryKind::Mul);
        let two = [(f32, wide), (f32, wide)];
        bench.run(
            &format!("add 2048 x {tokens}"),
            &Binary { kind: add }.into(),
            &two,
            (f32, wide),
            [1, 0],
        );
        let row = [(f32, wide), (f32, [2048, 1, 1, 1])];
        bench.run(
            &format!("mul 2048 x {tokens} by a row"),
            &Binary { kind: mul }.into(),
            &row,
            (f32, wide),
            [1, 0],
        );
        let ffn = [8192, tokens, 1, 1];
        for kind in [GluKind::Swiglu, GluKind::Geglu, GluKind::GegluErf] {
            bench.run(
                &format!("{} 8192 x {tokens}", kind.name()),
                &Glu::new(kind).into(),
                &[(f32, ffn), (f32, ffn)],
                (f32, ffn),
                [1, 0],
            );
        }
        for mode in [RopeMode::Norm, RopeMode::Neox] {
            let heads = [64, 32, tokens, 1];
            let op = Rope::with_defaults(mode, 64);
            bench.run(
                &format!("rope {mode:?} 64 x 32 x {tokens}"),
                &op.into(),
                &[(f32, heads), (DType::I32, [tokens, 1, 1, 1])],
                (f32, heads),
                [1, 0],
            );
        }
        let logits = [2048, tokens, 32, 1];
        bench.run(
            &format!("soft_max 2048 x {tokens} x 32"),
            &SoftMax::with_scale(0.125).into(),
            &[(f32, logits), (f32, [2048, tokens, 1, 1])],
            (f32, logits),
            [1, 0],
        );
        for dtype in [DType::F16, DType::Q8_0, DType::Q4_0, DType::Iq4Nl] {
            let cache = [512, 8192, 1, 1];
            bench.run(
                &format!("set_rows 512 x {tokens} {dtype}"),
                &SetRows::along(1).into(),
                &[
                    (dtype, cache),
                    (f32, [512, tokens, 1, 1]),
                    (DType::I32, [tokens, 1, 1, 1]),
                ],
                (dtype, cache),
                [1, 0],
            );
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let filter = args.first().cloned().unwrap_or_default();
    let threads = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(2);
    let team = Team::new(threads).expect("threads");
    let mut bench = Bench {
        filter,
        threads,
        team,
    };
    attention(&mut bench);
    others(&mut bench);
}
