//! Steps of random graphs with rare ops. Each keeps its input's shape.

use tpc_ir::op::*;
use tpc_ir::{Dim, Interval, Value};

use super::random::{Builder, d};

/// Discontinuous functions. Another order of sums may give the other side of a jump.
pub(crate) const JUMPS: [UnaryKind; 6] = [
    UnaryKind::Sgn,
    UnaryKind::Step,
    UnaryKind::Floor,
    UnaryKind::Ceil,
    UnaryKind::Round,
    UnaryKind::Trunc,
];

/// Applies a continuous function of numbers between -1 and 1.
pub(crate) fn smooth(b: &mut Builder, x: Value) -> Value {
    let kinds = UnaryKind::ALL.iter().filter(|k| !JUMPS.contains(k));
    let kinds: Vec<UnaryKind> = kinds.copied().collect();
    let kind = *b.rng.pick(&kinds);
    let x = match kind {
        UnaryKind::Sqrt => function(b, UnaryKind::Abs, x),
        UnaryKind::Log => {
            let (scale, bias) = (1.0, 2.0);
            b.push(Scale { scale, bias }, vec![x])
        }
        _ => x,
    };
    function(b, kind, x)
}

fn function(b: &mut Builder, kind: UnaryKind, x: Value) -> Value {
    b.push(Unary { kind }, vec![x])
}

fn with(b: &mut Builder, kind: BinaryKind, x: Value, y: Value) -> Value {
    b.push(Binary { kind }, vec![x, y])
}

/// Applies one of these ops to `x: [n, m, tokens]`.
pub(crate) fn rare(b: &mut Builder, x: Value) -> Value {
    let [n, m, t, _] = b.dims(x);
    let size = |d: &Dim| {
        d.as_const()
            .expect("the generator keeps axes 0 and 1 constant")
    };
    let (rows, heads) = (size(&n), size(&m));
    let small = function(b, UnaryKind::Tanh, x);
    match b.rng.range(0, 16) {
        0 => {
            // The input of a discontinuous function must not depend on the order of sums.
            let fixed = b.plain([n, m, t, d(1)]);
            let scale = Scale {
                scale: 3.0,
                bias: 0.0,
            };
            let fixed = b.push(scale, vec![fixed]);
            let kind = *b.rng.pick(&JUMPS);
            let steps = function(b, kind, fixed);
            with(b, BinaryKind::Mul, x, steps)
        }
        1 => b.push(LeakyRelu { slope: 0.1 }, vec![x]),
        12 => {
            // Rounding is discontinuous.
            let fixed = b.plain([n, m, t, d(1)]);
            let to = *b.rng.pick(&Cast::TYPES);
            let rounded = b.push(Cast { to }, vec![fixed]);
            with(b, BinaryKind::Mul, x, rounded)
        }
        13 => {
            // A selection is discontinuous. On a plain input all devices select the same elements.
            let fixed = b.plain([n, m, t, d(1)]);
            let k = b.rng.range(1, 3);
            let mask = b.push(TopMask { k }, vec![fixed]);
            let bounds = Clamp {
                min: -1.0,
                max: 0.0,
            };
            let mask = b.push(bounds, vec![mask]);
            with(b, BinaryKind::Add, x, mask)
        }
        16 => {
            // On plain inputs all devices keep the same cells.
            let mask = b.plain([n, m.clone(), t.clone(), d(1)]);
            let picks = b.index([d(2), m, t, d(1)], rows);
            let op = TopKMask {
                has_scores: false,
                has_members: false,
                has_extra: false,
            };
            let mask = b.push(op, vec![mask, picks]);
            let bounds = Clamp {
                min: -1.0,
                max: 1.0,
            };
            let mask = b.push(bounds, vec![mask]);
            with(b, BinaryKind::Add, x, mask)
        }
        14 => {
            // A hash is discontinuous.
            let ids = b.plain([d(3), d(1), d(1), d(1)]);
            let table = |i: u64| Interval {
                start: 3 * i,
                len: 3,
            };
            let op = NgramRows {
                factors: vec![3, 5],
                tables: (0..rows * heads).map(table).collect(),
                end: 0,
            };
            let selected = b.push(op, vec![ids]);
            let last = Slice {
                axis: 1,
                start: d(1),
                len: d(1),
            };
            let selected = b.push(last, vec![selected]);
            let dims = [d(rows * heads), d(1), d(1), d(1)];
            let selected = b.push(Reshape { dims }, vec![selected]);
            let table = b.weight([1, 3 * rows * heads, 1, 1]);
            let found = b.push(GetRows { window: None }, vec![table, selected]);
            let dims = [d(rows), d(heads), d(1), d(1)];
            let found = b.push(Reshape { dims }, vec![found]);
            let dims = b.dims(x);
            let found = b.push(Repeat { dims }, vec![found]);
            with(b, BinaryKind::Add, x, found)
        }
        2 => {
            let op = Xielu {
                alpha_n: 0.8,
                alpha_p: 0.7,
                beta: 0.5,
                eps: -0.01,
            };
            b.push(op, vec![small])
        }
        3 => {
            let filled = b.push(Fill { value: 0.5 }, vec![x]);
            with(b, BinaryKind::Add, x, filled)
        }
        4 => {
            let dims = b.dims(x);
            let mean = b.push(Mean { n }, vec![x]);
            b.push(Repeat { dims }, vec![mean])
        }
        5 => b.push(Cumsum, vec![small]),
        6 => {
            let op = Tri {
                keep: *b.rng.pick(&Side::ALL),
                offset: b.rng.range(0, 2),
                fill: *b.rng.pick(&[0.0, 0.25]),
            };
            b.push(op, vec![x])
        }
        7 => {
            let sum = b.push(Sum { axis: 1 }, vec![small]);
            let diagonal = b.push(Diag, vec![sum]);
            b.push(MulMat, vec![diagonal, small])
        }
        8 => {
            let op = Pool2d {
                kind: *b.rng.pick(&PoolKind::ALL),
                window: [3, 1],
                stride: [1, 1],
                pad: [1, 0],
            };
            b.push(op, vec![small])
        }
        9 => {
            let (start, step) = (0.1, 0.1);
            let numbers = b.push(Arange::new(start, step, n), Vec::new());
            with(b, BinaryKind::Add, x, numbers)
        }
        10 => {
            let keys = b.weight([rows, 1, rows * heads, 1]);
            let weights = b.plain([m.clone(), t.clone(), d(1), d(1)]);
            let scores = b.push(LightningIndexer, vec![small, keys, weights]);
            let dims = [n, m, t, d(1)];
            b.push(Reshape { dims }, vec![scores])
        }
        11 => {
            let dims = [d(rows * heads), t, d(1), d(1)];
            let flat = b.push(Reshape { dims }, vec![small]);
            let project = b.weight([rows * heads, 8, 1, 1]);
            let mixes = b.push(MulMat, vec![project, flat]);
            let (scale, base) = (b.weight([3, 1, 1, 1]), b.weight([8, 1, 1, 1]));
            let op = HcComb {
                eps: 0.01,
                iterations: 2,
            };
            let matrix = b.push(op, vec![mixes, scale, base]);
            let sum = b.push(Sum { axis: 0 }, vec![matrix]);
            let sum = b.push(Sum { axis: 1 }, vec![sum]);
            let dims = b.dims(x);
            let sums = b.push(Repeat { dims }, vec![sum]);
            with(b, BinaryKind::Mul, x, sums)
        }
        _ => smooth(b, small),
    }
}
