//! Cases for RoPE, softmax, attention and the lightning indexer.

use tpc_ir::op::*;
use tpc_ir::{DType, Interval};
use tpc_runtime::Data;

use super::data::{CACHES, float, readable, real, result, sizes};
use super::{Arg, Case};
use crate::random::Random;

pub(super) fn rope(_: &str, random: &Random) -> Case {
    let n_dims = 2 * random.within(1, 70);
    let d = n_dims + random.pick(&[0, 0, 3, 16]);
    let tokens = random.within(1, 4);
    let dims = [d, random.within(1, 3), tokens, random.within(1, 2)];
    let sections = random.pick(&[[3, 3, 2, 0], [16, 24, 24, 0], [1, 1, 1, 1], [0, 0, 0, 5]]);
    let modes = [
        RopeMode::Norm,
        RopeMode::Neox,
        RopeMode::Mrope { sections },
        RopeMode::Imrope { sections },
    ];
    let mode = random.pick(&modes);
    let op = Rope {
        mode,
        n_dims: n_dims as u64,
        n_ctx_orig: 4096,
        freq_base: random.pick(&[10000.0, 500_000.0]),
        freq_scale: random.pick(&[1.0, 0.25]),
        ext_factor: random.pick(&[0.0, 1.0]),
        attn_factor: random.pick(&[1.0, 1.2]),
        beta_fast: 32.0,
        beta_slow: 1.0,
    };
    let x = real(random, float(random), dims, 1.0);
    let far = random.pick(&[10, 4000, 1_000_000]);
    let positions = mode.positions() as usize * tokens;
    let positions = super::data::ints(random, [positions, 1, 1, 1], |r, _| r.below(far));
    let mut operands = vec![x, positions];
    if random.one_in(2) {
        let mut factors = real(random, DType::F32, [n_dims / 2, 1, 1, 1], 1.0);
        if let Data::F64(v) = &mut factors.data {
            v.iter_mut().for_each(|x| *x += 1.5);
        }
        operands.push(factors);
    }
    Case::new(op, operands, (result(random), dims))
        .in_place(0, 0)
        .within(5e-7, 1.5)
}

pub(super) fn soft_max(_: &str, random: &Random) -> Case {
    let dims = sizes(random);
    let x = real(random, float(random), dims, 8.0);
    let mut operands = vec![x];
    if random.one_in(2) {
        let batches = [
            random.pick(&[1, dims[2].max(1)]),
            random.pick(&[1, dims[3].max(1)]),
        ];
        let dims = [dims[0], dims[1], batches[0], batches[1]];
        operands.push(mask(random, dims));
    }
    let mut op = SoftMax::with_scale(random.pick(&[1.0, 0.125]));
    if operands.len() > 1 && random.one_in(2) {
        op.max_bias = random.pick(&[0.0, 8.0]);
        op.heads = random.one_in(3).then(|| window(random, dims[2]));
        if random.one_in(2) {
            operands.push(real(random, float(random), [dims[2], 1, 1, 1], 8.0));
        }
    }
    Case::new(op, operands, (result(random), dims))
        .in_place(0, 0)
        .within(5e-6, 1e-2)
}

fn window(random: &Random, heads: usize) -> HeadWindow {
    let total = heads + random.below(4);
    let start = random.within(0, total - heads);
    HeadWindow {
        heads: vec![Interval {
            start: start as u64,
            len: heads as u64,
        }],
        total: total as u64,
    }
}

/// Makes a mask of zeros, −∞ and a few other numbers. Some rows contain only −∞.
fn mask(random: &Random, dims: [usize; 4]) -> Arg {
    let mut mask = real(random, random.pick(&[DType::F32, DType::F16]), dims, 2.0);
    let hidden = random.pick(&[2, 4, 1000]);
    if let Data::F64(v) = &mut mask.data
        && dims[0] > 0
    {
        for row in v.chunks_exact_mut(dims[0]) {
            let all = random.one_in(8);
            for x in row {
                *x = match random.below(hidden) {
                    _ if all => f64::NEG_INFINITY,
                    0 => f64::NEG_INFINITY,
                    1 => *x,
                    _ => 0.0,
                };
            }
        }
    }
    mask
}

/// Fills cells that no token sees with NaN, unless the cache is quantised.
fn spoil(cache: &mut Arg, mask: &Arg) {
    let ([n, cells, ..], Data::F64(mask_data)) = (mask.dims, &mask.data) else {
        return;
    };
    assert!(cells > 0);
    let unseen = |c: usize| {
        mask_data[c..]
            .iter()
            .step_by(n)
            .all(|x| *x == f64::NEG_INFINITY)
    };
    let (Data::F64(v), d) = (&mut cache.data, cache.dims[0]) else {
        return;
    };
    if cache.dtype.is_quantised() || d == 0 {
        return;
    }
    for (i, cell) in v.chunks_exact_mut(d).enumerate() {
        if unseen(i % n) {
            cell.fill(f64::NAN);
        }
    }
}

