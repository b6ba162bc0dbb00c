//! Captured ops that become several ops of the IR. Compares results with formulas over flat lists, also on several
//! devices with splits around the op.

use crate::support::verified;
use std::collections::BTreeMap;
use tpc_ir::stage::Executable;

use tpc_core::golden::distance;
use tpc_ggml::capture;
use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Bindings, Graph, Symbol, TensorType, Verified, stage};
use tpc_passes::lower::lower;
use tpc_passes::machine::{Link, Topology, Workload};
use tpc_passes::plan::{PlanRequest, PlannedGraph, plan};
use tpc_passes::shard::shard;
use tpc_runtime::{Gelu, Interpreter, MemoryWeights, Options, Tensor};

use super::random::Rng;

/// A capture under construction. Tensors are packed, and f32 except positions.
#[derive(Default)]
struct Capture {
    text: String,
    next: usize,
    last: String,
}

impl Capture {
    fn line(
        &mut self,
        op: &str,
        dtype: &str,
        ne: [u64; 4],
        src: &[usize],
        params: &[i32],
    ) -> usize {
        let id = self.next;
        self.next += 1;
        let (mut nb, flags) = ([4; 4], u8::from(op == "NONE" && dtype == "i32"));
        for i in 1..4 {
            nb[i] = nb[i - 1] * ne[i - 1];
        }
        self.last = format!("t{id}");
        self.text.push_str(&format!(
            "{{\"id\":{id},\"name\":\"t{id}\",\"op\":\"{op}\",\"type\":\"{dtype}\",\"ne\":{ne:?},\"nb\":{nb:?},\
             \"params\":{params:?},\"src\":{src:?},\"view\":-1,\"view_offs\":0,\"flags\":{flags}}}\n"
        ));
        id
    }

    /// Adds a weight, whose values tests bind by name.
    fn leaf(&mut self, ne: [u64; 4]) -> usize {
        self.line("NONE", "f32", ne, &[], &[])
    }

    fn op(&mut self, op: &str, ne: [u64; 4], src: &[usize], params: &[i32]) -> usize {
        self.line(op, "f32", ne, src, params)
    }

    /// Reads the capture. The only allowed note says that the graph has no batch.
    fn graph(&self) -> Verified<stage::Model> {
        let read =
            capture::read(&self.text, "ops").unwrap_or_else(|e| panic!("{e}\n{}", self.text));
        let notes: Vec<_> = read.notes.iter().filter(|n| n.code != "TPC0193").collect();
        assert!(notes.is_empty(), "{notes:?}\n{}", self.text);
        read.graph
    }
}

fn bits(x: f32) -> i32 {
    x.to_bits().cast_signed()
}

fn random(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| f64::from(rng.real() as f32)).collect()
}

/// The number of tokens in captures with positions.
const TOKENS: u64 = 4;

fn number(name: &str) -> u64 {
    let digits = name.trim_start_matches('t').parse();
    digits.expect("captures name tensors t<id>")
}

fn content(id: u64, n: usize) -> Vec<f64> {
    random(id + 17, n)
}

fn run(graph: &Verified<stage::Model>, output: &str) -> Vec<f64> {
    run_with(graph, output, &stored(graph))
}

/// Returns a named output of a graph or programs; integer inputs are 0, 1, 2, ….
fn run_with<S: Executable>(graph: &Verified<S>, output: &str, weights: &MemoryWeights) -> Vec<f64> {
    let options = Options {
        gelu: Gelu::Exact,
        ..Options::default()
    };
    let mut interpreter =
        Interpreter::new(graph, weights, options).unwrap_or_else(|e| panic!("{e}\n{graph}"));
    let bindings = Bindings::default().with(Symbol::NTokens, TOKENS);
    let mut inputs = |kind: &InputKind, ty: &TensorType| {
        let dims = ty.dims.each_ref();
        let dims = dims.map(|d| d.eval(&bindings).expect("small") as usize);
        let n = dims.iter().product::<usize>();
        match kind {
            InputKind::Other(name) if !ty.dtype.is_integer() => {
                Tensor::reals_of(dims, content(number(name), n))
            }
            _ => Tensor::ints_of(dims, (0..n as i64).collect()),
        }
    };
    let out = interpreter
        .run(&bindings, &mut inputs)
        .unwrap_or_else(|e| panic!("{e}\n{graph}"));
    let numbers = |t: &Tensor| {
        let ints = |_| {
            t.ints()
                .expect("integers")
                .iter()
                .map(|&i| i as f64)
                .collect()
        };
        t.reals().map_or_else(ints, |r| r.to_vec())
    };
    let named: BTreeMap<&str, Vec<f64>> =
        out.iter().map(|(n, t)| (n.as_str(), numbers(t))).collect();
    named[output].clone()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 1e-9, "element {i}: {a}, not {b}");
    }
}

