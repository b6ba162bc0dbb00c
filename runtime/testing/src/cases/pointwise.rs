//! Cases for element-wise ops and norms.

use tpc_ir::op::*;
use tpc_runtime::{Data, Gelu, Options};

use super::Case;
use super::data::{float, readable, real, result, sizes};
use crate::random::Random;

fn gelu(random: &Random) -> Gelu {
    random.pick(&[Gelu::GgmlTable, Gelu::Exact])
}

/// Sets the tolerance of GELU. ggml's table rounds to f16, so a result may be the adjacent f16.
fn gelu_tolerance(case: Case, form: Gelu, rounds: bool) -> Case {
    let mut case = if form == Gelu::GgmlTable && rounds {
        case.within(1.2e-3, 1e-2)
    } else {
        case.within(2e-6, 0.1)
    };
    case.options = Options {
        gelu: form,
        ..Options::default()
    };
    case
}

pub(super) fn unary(name: &str, random: &Random) -> Case {
    let kind = UnaryKind::ALL.iter().find(|k| k.name() == name);
    let kind = *kind.expect("a function of one number");
    let dims = sizes(random);
    let (dtype, out) = (readable(random, dims[0]), result(random));
    let scale = random.pick(&[0.1, 3.0, 20.0]);
    let mut x = real(random, dtype, dims, scale);
    if matches!(kind, UnaryKind::Log | UnaryKind::Sqrt)
        && let Data::F64(v) = &mut x.data
    {
        v.iter_mut().for_each(|x| *x = x.abs() + 1e-3);
        x.dtype = float(random);
    }
    let form = gelu(random);
    let rounds = matches!(kind, UnaryKind::Gelu | UnaryKind::GeluQuick);
    let case = Case::new(Unary { kind }, vec![x], (out, dims)).in_place(0, 0);
    gelu_tolerance(case, form, rounds)
}

/// Makes a cast. Floats must round like the reference; quantised numbers may differ in the last bit before rounding.
pub(super) fn cast(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 3.0);
    let to = random.pick(&Cast::TYPES);
    let whole = x.dtype.block_len() == 1;
    let case = Case::new(Cast { to }, vec![x], (to, dims)).in_place(0, 0);
    if whole { case } else { case.within(2e-7, 1e-3) }
}

pub(super) fn curve(name: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 4.0);
    let op: Op = match name {
        "leaky_relu" => LeakyRelu { slope: 0.1 }.into(),
        "xielu" => Xielu {
            alpha_n: 0.8,
            alpha_p: 0.7,
            beta: 0.5,
            eps: random.pick(&[-1e-6, -0.5]),
        }
        .into(),
        "fill" => Fill { value: -2.5 }.into(),
        "scale" => Scale {
            scale: 0.7,
            bias: random.pick(&[0.0, 1.5]),
        }
        .into(),
        _ => Clamp {
            min: -1.5,
            max: 0.75,
        }
        .into(),
    };
    Case::new(op, vec![x], (result(random), dims))
        .in_place(0, 0)
        .within(1e-6, 1.0)
}

pub(super) fn binary(name: &str, random: &Random) -> Case {
    let kind = BinaryKind::ALL.iter().find(|k| k.name() == name);
    let kind = *kind.expect("a function of two numbers");
    let a = sizes(random);
    let mut b = a;
    for n in &mut b {
        *n = match random.below(3) {
            0 => 1,
            1 if *n > 1 && n.is_multiple_of(2) => *n / 2,
            _ => *n,
        };
    }
    // Size 0 divides no other size, so `b` has size 1 there.
    for (a, b) in a.iter().zip(&mut b) {
        *b = if *a == 0 { 1 } else { *b };
    }
    let (x, y) = (readable(random, a[0]), readable(random, b[0]));
    let operands = vec![real(random, x, a, 2.0), real(random, y, b, 2.0)];
    let in_place = if a == b { random.below(2) } else { 0 };
    Case::new(Binary { kind }, operands, (result(random), a))
        .in_place(in_place, 0)
        .within(2e-7, 1e-3)
}

pub(super) fn glu(name: &str, random: &Random) -> Case {
    let kind = GluKind::ALL.iter().find(|k| k.name() == name);
    let kind = *kind.expect("a gated activation");
    let dims = sizes(random);
    let op = Glu {
        kind,
        alpha: if kind.takes_alpha() { 1.702 } else { 0.0 },
        limit: if kind.takes_limit() { 2.5 } else { 0.0 },
    };
    let form = gelu(random);
    let dtype = readable(random, dims[0]);
    let operands = if random.one_in(2) {
        let [n, rest @ ..] = dims;
        let both = [2 * n, rest[0], rest[1], rest[2]];
        vec![real(random, dtype, both, 5.0)]
    } else {
        let up = readable(random, dims[0]);
        vec![real(random, dtype, dims, 5.0), real(random, up, dims, 3.0)]
    };
    let whole = operands.len() == 2;
    let mut case = Case::new(op, operands, (result(random), dims));
    if whole {
        case = case.in_place(random.below(2), 0);
    }
    let rounds = matches!(kind, GluKind::Geglu | GluKind::GegluQuick);
    gelu_tolerance(case, form, rounds)
}

pub(super) fn norm(name: &str, random: &Random) -> Case {
    let kind = match name {
        "rms_norm" => NormKind::Rms,
        "l2_norm" => NormKind::L2,
        _ => NormKind::Layer,
    };
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 3.0);
    let eps = random.pick(&[1e-5, 1e-2]);
    Case::new(Norm { kind, eps }, vec![x], (result(random), dims))
        .in_place(0, 0)
        .within(3e-6, 1.0)
}

pub(super) fn norm_stats(_: &str, random: &Random) -> Case {
    let kind = random.pick(&NormKind::ALL);
    let dims = sizes(random);
    let x = real(random, readable(random, dims[0]), dims, 2.0);
    let [_, a, b, c] = dims;
    let out = [kind.stats() as usize, a, b, c];
    Case::new(NormStats { kind }, vec![x], (result(random), out)).within(1e-6, 32.0)
}

pub(super) fn norm_apply(_: &str, random: &Random) -> Case {
    let kind = random.pick(&NormKind::ALL);
    let dims = sizes(random);
    let n = random.within(1, 2000) as u64;
    let x = real(random, readable(random, dims[0]), dims, 3.0);
    let [_, a, b, c] = dims;
    let width = kind.stats() as usize;
    let mut stats = real(random, float(random), [width, a, b, c], 1.0);
    if let Data::F64(v) = &mut stats.data {
        for stat in v.chunks_exact_mut(width) {
            stat[0] *= n as f64 * 0.2;
            stat[width - 1] = n as f64 * (0.5 + stat[width - 1].abs().min(1.0));
        }
    }
    let op = NormApply { kind, eps: 1e-5, n };
    Case::new(op, vec![x, stats], (result(random), dims))
        .in_place(0, 0)
        .within(1e-6, 1.0)
}
