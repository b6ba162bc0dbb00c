//! Random graphs of 5 to 40 ops, planned and split at random, and executed both ways.

use tpc_ir::op::*;
use tpc_ir::{Dim, Value};

use super::random::{Builder, Fate, d, plan_and_run, split_and_run};

/// A graph of real values `[n, m, n_tokens]` made by random ops from one another, from weights and from inputs.
fn random_graph(b: &mut Builder) -> Value {
    let mut pool: Vec<Value> = Vec::new();
    let sizes = [2, 3, 4, 6, 8];
    for _ in 0..2 {
        let dims = [d(*b.rng.pick(&sizes)), d(*b.rng.pick(&sizes)), b.t(), d(1)];
        pool.push(b.plain(dims));
    }
    let ops = b.rng.range(5, 40);
    for _ in 0..ops {
        let x = *b.rng.pick(&pool);
        pool.push(step(b, &pool, x));
    }
    // What nobody used is used at the end, so that nothing is idle.
    let mut out = pool[pool.len() - 1];
    for &v in &pool[pool.len().saturating_sub(4)..pool.len() - 1] {
        if b.dims(v) == b.dims(out) {
            out = b.push(
                Binary {
                    kind: BinaryKind::Add,
                },
                vec![out, v],
            );
        }
    }
    out
}

fn constant(dim: &Dim) -> u64 {
    dim.as_const()
        .expect("the generator keeps axes 0 and 1 constant")
}