pub(super) fn flash_attn(_: &str, random: &Random) -> Case {
    let (dk, dv) = (
        random.pick(&[64, 32, 96, 20, 1]),
        random.pick(&[64, 32, 128, 36, 7]),
    );
    let (kv_heads, group) = (random.within(1, 3), random.pick(&[1, 2, 3, 4, 7, 33]));
    let heads = kv_heads * group;
    let tokens = random.pick(&[1, 1, 2, 5, 40]);
    let cells = random.pick(&[1, 5, 64, 65, 130, 200]);
    let streams = random.within(1, 2);
    let cache = |random: &Random, d: usize| {
        let dtype = random.pick(&CACHES);
        if d.is_multiple_of(dtype.block_len() as usize) {
            dtype
        } else {
            float(random)
        }
    };
    let q = real(random, float(random), [dk, tokens, heads, streams], 2.0);
    let types = [cache(random, dk), cache(random, dv)];
    let mut k = real(random, types[0], [dk, cells, kv_heads, streams], 1.0);
    let mut v = real(random, types[1], [dv, cells, kv_heads, streams], 1.0);
    let batches = [random.pick(&[1, 1, heads]), random.pick(&[1, streams])];
    let mask = mask(random, [cells, tokens, batches[0], batches[1]]);
    spoil(&mut k, &mask);
    spoil(&mut v, &mask);
    let op = FlashAttn {
        scale: 1.0 / (dk as f32).sqrt(),
        max_bias: random.pick(&[0.0, 0.0, 8.0]),
        softcap: random.pick(&[0.0, 0.0, 5.0]),
        heads: random.one_in(3).then(|| window(random, heads)),
        lse: random.one_in(3),
    };
    let mut operands = vec![q, k, v, mask];
    if random.one_in(3) {
        let scale = random.pick(&[2.0, 200.0]);
        operands.push(real(random, float(random), [heads, 1, 1, 1], scale));
    }
    let row = dv + usize::from(op.lse);
    let out = (result(random), [row, heads, tokens, streams]);
    Case::new(op, operands, out).within(3e-6, 1.0)
}

/// Joins rows of parts. Some parts are hidden, and some rows are hidden in all parts.
pub(super) fn merge_attn(_: &str, random: &Random) -> Case {
    let dv = random.pick(&[64, 128, 512, 600, 36, 7, 1]);
    let (heads, tokens) = (random.within(1, 5), random.pick(&[1, 1, 2, 5, 40]));
    let parts = random.pick(&[1, 2, 3, 4, 8, 17]);
    let scale = random.pick(&[1.0, 8.0]);
    let mut x = real(random, float(random), [dv + 1, heads, tokens, parts], 1.0);
    if let Data::F64(v) = &mut x.data {
        let rows = heads * tokens;
        let hidden: Vec<bool> = (0..rows).map(|_| random.one_in(6)).collect();
        for (i, row) in v.chunks_exact_mut(dv + 1).enumerate() {
            row[dv] = match hidden[i % rows] || random.one_in(4) {
                true => f64::NEG_INFINITY,
                false => row[dv] * scale,
            };
        }
    }
    let mut operands = vec![x];
    if random.one_in(3) {
        let scale = random.pick(&[2.0, 200.0]);
        operands.push(real(random, float(random), [heads, 1, 1, 1], scale));
    }
    let out = (result(random), [dv, heads, tokens, 1]);
    Case::new(MergeAttn, operands, out).within(3e-6, 1.0)
}

pub(super) fn lightning_indexer(_: &str, random: &Random) -> Case {
    let d = random.pick(&[128, 32, 20]);
    let (heads, tokens, streams) = (
        random.within(1, 9),
        random.within(1, 4),
        random.within(1, 2),
    );
    let cells = random.pick(&[1, 7, 64, 150]);
    let q = real(
        random,
        readable(random, d),
        [d, heads, tokens, streams],
        1.0,
    );
    let k = real(random, readable(random, d), [d, 1, cells, streams], 1.0);
    let w = real(random, float(random), [heads, tokens, 1, streams], 1.0);
    let out = (result(random), [cells, tokens, 1, streams]);
    Case::new(LightningIndexer, vec![q, k, w], out).within(3e-6, (d * heads) as f64 / 8.0)
}
