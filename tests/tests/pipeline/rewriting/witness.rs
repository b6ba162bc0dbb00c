//! Small sharded graphs, one per rewriting rule, that cost more without the rule.

use std::fmt::Write;

use tpc_ir::{Graph, text};

/// Writes a sharded graph with classes of heads, experts and wide rows.
pub(super) struct Writer {
    devices: usize,
    body: String,
    n: usize,
}

const HEADS: usize = 8;
const EXPERTS: usize = 4;

impl Writer {
    fn new(devices: usize) -> Writer {
        Writer {
            devices,
            body: String::new(),
            n: 0,
        }
    }

    fn def(&mut self, value: &str, op: &str) -> String {
        let name = format!("v{}", self.n);
        self.n += 1;
        let _ = writeln!(self.body, "{name}: {value} = {op}");
        name
    }

    fn weight(&mut self, value: &str) -> String {
        let op = format!("weight {{tensor = \"w{}\"}}", self.n);
        self.def(value, &op)
    }

    fn input(&mut self, ty: &str) -> String {
        let op = format!("input {{name = \"x{}\"}}", self.n);
        self.def(&format!("{ty} @host"), &op)
    }

    /// Adds an input that every device holds whole.
    fn whole(&mut self, ty: &str) -> String {
        let x = self.input(ty);
        self.def(&format!("{ty} @tp0"), &format!("copy {x}"))
    }

    /// Adds an unreduced sum of `f32[16, n_tokens]`.
    fn partial(&mut self) -> String {
        let ty = "f32[8, n_tokens]";
        let x = self.input(ty);
        let x = self.def(&format!("{ty} @tp0 split(0: c0)"), &format!("copy {x}"));
        let w = self.weight("f32[8, 16] @tp0 split(0: c0)");
        let op = format!("mul_mat {w}, {x}");
        self.def("f32[16, n_tokens] @tp0 partial", &op)
    }

    /// Adds an immediately reduced sum of `f32[16, n_tokens]`.
    fn sum(&mut self) -> String {
        let partial = self.partial();
        self.def("f32[16, n_tokens] @tp0", &format!("all_reduce {partial}"))
    }

    /// Adds the summed product with the devices' own experts: `f32[16, 2, n_tokens]`.
    fn experts(&mut self, x: &str, ids: &str, rows: usize) -> String {
        let w = self.weight(&format!("f32[{rows}, 16, 4] @tp0 split(2: c1)"));
        let op = format!("mul_mat_id {w}, {x}, {ids}");
        let ty = "f32[16, 2, n_tokens] @tp0";
        let own = self.def(&format!("{ty} owner_masked(c1)"), &op);
        self.def(ty, &format!("all_reduce {own}"))
    }

    /// Ends the graph with whole outputs on the host.
    fn finish(mut self, outputs: &[(&str, String)]) -> Graph {
        let mut outs = String::new();
        for (i, (ty, v)) in outputs.iter().enumerate() {
            let v = self.def(&format!("{ty} @host"), &format!("copy {v}"));
            let _ = writeln!(outs, "output \"y{i}\" = {v}");
        }
        self.close(&outs)
    }

    fn close(self, outputs: &str) -> Graph {
        let ranges = |n: usize| {
            let cut = |d: usize| n * d / self.devices;
            let range = |d: usize| format!("{}:{}", cut(d), cut(d + 1) - cut(d));
            let all: Vec<String> = (0..self.devices).map(range).collect();
            all.join(", ")
        };
        let mut head = "tpir 1\ngraph \"witness\"\n".to_owned();
        for d in 0..self.devices {
            let _ = writeln!(head, "device dev{d} \"d{d}\"");
        }
        let names: Vec<String> = (0..self.devices).map(|d| format!("dev{d}")).collect();
        let _ = writeln!(head, "group tp0 = [{}]", names.join(", "));
        for (i, n) in [HEADS, EXPERTS].into_iter().enumerate() {
            let _ = writeln!(head, "class c{i} \"c{i}\" size {n} ranges [{}]", ranges(n));
        }
        let text = format!("{head}\n{}\n{outputs}", self.body);
        let parsed = text::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
        parsed.graph
    }
}