fn step(b: &mut Builder, pool: &[Value], x: Value) -> Value {
    let [n, m, t, _] = b.dims(x);
    let (n, m) = (constant(&n), constant(&m));
    match b.rng.range(0, 17) {
        0 => {
            let kind = *b.rng.pick(&[
                UnaryKind::Silu,
                UnaryKind::Tanh,
                UnaryKind::Sigmoid,
                UnaryKind::Relu,
            ]);
            b.push(Unary { kind }, vec![x])
        }
        1 => {
            let bias = if b.rng.one_in(2) { 0.0 } else { 0.5 };
            b.push(Scale { scale: 0.7, bias }, vec![x])
        }
        2 | 3 => {
            let fit: Vec<Value> = pool
                .iter()
                .copied()
                .filter(|&y| b.dims(y) == b.dims(x))
                .collect();
            let y = *b.rng.pick(&fit);
            let kind = *b
                .rng
                .pick(&[BinaryKind::Add, BinaryKind::Sub, BinaryKind::Mul]);
            let v = b.push(Binary { kind }, vec![x, y]);
            b.push(
                Unary {
                    kind: UnaryKind::Tanh,
                },
                vec![v],
            )
        }
        4 => {
            let w = b.weight([n, 1, 1, 1]);
            let kind = *b.rng.pick(&[BinaryKind::Add, BinaryKind::Mul]);
            b.push(Binary { kind }, vec![x, w])
        }
        5 | 6 => {
            let kind = *b.rng.pick(&NormKind::ALL);
            b.push(Norm { kind, eps: 1e-3 }, vec![x])
        }
        // Products with weights are what models are made of.
        7..=9 => {
            let out = *b.rng.pick(&[2, 3, 4, 6, 8]);
            let w = b.weight([n, out, 1, 1]);
            let v = b.push(MulMat, vec![w, x]);
            b.push(
                Scale {
                    scale: 0.5,
                    bias: 0.0,
                },
                vec![v],
            )
        }
        10 => b.push(Permute { axes: [1, 0, 2, 3] }, vec![x]),
        11 => {
            let flat = b.push(
                Reshape {
                    dims: [d(n * m), d(1), t.clone(), d(1)],
                },
                vec![x],
            );
            let w = b.weight([n * m, n * m, 1, 1]);
            let flat = b.push(MulMat, vec![w, flat]);
            let flat = b.push(
                Scale {
                    scale: 0.3,
                    bias: 0.0,
                },
                vec![flat],
            );
            b.push(
                Reshape {
                    dims: [d(n), d(m), t, d(1)],
                },
                vec![flat],
            )
        }
        12 if n.is_multiple_of(2) => {
            let start = *b.rng.pick(&[0, n / 2]);
            b.push(
                Slice {
                    axis: 0,
                    start: d(start),
                    len: d(n / 2),
                },
                vec![x],
            )
        }
        13 if n <= 8 => {
            let y = b.push(
                Unary {
                    kind: UnaryKind::Neg,
                },
                vec![x],
            );
            b.push(Concat { axis: 0 }, vec![x, y])
        }
        14 => b.push(SoftMax { scale: 1.0 }, vec![x]),
        15 => {
            // Attention over the tokens, with m query heads and a divisor of KV heads.
            let divisors: Vec<u64> = (1..=m).filter(|k| m.is_multiple_of(*k)).collect();
            let kv = *b.rng.pick(&divisors);
            let wk = b.weight([n * m, n * kv, 1, 1]);
            let wv = b.weight([n * m, n * kv, 1, 1]);
            let flat = b.push(
                Reshape {
                    dims: [d(n * m), t.clone(), d(1), d(1)],
                },
                vec![x],
            );
            let head = |b: &mut Builder, w: Value| {
                let y = b.push(MulMat, vec![w, flat]);
                let y = b.push(
                    Reshape {
                        dims: [d(n), d(kv), t.clone(), d(1)],
                    },
                    vec![y],
                );
                b.push(Permute { axes: [0, 2, 1, 3] }, vec![y])
            };
            let (k, v) = (head(b, wk), head(b, wv));
            let q = b.push(Permute { axes: [0, 2, 1, 3] }, vec![x]);
            let mask = b.plain([t.clone(), t.clone(), d(1), d(1)]);
            let op = FlashAttn {
                scale: 0.3,
                max_bias: 0.0,
                softcap: 0.0,
                heads: None,
            };
            b.push(op, vec![q, k, v, mask])
        }
        16 => {
            // Experts on rows of m.
            let (experts, used, width) = (4, 2, *b.rng.pick(&[2, 4, 6]));
            let rows = b.push(
                Slice {
                    axis: 1,
                    start: d(0),
                    len: d(1),
                },
                vec![x],
            );
            let ids = b.index([d(used), t.clone(), d(1), d(1)], experts);
            let up = b.weight([n, width, experts, 1]);
            let down = b.weight([width, n, experts, 1]);
            let y = b.push(MulMatId { window: None }, vec![up, rows, ids]);
            let y = b.push(
                Unary {
                    kind: UnaryKind::Silu,
                },
                vec![y],
            );
            let y = b.push(MulMatId { window: None }, vec![down, y, ids]);
            b.push(Sum { axis: 1 }, vec![y])
        }
        _ => {
            let table = b.weight([n, 8, 1, 1]);
            let index = b.index([t, d(1), d(1), d(1)], 8);
            let rows = b.push(GetRows { window: None }, vec![table, index]);
            let rows = b.push(Permute { axes: [0, 2, 1, 3] }, vec![rows]);
            let dims = b.dims(x);
            let rows = b.push(Repeat { dims }, vec![rows]);
            b.push(
                Binary {
                    kind: BinaryKind::Add,
                },
                vec![x, rows],
            )
        }
    }
}

#[test]
fn plans_of_random_graphs_verify_and_execute_equal() {
    let mut split = 0;
    for seed in 0..150 {
        let mut b = Builder::new(seed);
        let out = random_graph(&mut b);
        split += usize::from(plan_and_run(b, out) > 0);
    }
    assert!(split > 75, "only {split} of 150 graphs were split");
}

#[test]
fn random_splits_of_random_graphs_execute_equal() {
    let mut ran = 0;
    for seed in 0..150 {
        let mut b = Builder::new(1_000_000 + seed);
        let out = random_graph(&mut b);
        ran += usize::from(matches!(split_and_run(b, out), Fate::Ran));
    }
    assert!(ran > 40, "only {ran} of 150 splits could be carried out");
}
