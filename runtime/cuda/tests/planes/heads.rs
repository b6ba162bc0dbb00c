//! The fused Q/K norm, RoPE and KV-cache write gives the same bits as separate ops.

use tpc_cuda::kernels::{FusedOp, Head, Heads, Kernel, select_fused};
use tpc_ir::op::{Binary, BinaryKind, Norm, NormKind, Op, Rope, RopeMode, Scale, SetRows};
use tpc_ir::{CellParts, DType};
use tpc_op_cases::Random;

use crate::fused::{bits, empty, floats};
use crate::rig::{Rig, Seen, chosen, request};

const TOKENS: usize = 3;
const CELLS: usize = 7;

fn rope(mode: RopeMode, n_dims: u64) -> Rope {
    Rope::with_defaults(mode, n_dims)
}

struct Apart {
    kernels: Vec<(Kernel, Vec<Seen>)>,
    operands: Vec<Seen>,
    last: Seen,
}

fn apart(
    rig: &mut Rig,
    (head, rope): (&Head, &Rope),
    (x, dims): (Seen, [usize; 4]),
    shared: [Seen; 2],
    (cache, places): (Seen, Seen),
    random: &Random,
) -> Apart {
    let mut kernels = Vec::new();
    let mut operands = vec![x];
    let mut last = x;
    let mut op = |rig: &mut Rig, op: Op, seen: Vec<Seen>| {
        let y = empty(rig, dims);
        kernels.push((chosen(&op, &seen, y), [seen, vec![y]].concat()));
        y
    };
    if let Some(norm) = &head.norm {
        let w = floats(rig, [dims[0], 1, 1, 1], random);
        operands.push(w);
        last = op(rig, norm.clone().into(), vec![last]);
        let kind = BinaryKind::Mul;
        last = op(rig, Binary { kind }.into(), vec![last, w]);
    }
    if head.rope {
        let [positions, factors] = shared;
        last = op(rig, rope.clone().into(), vec![last, positions, factors]);
    }
    if let Some(scale) = &head.scale {
        last = op(rig, scale.clone().into(), vec![last]);
    }
    if let Some(stores) = &head.set_rows {
        operands.push(places);
        let seen = [cache, last, places];
        let kernel = chosen(&stores.clone().into(), &seen, cache);
        kernels.push((kernel, [&seen[..], &[cache]].concat()));
        last = cache;
    }
    Apart {
        kernels,
        operands,
        last,
    }
}

#[test]
fn what_is_before_attention_is_one_kernel() {
    let Some(mut rig) = Rig::new(27) else { return };
    let random = Random::new("heads", 6);
    // Cells 130 and 131 of the whole cache are cells 2 and 3 of this part.
    let part = CellParts {
        first: 2,
        count: 1,
        of: 3,
    };
    for (width, mode, n_dims, cache, cells, to) in [
        (64, RopeMode::Neox, 64, DType::F16, None, [6, 2, 6]),
        (64, RopeMode::Norm, 32, DType::Q8_0, None, [6, 2, 6]),
        (288, RopeMode::Neox, 288, DType::F32, None, [6, 2, 6]),
        (
            64,
            RopeMode::Neox,
            64,
            DType::F16,
            Some(part),
            [130, 66, 130],
        ),
        (
            64,
            RopeMode::Norm,
            64,
            DType::Q8_0,
            Some(part),
            [130, 2, 131],
        ),
    ] {
        let rope = rope(mode, n_dims);
        let norm = Norm {
            kind: NormKind::Rms,
            eps: 1e-6,
        };
        let scale = Scale {
            scale: 0.3,
            bias: 0.0,
        };
        let of = |norm: Option<&Norm>, turned, scale: Option<&Scale>, stored: bool| Head {
            norm: norm.cloned(),
            rope: turned,
            scale: scale.cloned(),
            set_rows: stored.then_some(SetRows { axis: 2, cells }),
        };
        let parts = [
            (4, of(Some(&norm), true, Some(&scale), false)),
            (2, of(Some(&norm), true, None, true)),
            (2, of(None, false, None, true)),
        ];
        let i32s = |values: [i32; 3]| values.into_iter().flat_map(i32::to_ne_bytes).collect();
        let (at, to): (Vec<u8>, Vec<u8>) = (i32s([5, 900, 3]), i32s(to));
        let positions = rig.dense(DType::I32, [TOKENS, 1, 1, 1], Some(&at));
        let places = rig.dense(DType::I32, [TOKENS, 1, 1, 1], Some(&to));
        let factors = floats(&mut rig, [n_dims as usize / 2, 1, 1, 1], &random);
        let mut kernels = Vec::new();
        let (mut operands, mut results, mut wanted) =
            (vec![positions, factors], Vec::new(), Vec::new());
        for (heads, head) in &parts {
            let dims = [width, *heads, TOKENS, 1];
            let x = floats(&mut rig, dims, &random);
            let blocks = width * heads * CELLS / cache.block_len() as usize;
            let zeros = vec![0; blocks * cache.block_bytes() as usize];
            let own = rig.dense(cache, [width, *heads, CELLS, 1], Some(&zeros));
            let own = own.shown([width, *heads, CELLS, 1]);
            let part = apart(
                &mut rig,
                (head, &rope),
                (x, dims),
                [positions, factors],
                (own, places),
                &random,
            );
            kernels.extend(part.kernels);
            operands.extend(part.operands);
            results.push(match head.set_rows {
                Some(_) => rig.copied(own),
                None => empty(&mut rig, dims),
            });
            wanted.push(part.last);
        }
        let heads = Heads {
            rope: Some((rope, true)),
            parts: parts.iter().map(|(_, head)| head.clone()).collect(),
        };
        let fused = request(&operands, &results, |r| {
            select_fused(&FusedOp::Heads(heads.clone()), r)
        });
        kernels.push((fused, [operands, results.clone()].concat()));
        rig.chain(&kernels);
        assert_eq!(bits(&mut rig, results[0]), bits(&mut rig, wanted[0]));
        for (found, wanted) in results.into_iter().zip(wanted).skip(1) {
            let found = rig.bytes(found);
            assert!(found.iter().any(|b| *b != 0));
            assert!(found == rig.bytes(wanted), "{cache} {mode:?}");
        }
    }
}

