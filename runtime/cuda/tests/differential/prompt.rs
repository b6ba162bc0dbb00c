//! Prompt attention on matrix products: row widths, numbers of heads, cache types, and numbers beyond f16. A token must
//! get the same bits for any other tokens in the batch.

use tpc_cuda::kernels::Kernel;
use tpc_cuda::{Device, Driver, Module};
use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_op_cases::{CACHES, Case, Random, Stored, aligned_results, difference, expected, operands};
use tpc_runtime::Data;

use super::attention::{self, Sizes, cut, elements};
use super::{Rig, kernel, rig, tolerated};

fn check(case: &Case, rig: &mut Rig, random: &Random) -> (Stored, Option<[u64; 2]>) {
    let (kernel, size) = kernel(case).expect("a kernel");
    let name = kernel.instance.name();
    assert!(name.starts_with("flash_prefill"), "{name}");
    let packed = operands(case, random).into_iter().map(Stored::packed);
    let stored: Vec<Stored> = packed.collect();
    let wanted = expected(case, &stored);
    let outputs = aligned_results(case, &stored, random);
    let left = rig.launch((&kernel, size), (stored, outputs), None);
    let mut left = left.unwrap_or_else(|e| panic!("{e}: {name}"));
    let found = left.results.remove(0);
    let wrong = difference(&tolerated(case, &kernel), &found, &wanted[0]);
    assert!(wrong.is_none(), "{name}: {}", wrong.unwrap_or_default());
    (found, left.read.map(|read| [read[1], read[2]]))
}

fn reals(case: &mut Case, operand: usize) -> &mut Vec<f64> {
    match &mut case.operands[operand].data {
        Data::F64(data) => data,
        _ => panic!("the operand must be real"),
    }
}

/// Makes a case. Token `t` sees the first `cells - 3 * (tokens - 1 - t)` cells, except cells 40 to 79 and a random
/// ninth of the others.
fn case(sizes: Sizes, types: [DType; 2], random: &Random) -> Case {
    let mut case = attention::case(sizes, types, random);
    let Sizes { tokens, cells, .. } = sizes;
    let sees = |t: usize, c: usize| {
        c + 3 * (tokens - 1 - t) < cells && !(40..80).contains(&c) && !random.one_in(9)
    };
    let mask = (0..tokens * cells).map(|i| match sees(i / cells, i % cells) {
        true => random.real(),
        false => f64::NEG_INFINITY,
    });
    *reals(&mut case, 3) = mask.collect();
    case
}

#[test]
fn prompts_read_caches_of_all_types() {
    let Some(mut rig) = rig(51, Build::Plain) else {
        return;
    };
    let held = |t: &DType| !matches!(t, DType::F32 | DType::Bf16);
    let types: Vec<DType> = CACHES.into_iter().filter(held).collect();
    for (i, k) in types.iter().enumerate() {
        let random = Random::new("prompts", i as u64);
        let sizes = Sizes {
            rows: [96, 64],
            tokens: 9 + 7 * i,
            heads: [6, 2],
            cells: 200,
        };
        let v = types[(i + 3) % types.len()];
        check(&case(sizes, [*k, v], &random), &mut rig, &random);
    }
}

/// Tests several row widths, many cells, and one query head per KV head to more heads than a tile has rows.
#[test]
fn prompts_of_any_width_are_computed() {
    let Some(mut rig) = rig(52, Build::Checked) else {
        return;
    };
    let all = [
        ([64, 64], [4, 4], 40, DType::F16),
        ([128, 128], [70, 1], 100, DType::F16),
        ([256, 256], [2, 1], 560, DType::F16),
        ([192, 128], [3, 1], 70, DType::F16),
        ([20, 7], [7, 7], 65, DType::F16),
        ([64, 160], [2, 2], 33, DType::Q8_0),
        ([32, 32], [2, 1], 1060, DType::Q4_1),
    ];
    for (i, (rows, heads, cells, dtype)) in all.into_iter().enumerate() {
        let random = Random::new("widths", i as u64);
        let sizes = Sizes {
            rows,
            tokens: 10,
            heads,
            cells,
        };
        check(&case(sizes, [dtype, dtype], &random), &mut rig, &random);
    }
}