fn once(op: &str, leaves: &[[u64; 4]], ne: [u64; 4], params: &[i32]) -> Vec<f64> {
    let mut c = Capture::default();
    let src: Vec<usize> = leaves.iter().map(|&ne| c.leaf(ne)).collect();
    c.op(op, ne, &src, params);
    run(&c.graph(), &c.last)
}

#[test]
fn sums_over_everything_rows_and_repetitions() {
    let x = content(0, 24);
    close(
        &once("SUM", &[[4, 3, 2, 1]], [1, 1, 1, 1], &[]),
        &[x.iter().sum()],
    );
    let means: Vec<f64> = x.chunks(4).map(|r| r.iter().sum::<f64>() / 4.0).collect();
    close(&once("MEAN", &[[4, 3, 2, 1]], [1, 3, 2, 1], &[]), &means);
    let back = once("REPEAT_BACK", &[[4, 3, 2, 1]], [2, 1, 2, 1], &[]);
    let at = |i: usize, k: usize| {
        (0..6)
            .map(|n| x[12 * k + 4 * (n / 2) + 2 * (n % 2) + i])
            .sum()
    };
    close(&back, &[at(0, 0), at(1, 0), at(0, 1), at(1, 1)]);
}

#[test]
fn the_largest_of_each_row() {
    let x = content(0, 12);
    let most = |r: &[f64]| {
        r.iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .expect("four")
            .0
    };
    let expected: Vec<f64> = x.chunks(4).map(|r| most(r) as f64).collect();
    let mut c = Capture::default();
    let leaf = c.leaf([4, 3, 1, 1]);
    c.line("ARGMAX", "i32", [3, 1, 1, 1], &[leaf], &[]);
    close(&run(&c.graph(), &c.last), &expected);
}

#[test]
fn views_are_set_and_added_to() {
    let params = [16, 48, 48, 20, 0];
    let (mut x, y) = (content(0, 12), content(1, 4));
    let leaves = [[4, 3, 1, 1], [2, 2, 1, 1]];
    let added = once("ACC", &leaves, [4, 3, 1, 1], &params);
    let mut expected = x.clone();
    for (i, &v) in y.iter().enumerate() {
        expected[5 + i % 2 + 4 * (i / 2)] += v;
        x[5 + i % 2 + 4 * (i / 2)] = v;
    }
    close(&added, &expected);
    close(&once("SET", &leaves, [4, 3, 1, 1], &params), &x);
    let (sum, one) = (content(0, 12), content(1, 1)[0]);
    let sum: Vec<f64> = sum.iter().map(|v| v + one).collect();
    close(
        &once("ADD1", &[[4, 3, 1, 1], [1, 1, 1, 1]], [4, 3, 1, 1], &[]),
        &sum,
    );
}

#[test]
fn groups_of_channels_are_normalised() {
    let x = content(0, 24);
    let found = once("GROUP_NORM", &[[2, 3, 4, 1]], [2, 3, 4, 1], &[2, bits(0.5)]);
    let normed = x.chunks(12).flat_map(|g| {
        let mean = g.iter().sum::<f64>() / 12.0;
        let variance = g.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 12.0;
        g.iter().map(move |v| (v - mean) / (variance + 0.5).sqrt())
    });
    close(&found, &normed.collect::<Vec<_>>());
}

#[test]
fn outer_products() {
    let (a, b) = (content(0, 6), content(1, 8));
    let found = once("OUT_PROD", &[[3, 2, 1, 1], [4, 2, 1, 1]], [3, 4, 1, 1], &[]);
    let at = |n: usize| (0..2).map(|k| a[3 * k + n % 3] * b[4 * k + n / 3]).sum();
    close(&found, &(0..12).map(at).collect::<Vec<f64>>());
}