/// Values need no positions. A cell outside the cache is reported and not written.
#[test]
fn values_alone_go_to_the_cache() {
    let Some(mut rig) = Rig::new(28) else { return };
    let random = Random::new("values", 2);
    let x = floats(&mut rig, [32, 2, TOKENS, 1], &random);
    let to: Vec<u8> = [1, 9, 0].into_iter().flat_map(i32::to_ne_bytes).collect();
    let places = rig.dense(DType::I32, [TOKENS, 1, 1, 1], Some(&to));
    let zeros = vec![0; 32 * 2 * CELLS * 4];
    let cache = rig.dense(DType::F32, [32, 2, CELLS, 1], Some(&zeros));
    let part = Head {
        norm: None,
        rope: false,
        scale: None,
        set_rows: Some(SetRows::along(2)),
    };
    let heads = Heads {
        rope: None,
        parts: vec![part.clone(), part],
    };
    let other = rig.copied(cache);
    let operands = [x, places, x, places];
    let fused = request(&operands, &[cache, other], |r| {
        select_fused(&FusedOp::Heads(heads.clone()), r)
    });
    rig.chain(&[(fused, [&operands[..], &[cache, other]].concat())]);
    let (x, found) = (rig.floats(x), rig.floats(cache));
    assert_eq!(found[64..128], x[..64]);
    assert_eq!(found[..64], x[128..]);
    assert!(found[128..].iter().all(|x| *x == 0.0));
    assert_eq!(found, rig.floats(other));
}

/// Cells of other parts are neither written nor reported; a cell after the end of the own parts is reported.
#[test]
fn cells_of_other_parts_are_skipped() {
    let Some(mut rig) = Rig::new(29) else { return };
    let random = Random::new("parts", 3);
    let x = floats(&mut rig, [32, 2, TOKENS, 1], &random);
    // Of these cells of the whole cache, the last is cell 70 of the part, which has 7 cells.
    let to = [64 + 3, 5, 192 + 64 + 6];
    let to: Vec<u8> = to.into_iter().flat_map(i32::to_ne_bytes).collect();
    let places = rig.dense(DType::I32, [TOKENS, 1, 1, 1], Some(&to));
    let zeros = vec![0; 32 * 2 * CELLS * 4];
    let cache = rig.dense(DType::F32, [32, 2, CELLS, 1], Some(&zeros));
    let cells = CellParts {
        first: 1,
        count: 1,
        of: 3,
    };
    let heads = Heads {
        rope: None,
        parts: vec![Head {
            norm: None,
            rope: false,
            scale: None,
            set_rows: Some(SetRows {
                axis: 2,
                cells: Some(cells),
            }),
        }],
    };
    let operands = [x, places];
    let fused = request(&operands, &[cache], |r| {
        select_fused(&FusedOp::Heads(heads.clone()), r)
    });
    rig.chain(&[(fused, [&operands[..], &[cache]].concat())]);
    let (x, found) = (rig.floats(x), rig.floats(cache));
    assert_eq!(found[3 * 64..4 * 64], x[..64]);
    let others = [&found[..3 * 64], &found[4 * 64..]].concat();
    assert!(others.iter().all(|x| *x == 0.0));
}
