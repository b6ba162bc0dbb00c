//! Cases for recurrences.

use tpc_ir::DType;
use tpc_ir::op::*;
use tpc_runtime::Data;

use super::Case;
use super::data::{float, ints, real, result};
use crate::random::Random;

pub(super) fn ssm_conv(_: &str, random: &Random) -> Case {
    let (taps, n_t) = (random.within(1, 5), random.within(1, 9));
    let (channels, n_s) = (random.within(1, 150), random.within(1, 3));
    let x = real(
        random,
        float(random),
        [taps + n_t - 1, channels, n_s, 1],
        1.0,
    );
    let w = real(random, float(random), [taps, channels, 1, 1], 1.0);
    let out = (result(random), [channels, n_t, n_s, 1]);
    Case::new(SsmConv, vec![x, w], out).within(1e-6, 1.0)
}

pub(super) fn ssm_scan(_: &str, random: &Random) -> Case {
    let d_state = random.pick(&[16, 1, 20, 128]);
    let (head_dim, groups) = (random.within(1, 9), random.within(1, 3));
    let heads = groups * random.within(1, 3);
    let (n_t, n_s) = (random.within(1, 6), random.within(1, 3));
    let with_ids = random.one_in(2);
    let cells = if with_ids { n_s + random.below(3) } else { n_s };
    let state = real(random, DType::F32, [d_state, head_dim, heads, cells], 1.0);
    let x = real(random, float(random), [head_dim, heads, n_t, n_s], 1.0);
    let dt = real(random, float(random), [heads, n_t, n_s, 1], 2.0);
    let rows = random.pick(&[1, d_state]);
    let mut a = real(random, DType::F32, [rows, heads, 1, 1], 1.0);
    if let Data::F64(v) = &mut a.data {
        v.iter_mut().for_each(|x| *x = -x.abs());
    }
    let b = real(random, float(random), [d_state, groups, n_t, n_s], 1.0);
    let c = real(random, float(random), [d_state, groups, n_t, n_s], 1.0);
    let mut operands = vec![state, x, dt, a, b, c];
    if with_ids {
        operands.push(ints(random, [n_s, 1, 1, 1], |r, _| r.below(cells)));
    }
    let y = (result(random), [head_dim, heads, n_t, n_s]);
    let next = (DType::F32, [d_state, head_dim, heads, n_s]);
    let mut case = Case::new(SsmScan, operands, y);
    case.results.push(next);
    if !with_ids {
        case = case.in_place(0, 1);
    }
    case.within(2e-6, (d_state as f64).sqrt() * 3.0)
}

pub(super) fn gated_delta_net(_: &str, random: &Random) -> Case {
    let (dk, dv) = (random.pick(&[16, 5, 64]), random.within(1, 20));
    let key_heads = random.within(1, 3);
    let heads = key_heads * random.within(1, 2);
    let (n_t, n_s) = (random.within(1, 6), random.within(1, 2));
    let scale = 1.0 / (dk as f64).sqrt();
    let q = real(random, float(random), [dk, key_heads, n_t, n_s], scale);
    let k = real(random, float(random), [dk, key_heads, n_t, n_s], scale);
    let v = real(random, float(random), [dv, heads, n_t, n_s], 1.0);
    let gates = random.pick(&[1, dk]);
    let g = real(random, float(random), [gates, heads, n_t, n_s], 1.0);
    let beta = real(random, float(random), [1, heads, n_t, n_s], 1.0);
    let dims = [dk, dv, heads, n_s];
    let state = real(random, DType::F32, dims, 1.0);
    let y = (result(random), [dv, heads, n_t, n_s]);
    let mut case = Case::new(GatedDeltaNet, vec![q, k, v, g, beta, state], y);
    case.results.push((DType::F32, dims));
    case.in_place(5, 1).within(5e-6, 2.0)
}

pub(super) fn wkv(_: &str, random: &Random) -> Case {
    let (dk, dv, heads) = (
        random.pick(&[16, 5, 64]),
        random.within(1, 20),
        random.within(1, 4),
    );
    let (n_t, n_s) = (random.within(1, 6), random.within(1, 2));
    let scale = 1.0 / (dk as f64).sqrt();
    let keys = |scale| real(random, float(random), [dk, heads, n_t, n_s], scale);
    let (r, w, k) = (keys(1.0), keys(0.5), keys(scale));
    let v = real(random, float(random), [dv, heads, n_t, n_s], 1.0);
    let dims = [dk, dv, heads, n_s];
    let state = real(random, DType::F32, dims, 1.0);
    let mut operands = vec![r, w, k, v, state];
    match random.within(0, 2) {
        0 => {}
        1 => operands.push(real(random, float(random), [dk, heads, 1, 1], 1.0)),
        _ => operands.extend([keys(scale), keys(scale)]),
    }
    let y = (result(random), [dv, heads, n_t, n_s]);
    let mut case = Case::new(Wkv, operands, y);
    case.results.push((DType::F32, dims));
    case.in_place(4, 1).within(5e-6, (dk as f64).sqrt() * 3.0)
}

pub(super) fn hc_comb(_: &str, random: &Random) -> Case {
    let (hc, tokens) = (random.within(1, 5), random.within(1, 6));
    let n = (2 + hc) * hc;
    let mixes = real(random, float(random), [n, tokens, 1, 1], 3.0);
    let scale = real(random, DType::F32, [random.within(3, 4), 1, 1, 1], 1.0);
    let base = real(random, float(random), [n, 1, 1, 1], 1.0);
    let op = HcComb {
        eps: 1e-6,
        iterations: random.within(1, 20) as u64,
    };
    let out = (result(random), [hc, hc, tokens, 1]);
    Case::new(op, vec![mixes, scale, base], out).within(3e-6, 0.1)
}
