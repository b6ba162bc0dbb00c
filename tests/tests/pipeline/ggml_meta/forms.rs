//! Small captures that the engine refuses; each has an equivalent that the engine accepts.

use std::fmt::Write;

const F32: u64 = 4;

#[derive(Default)]
pub(super) struct Port {
    pub(super) text: String,
    tensors: Vec<Shape>,
}

#[derive(Clone, Copy)]
struct Shape {
    ne: [u64; 4],
    nb: [u64; 4],
    root: usize,
    offset: u64,
}

type T = usize;

fn packed(ne: [u64; 4]) -> [u64; 4] {
    [
        F32,
        F32 * ne[0],
        F32 * ne[0] * ne[1],
        F32 * ne[0] * ne[1] * ne[2],
    ]
}

fn bits(x: f32) -> i64 {
    i64::from(x.to_bits())
}

impl Port {
    /// Appends a record: name, op and element type, memory, sources.
    fn line(&mut self, what: [&str; 3], s: Shape, src: &[T], params: &[i64], flags: u8) -> T {
        let [name, op, dtype] = what;
        let id = self.tensors.len();
        let view = if s.root == id { -1 } else { s.root as i64 };
        let _ = writeln!(
            self.text,
            "{{\"id\":{id},\"name\":\"{name}\",\"op\":\"{op}\",\"type\":\"{dtype}\",\"ne\":{:?},\"nb\":{:?},\
             \"params\":{params:?},\"src\":{src:?},\"view\":{view},\"view_offs\":{},\"flags\":{flags}}}",
            s.ne, s.nb, s.offset
        );
        self.tensors.push(s);
        id
    }

    fn own(&self, ne: [u64; 4]) -> Shape {
        Shape {
            ne,
            nb: packed(ne),
            root: self.tensors.len(),
            offset: 0,
        }
    }

    fn weight(&mut self, name: &str, ne: [u64; 4]) -> T {
        let s = self.own(ne);
        self.line([name, "NONE", "f32"], s, &[], &[], 0)
    }

    fn input(&mut self, name: &str, dtype: &str, ne: [u64; 4]) -> T {
        let s = self.own(ne);
        self.line([name, "NONE", dtype], s, &[], &[], 1)
    }

    fn op(&mut self, op: &str, ne: [u64; 4], src: &[T], params: &[i64]) -> T {
        let s = self.own(ne);
        let name = format!("{}-{}", op.to_lowercase(), self.tensors.len());
        self.line([&name, op, "f32"], s, src, params, 0)
    }

    fn view(
        &mut self,
        op: &str,
        x: T,
        ne: [u64; 4],
        nb: [u64; 4],
        offset: u64,
        params: &[i64],
    ) -> T {
        let of = self.tensors[x];
        let (root, offset) = (of.root, of.offset + offset);
        let s = Shape {
            ne,
            nb,
            root,
            offset,
        };
        let name = format!("{}-{}", op.to_lowercase(), self.tensors.len());
        self.line([&name, op, "f32"], s, &[x], params, 0)
    }

    fn reshape(&mut self, x: T, ne: [u64; 4]) -> T {
        self.view("RESHAPE", x, ne, packed(ne), 0, &[])
    }

    fn permute(&mut self, x: T, axes: [usize; 4]) -> T {
        let of = self.tensors[x];
        let (mut ne, mut nb) = (of.ne, of.nb);
        for (from, &to) in axes.iter().enumerate() {
            ne[to] = of.ne[from];
            nb[to] = of.nb[from];
        }
        self.view("PERMUTE", x, ne, nb, 0, &axes.map(|a| a as i64))
    }

    fn slice(&mut self, x: T, axis: usize, start: u64, len: u64) -> T {
        let Shape { mut ne, nb, .. } = self.tensors[x];
        ne[axis] = len;
        self.view("VIEW", x, ne, nb, start * nb[axis], &[])
    }

    fn cont(&mut self, x: T, ne: [u64; 4]) -> T {
        self.op("CONT", ne, &[x], &[])
    }

    fn product(&mut self, w: T, x: T) -> T {
        let (w_ne, x_ne) = (self.tensors[w].ne, self.tensors[x].ne);
        self.op(
            "MUL_MAT",
            [w_ne[1], x_ne[1], x_ne[2], x_ne[3]],
            &[w, x],
            &[],
        )
    }

