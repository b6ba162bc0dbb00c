//! Decode attention, with various depths, cache types and numbers of heads. A token must get the same bits alone and in
//! a batch.

use tpc_cuda::kernels::Kernel;
use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_ir::op::FlashAttn;
use tpc_op_cases::{
    Arg, CACHES, Case, Random, Stored, aligned_results, difference, expected, operands,
};
use tpc_runtime::Data;

use super::{Rig, kernel, rig};

/// The elements in a row of K and of V, tokens, heads, KV heads, cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) rows: [usize; 2],
    pub(super) tokens: usize,
    pub(super) heads: [usize; 2],
    pub(super) cells: usize,
}

pub(super) fn real(dtype: DType, dims: [usize; 4], random: &Random, scale: f64) -> Arg {
    let n = dims.iter().product::<usize>();
    let data = (0..n).map(|_| random.real() * scale).collect();
    Arg {
        dtype,
        dims,
        data: Data::F64(data),
    }
}

/// Makes a mask: token `t` sees the cells before `seen(t)`, except single cells and whole ranges.
fn mask(cells: usize, tokens: usize, random: &Random, seen: impl Fn(usize) -> usize) -> Arg {
    let hidden = random.below(cells.div_ceil(150));
    let mut data = Vec::new();
    for t in 0..tokens {
        data.extend((0..cells).map(|c| {
            let sees = c < seen(t) && c / 150 != hidden && !random.one_in(9);
            if sees { 0.0 } else { f64::NEG_INFINITY }
        }));
    }
    Arg {
        dtype: DType::F32,
        dims: [cells, tokens, 1, 1],
        data: Data::F64(data),
    }
}

pub(super) fn case(sizes: Sizes, types: [DType; 2], random: &Random) -> Case {
    let Sizes {
        rows: [dk, dv],
        tokens,
        heads: [heads, kv_heads],
        cells,
    } = sizes;
    let op = FlashAttn {
        scale: 1.0 / (dk as f32).sqrt(),
        max_bias: 0.0,
        softcap: random.pick(&[0.0, 30.0]),
        heads: None,
        lse: false,
    };
    let mut operands = vec![
        real(DType::F32, [dk, tokens, heads, 1], random, 2.0),
        real(types[0], [dk, cells, kv_heads, 1], random, 1.0),
        real(types[1], [dv, cells, kv_heads, 1], random, 1.0),
        mask(cells, tokens, random, |t| cells - (tokens - 1 - t) * 3),
    ];
    if random.one_in(2) {
        operands.push(real(DType::F32, [heads, 1, 1, 1], random, 2.0));
    }
    let result = (DType::F32, [dv, heads, tokens, 1]);
    Case::new(op, operands, result).within(3e-6, 1.0)
}

fn check(case: &Case, rig: &mut Rig, random: &Random) -> (Stored, Option<[u64; 2]>) {
    let stored: Vec<Stored> = operands(case, random)
        .into_iter()
        .map(Stored::packed)
        .collect();
    let wanted = expected(case, &stored);
    let (found, read) = run(case, &stored, rig, random);
    let wrong = difference(case, &found, &wanted[0]);
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    (found, read)
}

pub(super) fn run(
    case: &Case,
    stored: &[Stored],
    rig: &mut Rig,
    random: &Random,
) -> (Stored, Option<[u64; 2]>) {
    let (kernel, size) = kernel(case).expect("a kernel");
    assert!(
        kernel.instance.name().starts_with("flash_decode"),
        "{case:?}"
    );
    let outputs = aligned_results(case, stored, random);
    let left = rig.launch((&kernel, size), (stored.to_vec(), outputs), None);
    let mut left = left.unwrap_or_else(|e| panic!("{e}: {case:?}"));
    (
        left.results.remove(0),
        left.read.map(|read| [read[1], read[2]]),
    )
}

#[test]
fn deep_caches_are_joined() {
    // Up to 16 chunks are joined in one step, more chunks in two.
    let depths = [128, 129, 2048, 2049, 2500];
    for (i, cells) in depths.into_iter().enumerate() {
        let build = match i % 2 {
            0 => Build::Plain,
            _ => Build::Checked,
        };
        let Some(mut rig) = rig(40 + i as u64, build) else {
            return;
        };
        for (tokens, heads) in [(1, [8, 2]), (3, [2, 1])] {
            let random = Random::new("deep", (10 * i + tokens) as u64);
            let sizes = Sizes {
                rows: [32, 64],
                tokens,
                heads,
                cells,
            };
            check(
                &case(sizes, [DType::F16, DType::Q8_0], &random),
                &mut rig,
                &random,
            );
        }
    }
}

#[test]
fn caches_of_all_types_are_shared() {
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let Some(mut rig) = rig(41, Build::Plain) else {
        return;
    };
    for (i, k) in CACHES.into_iter().enumerate() {
        for (j, v) in CACHES.into_iter().enumerate() {
            if !full && (i + 4) % CACHES.len() != j {
                continue;
            }
            let random = Random::new("pairs", (i * CACHES.len() + j) as u64);
            let sizes = Sizes {
                rows: [96, 64],
                tokens: 1 + (i + j) % 3,
                heads: [6, 2],
                cells: 200,
            };
            check(&case(sizes, [k, v], &random), &mut rig, &random);
        }
    }
}