#[test]
fn rolls_pads_and_triangles() {
    let x = content(0, 6);
    let rolled = once("ROLL", &[[3, 2, 1, 1]], [3, 2, 1, 1], &[1, -1]);
    close(&rolled, &[x[5], x[3], x[4], x[2], x[0], x[1]]);
    let padded = once("PAD", &[[3, 2, 1, 1]], [5, 3, 1, 1], &[1, 1, 0, 1]);
    let row = |r: &[f64]| [0.0, r[0], r[1], r[2], 0.0];
    close(&padded, &[row(&x[..3]), row(&x[3..]), [0.0; 5]].concat());
    let masked = once("DIAG_MASK_ZERO", &[[3, 2, 1, 1]], [3, 2, 1, 1], &[1]);
    close(&masked, &[x[0], x[1], 0.0, x[3], x[4], x[5]]);
    let lower = once("TRI", &[[3, 2, 1, 1]], [3, 2, 1, 1], &[3]);
    close(&lower, &[0.0, 0.0, 0.0, x[3], 0.0, 0.0]);
    let range = once(
        "ARANGE",
        &[],
        [3, 1, 1, 1],
        &[bits(1.0), bits(2.5), bits(0.5)],
    );
    close(&range, &[1.0, 1.5, 2.0]);
}

#[test]
fn streams_are_joined_and_mixed() {
    let (n, hc, tokens) = (3, 2, 2);
    let (x, w) = (content(0, 12), content(1, 4));
    let found = once(
        "DSV4_HC_PRE",
        &[[n, hc, tokens, 1], [hc, tokens, 1, 1]],
        [n, tokens, 1, 1],
        &[],
    );
    let at = |i: usize| {
        let (i, t) = (i % 3, i / 3);
        (0..2).map(|h| x[6 * t + 3 * h + i] * w[2 * t + h]).sum()
    };
    close(&found, &(0..6).map(at).collect::<Vec<f64>>());
    let leaves = [
        [n, tokens, 1, 1],
        [n, hc, tokens, 1],
        [hc, tokens, 1, 1],
        [hc, hc, tokens, 1],
    ];
    let found = once("DSV4_HC_POST", &leaves, [n, hc, tokens, 1], &[]);
    let (x, r, p, c) = (content(0, 6), content(1, 12), content(2, 4), content(3, 8));
    let at = |i: usize| {
        let (t, to, i) = (i / 6, i / 3 % 2, i % 3);
        let mixed = (0..2).map(|from| r[6 * t + 3 * from + i] * c[4 * t + 2 * from + to]);
        x[3 * t + i] * p[2 * t + to] + mixed.sum::<f64>()
    };
    close(&found, &(0..12).map(at).collect::<Vec<f64>>());
}

#[test]
fn indexers_add_their_mask_once() {
    let leaves = [[2, 2, 3, 1], [2, 1, 4, 1], [2, 3, 1, 1], [4, 3, 1, 1]];
    let found = once("LIGHTNING_INDEXER", &leaves, [4, 3, 1, 1], &[]);
    let (q, k, w, m) = (content(0, 12), content(1, 8), content(2, 6), content(3, 12));
    let at = |i: usize| {
        let (cell, t) = (i % 4, i / 4);
        let head = |h: usize| {
            let dot = (0..2)
                .map(|e| q[4 * t + 2 * h + e] * k[2 * cell + e])
                .sum::<f64>();
            w[2 * t + h] * dot.max(0.0)
        };
        m[i] + head(0) + head(1)
    };
    close(&found, &(0..12).map(at).collect::<Vec<f64>>());
}

fn rotation(n: i32, offset: i32) -> [i32; 16] {
    let mut p = [0; 16];
    (p[1], p[2], p[4], p[15]) = (n, 2, 64, offset);
    (p[5], p[6], p[8], p[9], p[10]) = (bits(100.0), bits(1.0), bits(1.0), bits(32.0), bits(1.0));
    p
}

#[test]
fn rotations_go_back_and_start_anywhere() {
    let mut c = Capture::default();
    let x = c.leaf([6, 2, 4, 1]);
    let positions = c.line("NONE", "i32", [4, 1, 1, 1], &[], &[]);
    let there = c.op("ROPE", [6, 2, 4, 1], &[x, positions], &rotation(4, 2));
    let back = c.op(
        "ROPE_BACK",
        [6, 2, 4, 1],
        &[there, positions],
        &rotation(4, 2),
    );
    c.op("SCALE", [6, 2, 4, 1], &[back], &[bits(1.0)]);
    let x = content(0, 48);
    close(&run(&c.graph(), &c.last), &x);
    let mut c = Capture::default();
    let leaf = c.leaf([6, 2, 4, 1]);
    let positions = c.line("NONE", "i32", [4, 1, 1, 1], &[], &[]);
    c.op("ROPE", [6, 2, 4, 1], &[leaf, positions], &rotation(4, 2));
    let turned = run(&c.graph(), &c.last);
    let at = 3 * 12 + 6;
    let (sin, cos) = 3.0_f64.sin_cos();
    let row = &x[at..at + 6];
    close(&turned[at..at + 2], &row[..2]);
    let first = row[2] * cos - row[4] * sin;
    assert!(
        (turned[at + 2] - first).abs() < 1e-6,
        "{} not {first}",
        turned[at + 2]
    );
}