type Make = fn(usize) -> Graph;

const ROWS: &str = "f32[16, n_tokens]";
const ON_GROUP: &str = "f32[16, n_tokens] @tp0";

/// Builds elementwise functions of a sum.
fn row_wise(devices: usize) -> Graph {
    let mut w = Writer::new(devices);
    let (a, m) = (w.sum(), w.whole(ROWS));
    let y = w.def(ON_GROUP, &format!("silu {a}"));
    let y = w.def(ON_GROUP, &format!("mul {y}, {m}"));
    let y = w.def(ON_GROUP, &format!("tanh {y}"));
    w.finish(&[(ROWS, y)])
}

/// Rules that pay off only on fast links.
pub(super) const OF_FAST_LINKS: &[&str] = &["scattered-sum", "parts-of-rows", "norm-of-parts"];

pub(super) const WITNESSES: &[(&str, Make)] = &[
    ("added-sum", |devices| {
        let mut w = Writer::new(devices);
        let (a, b, m) = (w.sum(), w.sum(), w.whole(ROWS));
        let y = w.def(ON_GROUP, &format!("add {a}, {m}"));
        let y = w.def(ON_GROUP, &format!("sub {y}, {b}"));
        w.finish(&[(ROWS, y)])
    }),
    ("view-of-sum", |devices| {
        let mut w = Writer::new(devices);
        let (a, b) = (w.sum(), w.sum());
        let ty = "f32[4, 4, n_tokens]";
        let on = format!("{ty} @tp0");
        let a = w.def(&on, &format!("reshape {a} {{dims = [4, 4, n_tokens]}}"));
        let b = w.def(&on, &format!("reshape {b} {{dims = [4, 4, n_tokens]}}"));
        let y = w.def(&on, &format!("add {a}, {b}"));
        w.finish(&[(ty, y)])
    }),
    ("concat-of-sums", |devices| {
        let mut w = Writer::new(devices);
        let (a, b) = (w.sum(), w.sum());
        let ty = "f32[32, n_tokens]";
        let op = format!("concat {a}, {b} {{axis = 0}}");
        let y = w.def(&format!("{ty} @tp0"), &op);
        w.finish(&[(ty, y)])
    }),
    ("scaled-sum", |devices| {
        let mut w = Writer::new(devices);
        let (a, b, m) = (w.sum(), w.sum(), w.whole(ROWS));
        let y = w.def(ON_GROUP, &format!("mul {a}, {m}"));
        let y = w.def(ON_GROUP, &format!("add {y}, {b}"));
        w.finish(&[(ROWS, y)])
    }),
    ("zero-rows", |devices| {
        let mut w = Writer::new(devices);
        let (x, ids) = (w.whole("f32[16, 1, n_tokens]"), w.whole("i32[2, n_tokens]"));
        let a = w.experts(&x, &ids, 16);
        let ty = "f32[16, 2, n_tokens]";
        let y = w.def(&format!("{ty} @tp0"), &format!("silu {a}"));
        let y = w.experts(&y, &ids, 16);
        w.finish(&[(ty, y)])
    }),
    ("expert-bias", |devices| {
        let mut w = Writer::new(devices);
        let (x, ids) = (w.whole("f32[16, 1, n_tokens]"), w.whole("i32[2, n_tokens]"));
        let a = w.experts(&x, &ids, 16);
        let bias = w.weight("f32[16, 4] @tp0 split(1: c1)");
        let ty = "f32[16, 2, n_tokens]";
        let op = format!("add_id {a}, {bias}, {ids}");
        let y = w.def(&format!("{ty} @tp0 partial"), &op);
        let y = w.def(&format!("{ty} @tp0"), &format!("all_reduce {y}"));
        w.finish(&[(ty, y)])
    }),
    ("statistics-together", |devices| {
        let mut w = Writer::new(devices);
        let ty = "f32[8, n_tokens]";
        let mut normed = || {
            let x = w.input(ty);
            let split = format!("{ty} @tp0 split(0: c0)");
            let x = w.def(&split, &format!("copy {x}"));
            let stats = "f32[1, n_tokens] @tp0";
            let s = w.def(
                &format!("{stats} partial"),
                &format!("norm_stats {x} {{kind = rms}}"),
            );
            let s = w.def(stats, &format!("all_reduce {s}"));
            let op = format!("norm_apply {x}, {s} {{kind = rms, eps = 1e-5, n = 8}}");
            w.def(&split, &op)
        };
        let (q, k) = (normed(), normed());
        w.finish(&[(ty, q), (ty, k)])
    }),
    ("scattered-sum", row_wise),
    ("parts-of-rows", row_wise),
    ("norm-of-parts", |devices| {
        let mut w = Writer::new(devices);
        let a = w.sum();
        let y = w.def(ON_GROUP, &format!("silu {a}"));
        let y = w.def(ON_GROUP, &format!("rms_norm {y} {{eps = 1e-5}}"));
        let y = w.def(ON_GROUP, &format!("silu {y}"));
        w.finish(&[(ROWS, y)])
    }),
    ("slice-then-copy", |devices| {
        let mut w = Writer::new(devices);
        let table = w.weight("f32[16, 64] @host");
        let there = w.def("f32[16, 64] @tp0", &format!("copy {table}"));
        let ty = "f32[16, 4]";
        let op = format!("slice {there} {{axis = 1, start = 8, len = 4}}");
        let some = w.def(&format!("{ty} @tp0"), &op);
        let y = w.def(&format!("{ty} @tp0"), &format!("silu {some}"));
        w.finish(&[(ty, y)])
    }),
    ("view-then-copy", |devices| {
        let mut w = Writer::new(devices);
        let table = w.weight("f32[16, 64] @host");
        let there = w.def("f32[16, 64] @tp0", &format!("copy {table}"));
        let op = format!("permute {there} {{axes = [1, 0, 2, 3]}}");
        let turned = w.def("f32[64, 16] @tp0", &op);
        let ty = "f32[4, 16]";
        let op = format!("slice {turned} {{axis = 0, start = 8, len = 4}}");
        let some = w.def(&format!("{ty} @tp0"), &op);
        let y = w.def(&format!("{ty} @tp0"), &format!("silu {some}"));
        w.finish(&[(ty, y)])
    }),
    ("copy-then-view", |devices| {
        let mut w = Writer::new(devices);
        let table = w.weight("f32[16, 64] @host");
        let one = w.def("f32[16, 64] @tp0", &format!("copy {table}"));
        let op = format!("reshape {table} {{dims = [64, 16]}}");
        let flat = w.def("f32[64, 16] @host", &op);
        let other = w.def("f32[64, 16] @tp0", &format!("copy {flat}"));
        let one = w.def("f32[16, 64] @tp0", &format!("silu {one}"));
        let other = w.def("f32[64, 16] @tp0", &format!("tanh {other}"));
        w.finish(&[("f32[16, 64]", one), ("f32[64, 16]", other)])
    }),
    ("copy-then-repeat", |devices| {
        let mut w = Writer::new(devices);
        let row = w.weight("f32[64] @host");
        let op = format!("repeat {row} {{dims = [64, 32]}}");
        let rows = w.def("f32[64, 32] @host", &op);
        let there = w.def("f32[64, 32] @tp0", &format!("copy {rows}"));
        let y = w.def("f32[64, 32] @tp0", &format!("silu {there}"));
        w.finish(&[("f32[64, 32]", y)])
    }),
    ("copy-of-copy", |devices| {
        let mut w = Writer::new(devices);
        let a = w.sum();
        let back = w.def("f32[16, n_tokens] @host", &format!("copy {a}"));
        let there = w.def(ON_GROUP, &format!("copy {back}"));
        let y = w.def(ON_GROUP, &format!("silu {there}"));
        w.finish(&[(ROWS, y)])
    }),
];