/// Tests wide rows, one head per KV head, and more query heads per KV head than a block computes.
#[test]
fn heads_of_any_number_and_width_are_shared() {
    let Some(mut rig) = rig(42, Build::Checked) else {
        return;
    };
    for (rows, heads) in [([64, 64], [33, 1]), ([576, 512], [5, 1]), ([20, 7], [7, 7])] {
        let random = Random::new("heads", heads[0] as u64);
        let sizes = Sizes {
            rows,
            tokens: 1,
            heads,
            cells: 140,
        };
        check(
            &case(sizes, [DType::F16, DType::F16], &random),
            &mut rig,
            &random,
        );
    }
}

pub(super) fn elements(
    dims: [usize; 4],
    data: &[f64],
    axis: usize,
    (from, len): (usize, usize),
) -> Vec<f64> {
    let inner: usize = dims[..axis].iter().product();
    let parts = data.chunks(inner * dims[axis]);
    parts
        .flat_map(|part| part[from * inner..][..len * inner].to_vec())
        .collect()
}

pub(super) fn cut(arg: &Arg, axis: usize, from: usize, len: usize) -> Arg {
    let Data::F64(data) = &arg.data else {
        panic!("the operand must be real")
    };
    let data = Data::F64(elements(arg.dims, data, axis, (from, len)));
    let mut dims = arg.dims;
    dims[axis] = len;
    Arg {
        dims,
        data,
        ..arg.clone()
    }
}

/// Compares a token alone with the same token among others.
#[test]
fn a_token_has_the_same_bits_alone_and_with_others() {
    let Some(mut rig) = rig(43, Build::Plain) else {
        return;
    };
    let random = Random::new("alone", 1);
    let sizes = Sizes {
        rows: [64, 64],
        tokens: 5,
        heads: [6, 2],
        cells: 2300,
    };
    let together = case(sizes, [DType::Q8_0, DType::F16], &random);
    let (found, _) = check(&together, &mut rig, &random);
    let found = found.tensor();
    for t in 0..5 {
        // Only cells that the token sees exist.
        let cells = 2300 - (4 - t) * 3;
        let of = &together.operands;
        let mut operands = vec![
            cut(&of[0], 1, t, 1),
            cut(&of[1], 1, 0, cells),
            cut(&of[2], 1, 0, cells),
            cut(&cut(&of[3], 1, t, 1), 0, 0, cells),
        ];
        operands.extend(of.get(4).cloned());
        let alone = Case {
            operands,
            results: vec![(DType::F32, [64, 6, 1, 1])],
            ..together.clone()
        };
        let (alone, _) = check(&alone, &mut rig, &random);
        let wanted = elements(found.dims(), &found.reals().expect("reals"), 2, (t, 1));
        let alone = alone.tensor();
        assert_eq!(*alone.reals().expect("reals"), wanted, "token {t}");
    }
}

/// A decode step reads the cache once per group of up to eight query heads that share a KV head.
#[test]
fn a_decode_step_reads_the_cache_once_for_a_group() {
    let Some(mut rig) = rig(44, Build::Checked) else {
        return;
    };
    for (group, times) in [(1, 1), (4, 1), (7, 1), (8, 1), (12, 2)] {
        let random = Random::new("bytes", group as u64);
        let sizes = Sizes {
            rows: [64, 64],
            tokens: 1,
            heads: [2 * group, 2],
            cells: 300,
        };
        let mut case = case(sizes, [DType::F16, DType::Q8_0], &random);
        // All cells are visible, because chunks hidden from every token are not read.
        case.operands[3].data = Data::F64(vec![0.0; 300]);
        let (_, Some([k, v])) = check(&case, &mut rig, &random) else {
            return;
        };
        // Rows of q8_0 begin and end inside a unit of 16 bytes; both adjacent rows read the unit.
        let cells = 2 * 300 * times;
        assert_eq!(k, cells * 128, "K, {group} heads");
        assert!(
            (cells * 68..=cells * 96).contains(&v),
            "V, {group} heads: {v}"
        );
    }
}

#[test]
fn hidden_cells_are_not_read() {
    let Some(mut rig) = rig(45, Build::Checked) else {
        return;
    };
    let random = Random::new("window", 1);
    let sizes = Sizes {
        rows: [64, 64],
        tokens: 1,
        heads: [4, 1],
        cells: 1000,
    };
    let mut case = case(sizes, [DType::F16, DType::F16], &random);
    let window = |c: usize| if c < 900 { f64::NEG_INFINITY } else { 0.0 };
    case.operands[3].data = Data::F64((0..1000).map(window).collect());
    let (_, Some([k, v])) = check(&case, &mut rig, &random) else {
        return;
    };
    // Cells from 896 on are read, because a tile has 32 cells at this row width.
    assert_eq!((k, v), (104 * 128, 104 * 128));
}

#[test]
fn scratch_memory_is_that_of_the_largest_batch() {
    let random = Random::new("scratch", 1);
    let of = |cells| -> Kernel {
        let sizes = Sizes {
            rows: [64, 64],
            tokens: 1,
            heads: [8, 2],
            cells,
        };
        let case = case(sizes, [DType::F16, DType::F16], &random);
        kernel(&case).expect("a kernel").0
    };
    let (one, two) = (of(128), of(256));
    // For each chunk: eight rows of 64 values, a maximum and a sum.
    assert_eq!(one.scratch.parts, 8 * 66 * 4);
    assert_eq!(two.scratch.parts, 2 * one.scratch.parts);
    // For each KV head: a counter of chunks and a counter of joined results.
    assert_eq!((one.scratch.counters, two.scratch.counters), (16, 16));
}