#[test]
fn numbers_beyond_f16_are_kept() {
    let Some(mut rig) = rig(53, Build::Plain) else {
        return;
    };
    for (i, dtype) in CACHES.into_iter().enumerate() {
        if matches!(dtype, DType::F32 | DType::F16 | DType::Bf16) {
            continue;
        }
        let random = Random::new("beyond", i as u64);
        let sizes = Sizes {
            rows: [64, 64],
            tokens: 12,
            heads: [2, 1],
            cells: 90,
        };
        let mut case = case(sizes, [dtype, dtype], &random);
        let tpc_ir::Op::FlashAttn(op) = &mut case.op else {
            panic!("the op is attention")
        };
        op.scale *= 4e-11;
        reals(&mut case, 0).iter_mut().for_each(|x| *x *= 1e5);
        // The scale of a quantised block is itself an f16.
        for cache in [1, 2] {
            let data = reals(&mut case, cache);
            data.iter_mut().for_each(|x| *x = x.abs() * 2e5);
        }
        case.magnitude = 2e5;
        let (found, _) = check(&case, &mut rig, &random);
        let found = found.tensor();
        let found = found.reals().expect("reals");
        assert!(found.iter().all(|x| x.is_finite()), "{dtype}");
        assert!(found.iter().any(|x| *x > 7e4), "{dtype}");
    }
}

#[test]
fn no_number_reaches_who_does_not_see_it() {
    let Some(mut rig) = rig(54, Build::Checked) else {
        return;
    };
    let random = Random::new("odd", 1);
    let sizes = Sizes {
        rows: [64, 64],
        tokens: 12,
        heads: [4, 2],
        cells: 80,
    };
    let mut case = case(sizes, [DType::F16, DType::F16], &random);
    let seen = |c: usize, t: usize| c != 43 || t >= 8;
    *reals(&mut case, 3) = (0..12 * 80)
        .map(|i| {
            if seen(i % 80, i / 80) {
                0.0
            } else {
                f64::NEG_INFINITY
            }
        })
        .collect();
    let values = reals(&mut case, 2);
    values[43 * 64 + 5] = f64::INFINITY;
    values[43 * 64 + 6] = f64::NAN;
    let (found, _) = check(&case, &mut rig, &random);
    let found = found.tensor();
    let found = found.reals().expect("reals");
    for t in 0..12 {
        // Elements 5 and 6 of the first head.
        let own = &found[t * 4 * 64..][..64];
        assert_eq!(own[5].is_infinite() && own[6].is_nan(), t >= 8, "token {t}");
        assert!(own[..5].iter().all(|x| x.is_finite()), "token {t}");
    }
}

/// Compares ten tokens alone with the same tokens among others, with more cells.
#[test]
fn tokens_of_a_prompt_have_the_same_bits_with_others() {
    let Some(mut rig) = rig(55, Build::Plain) else {
        return;
    };
    let random = Random::new("others", 1);
    let sizes = Sizes {
        rows: [64, 64],
        tokens: 40,
        heads: [6, 2],
        cells: 500,
    };
    let together = case(sizes, [DType::Q8_0, DType::F16], &random);
    let (found, _) = check(&together, &mut rig, &random);
    let found = found.tensor();
    let of = &together.operands;
    // Tokens 11 to 20 do not see the later cells.
    let cells = 500 - (39 - 20) * 3;
    let mut operands = vec![
        cut(&of[0], 1, 11, 10),
        cut(&of[1], 1, 0, cells),
        cut(&of[2], 1, 0, cells),
        cut(&cut(&of[3], 1, 11, 10), 0, 0, cells),
    ];
    operands.extend(of.get(4).cloned());
    let alone = Case {
        operands,
        results: vec![(DType::F32, [64, 6, 10, 1])],
        ..together.clone()
    };
    let (alone, _) = check(&alone, &mut rig, &random);
    let wanted = elements(found.dims(), &found.reals().expect("reals"), 2, (11, 10));
    assert_eq!(*alone.tensor().reals().expect("reals"), wanted);
}