fn divided(graph: &Verified<stage::Model>, devices: usize) -> (Verified<stage::Programs>, usize) {
    let names = (0..devices).map(|i| format!("cpu:{i}")).collect();
    let mut request = PlanRequest::new(Topology::default(), Workload::new(64, 64, 16, 1), names);
    request.topology.link = Link::new(1e18, 0.0);
    let PlannedGraph {
        graph,
        factors,
        analysis,
        choice,
        ..
    } = plan(graph, &request).unwrap_or_else(|e| panic!("{e}"));
    let sharded = shard(&graph, &factors, &analysis, &choice).expect("the choice is sound");
    let sharded = verified(sharded);
    let programs = lower(&sharded).expect("a verified graph has programs");
    (verified(programs), choice.options.len())
}

#[test]
fn split_around_the_op_is_the_same_as_whole() {
    let limit = bits(0.5);
    // Each op's sizes and parameters; the op is between two products of 24 numbers per token.
    let same = [24, 6, 1, 1];
    let cases: &[(&str, [u64; 4], &[i32])] = &[
        ("SIN", same, &[]),
        ("COS", same, &[]),
        ("SGN", same, &[]),
        ("ELU", same, &[]),
        ("EXPM1", same, &[]),
        ("HARDSWISH", same, &[]),
        ("HARDSIGMOID", same, &[]),
        ("ROUND", same, &[]),
        (
            "XIELU",
            same,
            &[17, bits(0.8), bits(0.8), bits(0.5), bits(-1e-6)],
        ),
        ("LEAKY_RELU", same, &[bits(0.1)]),
        ("FILL", same, &[bits(0.25)]),
        ("DUP", same, &[]),
        ("CUMSUM", same, &[]),
        ("TRI", same, &[2]),
        ("ROLL", same, &[5, 2]),
        ("PAD", [26, 6, 1, 1], &[1, 1]),
        ("MEAN", [1, 6, 1, 1], &[]),
        ("SUM", [1, 1, 1, 1], &[]),
        ("REPEAT_BACK", [8, 6, 1, 1], &[]),
        ("SWIGLU_CLAMP", [12, 6, 1, 1], &[6, 0, 0, limit]),
    ];
    for &(op, ne, params) in cases {
        let mut c = Capture::default();
        let x = c.leaf([16, 6, 1, 1]);
        let up = c.leaf([16, 24, 1, 1]);
        let down = c.leaf([ne[0], 8, 1, 1]);
        let wide = c.op("MUL_MAT", same, &[up, x], &[]);
        let made = c.op(op, ne, &[wide], params);
        c.op("MUL_MAT", [8, ne[1], 1, 1], &[down, made], &[]);
        let graph = c.graph();
        let whole = run(&graph, &c.last);
        let size: f64 = whole.iter().map(|x| x * x).sum();
        assert!(size.is_normal(), "{op}: size {size}");
        for devices in [2, 3] {
            let (programs, classes) = divided(&graph, devices);
            assert!(classes > 0, "{op}: nothing is split");
            let weights = stored(&graph);
            let parts = run_with(&programs, &c.last, &weights);
            let nmse = distance(whole.iter().copied(), parts).nmse;
            assert!(nmse <= 1e-20, "{op} on {devices}: NMSE {nmse:e}");
        }
    }
}

fn stored(graph: &Graph) -> MemoryWeights {
    let mut weights = MemoryWeights::new();
    for (_, data) in graph.insts() {
        if let Op::Weight(w) = &data.op {
            let ty = &graph.value(data.results[0]).ty;
            let ne = ty.dims.each_ref().map(|d| d.as_const().expect("constant"));
            let values = content(number(&w.tensor), ne.iter().product::<u64>() as usize);
            let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            weights.insert_f32(w.tensor.clone(), ne, &values);
        }
    }
    weights
}