    /// Returns activations [16, columns].
    fn input_x(&mut self, columns: [u64; 3]) -> T {
        let [a, b, c] = columns;
        self.input("x", "f32", [16, a, b, c])
    }

    /// Returns queries [8 · 4, columns], split by heads.
    fn queries(&mut self, columns: [u64; 3]) -> T {
        let x = self.input_x(columns);
        let w = self.weight("blk.0.attn_q.weight", [16, 32, 1, 1]);
        self.product(w, x)
    }

    /// Ends a layer: projects rows of all heads to [16, columns].
    fn project(&mut self, x: T) {
        let columns = self.tensors[x].ne;
        let w = self.weight("blk.0.attn_output.weight", [columns[0], 16, 1, 1]);
        self.product(w, x);
    }

    fn rotation(&mut self) -> T {
        self.weight("rotation", [8, 8, 1, 1])
    }
}

pub(super) struct Form {
    pub(super) name: &'static str,
    build: fn(&mut Port),
}

impl Form {
    pub(super) fn text(&self) -> String {
        let mut p = Port::default();
        (self.build)(&mut p);
        p.text
    }
}

pub(super) const FORMS: &[Form] = &[
    Form {
        name: "flattened rotation",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let q = p.reshape(q, [8, 4, 3, 1]);
            let q = p.op("RMS_NORM", [8, 4, 3, 1], &[q], &[bits(1e-5)]);
            let flat = p.reshape(q, [8, 12, 1, 1]);
            let h = p.rotation();
            let turned = p.product(h, flat);
            let heads = p.reshape(turned, [32, 3, 1, 1]);
            p.project(heads);
        },
    },
    Form {
        name: "rotation of rows that were never heads",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let flat = p.reshape(q, [8, 12, 1, 1]);
            let h = p.rotation();
            let turned = p.product(h, flat);
            let heads = p.reshape(turned, [32, 3, 1, 1]);
            p.project(heads);
        },
    },
    Form {
        name: "norm of flattened heads",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let flat = p.reshape(q, [8, 12, 1, 1]);
            let normed = p.op("RMS_NORM", [8, 12, 1, 1], &[flat], &[bits(1e-5)]);
            let w = p.weight("blk.0.attn_q_norm.weight", [8, 1, 1, 1]);
            let scaled = p.op("MUL", [8, 12, 1, 1], &[normed, w], &[]);
            let heads = p.reshape(scaled, [32, 3, 1, 1]);
            p.project(heads);
        },
    },
    Form {
        name: "activation of flattened heads",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let flat = p.reshape(q, [8, 12, 1, 1]);
            let squared = p.op("SQR", [8, 12, 1, 1], &[flat], &[]);
            let heads = p.reshape(squared, [32, 3, 1, 1]);
            p.project(heads);
        },
    },
    Form {
        name: "rotation between two permutations",
        build: |p| {
            let q = p.queries([3, 2, 2]);
            let flat = p.reshape(q, [8, 12, 2, 2]);
            let turned = p.permute(flat, [0, 2, 1, 3]);
            let turned = p.cont(turned, [8, 2, 12, 2]);
            let h = p.rotation();
            let y = p.product(h, turned);
            let back = p.permute(y, [0, 2, 1, 3]);
            let heads = p.cont(back, [32, 3, 2, 2]);
            p.project(heads);
        },
    },
    Form {
        name: "rotation of permuted heads, split late",
        build: |p| {
            let q = p.queries([6, 1, 1]);
            let flat = p.reshape(q, [8, 12, 2, 1]);
            let turned = p.permute(flat, [0, 2, 1, 3]);
            let h = p.rotation();
            let y = p.product(h, turned);
            let heads = p.reshape(y, [8, 2, 4, 3]);
            let pairs = p.reshape(heads, [16, 4, 3, 1]);
            let y = p.op("SILU", [16, 4, 3, 1], &[pairs], &[10]);
            let rows = p.reshape(y, [64, 3, 1, 1]);
            p.project(rows);
        },
    },
    Form {
        name: "gate of concatenated values",
        build: |p| {
            let x = p.input_x([3, 1, 1]);
            let gate = p.weight("blk.0.ffn_gate.weight", [16, 32, 1, 1]);
            let up = p.weight("blk.0.ffn_up.weight", [16, 32, 1, 1]);
            let (gate, up) = (p.product(gate, x), p.product(up, x));
            let both = p.op("CONCAT", [64, 3, 1, 1], &[gate, up], &[0]);
            let y = p.op("SWIGLU", [32, 3, 1, 1], &[both], &[2]);
            let down = p.weight("blk.0.ffn_down.weight", [32, 16, 1, 1]);
            p.product(down, y);
        },
    },
    Form {
        name: "halves of concatenated values",
        build: |p| {
            let x = p.input_x([3, 1, 1]);
            let gate = p.weight("blk.0.ffn_gate.weight", [16, 32, 1, 1]);
            let up = p.weight("blk.0.ffn_up.weight", [16, 32, 1, 1]);
            let (gate, up) = (p.product(gate, x), p.product(up, x));
            let both = p.op("CONCAT", [64, 3, 1, 1], &[gate, up], &[0]);
            let first = p.slice(both, 0, 0, 32);
            let second = p.slice(both, 0, 32, 32);
            let y = p.op("MUL", [32, 3, 1, 1], &[first, second], &[]);
            let down = p.weight("blk.0.ffn_down.weight", [32, 16, 1, 1]);
            p.product(down, y);
        },
    },
    Form {
        name: "heads rotated in two halves",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let q = p.reshape(q, [8, 4, 3, 1]);
            let positions = p.input("positions", "i32", [3, 1, 1, 1]);
            let (a, b) = (p.slice(q, 1, 0, 2), p.slice(q, 1, 2, 2));
            let rope = [
                0,
                8,
                0,
                0,
                4096,
                bits(10000.0),
                bits(1.0),
                0,
                bits(1.0),
                bits(32.0),
                bits(1.0),
            ];
            let a = p.op("ROPE", [8, 2, 3, 1], &[a, positions], &rope);
            let b = p.op("ROPE", [8, 2, 3, 1], &[b, positions], &rope);
            let all = p.op("CONCAT", [8, 4, 3, 1], &[a, b], &[1]);
            let heads = p.reshape(all, [32, 3, 1, 1]);
            p.project(heads);
        },
    },
    Form {
        name: "weight of a norm repeated",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let q = p.reshape(q, [8, 4, 3, 1]);
            let normed = p.op("RMS_NORM", [8, 4, 3, 1], &[q], &[bits(1e-5)]);
            let w = p.weight("blk.0.attn_q_norm.weight", [8, 1, 1, 1]);
            let w = p.op("REPEAT", [8, 4, 3, 1], &[w], &[]);
            let scaled = p.op("MUL", [8, 4, 3, 1], &[normed, w], &[]);
            let heads = p.reshape(scaled, [32, 3, 1, 1]);
            p.project(heads);
        },
    },
    Form {
        name: "mask inside of a softmax per head",
        build: |p| {
            let x = p.input_x([3, 1, 1]);
            let mut heads = |name: &str| {
                let w = p.weight(name, [16, 32, 1, 1]);
                let y = p.product(w, x);
                let y = p.reshape(y, [8, 4, 3, 1]);
                p.permute(y, [0, 2, 1, 3])
            };
            let q = heads("blk.0.attn_q.weight");
            let k = heads("blk.0.attn_k.weight");
            let v = heads("blk.0.attn_v.weight");
            let mask = p.input("mask", "f32", [3, 3, 1, 1]);
            let scores = p.product(k, q);
            let scores = p.op("SOFT_MAX", [3, 3, 4, 1], &[scores, mask], &[bits(0.5)]);
            let v = p.permute(v, [1, 0, 2, 3]);
            let v = p.cont(v, [3, 8, 4, 1]);
            let y = p.product(v, scores);
            let y = p.permute(y, [0, 2, 1, 3]);
            let rows = p.cont(y, [32, 3, 1, 1]);
            p.project(rows);
        },
    },
    Form {
        name: "view of flattened heads",
        build: |p| {
            let q = p.queries([3, 1, 1]);
            let flat = p.reshape(q, [8, 12, 1, 1]);
            let first = p.view("VIEW", flat, [4, 4, 3, 1], [F32, 32, 128, 384], 0, &[]);
            let rows = p.cont(first, [16, 3, 1, 1]);
            p.project(rows);
        },
    },
];