#[test]
fn a_tile_of_rows_reads_the_cache_once() {
    let Some(mut rig) = rig(56, Build::Checked) else {
        return;
    };
    for (tokens, times) in [(16, 1), (17, 2), (32, 2)] {
        let random = Random::new("once", tokens as u64);
        let sizes = Sizes {
            rows: [64, 64],
            tokens,
            heads: [8, 2],
            cells: 200,
        };
        let mut case = case(sizes, [DType::F16, DType::F16], &random);
        let hidden = |c: usize| if c < 64 { f64::NEG_INFINITY } else { 0.0 };
        *reals(&mut case, 3) = (0..200 * tokens).map(|i| hidden(i % 200)).collect();
        let (_, Some(read)) = check(&case, &mut rig, &random) else {
            return;
        };
        assert_eq!(read, [2 * 136 * 128 * times; 2], "{tokens} tokens");
    }
}

/// Returns the start and end of every barrier and wait in `attend_tile`.
fn orders(text: &str) -> Vec<(usize, usize)> {
    let begin = text.find("DEVICE void attend_tile").expect("the loop");
    let body = &text[begin..];
    let body = &body[..body
        .find("DEVICE void flash_prefill")
        .expect("the next function")];
    let of = |order: &'static str| {
        let found = body.match_indices(order);
        found.map(move |(at, order)| (begin + at, begin + at + order.len()))
    };
    of("__syncthreads();")
        .chain(of("cp_async_wait<1>();"))
        .collect()
}

/// True if a kernel with this source is correct; `None` on a card, which checks no access, or if it cannot be
/// compiled here.
fn right(text: String, kernel: &Kernel, case: &Case, random: &Random) -> Option<bool> {
    let mut rig = rig(57, Build::Checked).filter(|rig| !rig.driver.is_card())?;
    let stored: Vec<Stored> = operands(case, random)
        .into_iter()
        .map(Stored::packed)
        .collect();
    let wanted = expected(case, &stored);
    let module = rig
        .driver
        .load(Device(0), &Module::new(kernel.instance.module(), text));
    let name = kernel.instance.entry();
    let function = rig
        .driver
        .function(module.expect("the module compiles"), &name);
    let instance = kernel.instance.clone();
    rig.functions.insert(instance, function.expect("a kernel"));
    let outputs = aligned_results(case, &stored, random);
    let left = rig.launch((kernel, None), (stored, outputs), None);
    Some(left.is_ok_and(|mut left| {
        let found = left.results.remove(0);
        difference(&tolerated(case, kernel), &found, &wanted[0]).is_none()
    }))
}

/// Removing any barrier or wait of the loop over tiles must cause a race or a wrong result.
#[test]
fn each_barrier_of_a_tile_is_needed() {
    let random = Random::new("barriers", 1);
    let sizes = Sizes {
        // At this row width, results are reordered in the shared memory of K and V.
        rows: [32, 32],
        tokens: 12,
        heads: [2, 1],
        cells: 1160,
    };
    let mut case = case(sizes, [DType::Q4_0, DType::Q4_0], &random);
    // The first scan of the mask finds only hidden cells.
    let hidden = |c: usize| if c < 1024 { f64::NEG_INFINITY } else { 0.0 };
    *reals(&mut case, 3) = (0..1160 * 12).map(|i| hidden(i % 1160)).collect();
    let (kernel, _) = kernel(&case).expect("a kernel");
    let text = kernel.instance.single_kernel_source().text;
    match right(text.clone(), &kernel, &case, &random) {
        None => return,
        Some(right) => assert!(right, "with all barriers"),
    }
    let orders = orders(&text);
    assert!(orders.len() > 8, "{orders:?}");
    for (from, to) in orders {
        let line = text[..from].lines().count();
        let wrong = [&text[..from], &text[to..]].concat();
        let found = right(wrong, &kernel, &case, &random);
        assert_eq!(found, Some(false), "no fault without line {line}");
    }
}
