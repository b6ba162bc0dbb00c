//! Decode attention with random shapes, layouts and masks: odd rows, streams, ALiBi, sinks, and more chunks than blocks.

use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_ir::op::FlashAttn;
use tpc_op_cases::{Arg, CACHES, Case, Random, Stored, difference, expected, operands};
use tpc_runtime::Data;

use super::attention::{real, run};
use super::{Rig, kernel, rig};

const CELLS: [usize; 6] = [1, 127, 128, 129, 2049, 5000];

/// The layout of K and V: gaps and any order of axes, one head after another, or one cell after another.
#[derive(Clone, Copy, Debug)]
enum Layout {
    Random,
    Heads,
    Cells,
}

const LAYOUTS: [Layout; 3] = [Layout::Random, Layout::Heads, Layout::Cells];

fn row(dtype: DType, random: &Random) -> usize {
    match dtype.block_len() {
        1 => random.pick(&[7, 8, 20, 64, 80, 128, 200]),
        block => block as usize * random.pick(&[1, 2, 3, 4]),
    }
}

/// Makes a mask with hidden cells at random, hidden ranges of whole chunks, and a bias for ALiBi.
fn mask(dims: [usize; 4], biased: bool, random: &Random) -> Arg {
    let [cells, ..] = dims;
    let window = random.below(cells);
    let chunk = random.below(cells.div_ceil(128));
    let n: usize = dims.iter().product();
    let hidden = |c: usize| (random.one_in(2) && c < window) || c / 128 == chunk;
    let value = |i: usize| match hidden(i % cells) || random.one_in(8) {
        true => f64::NEG_INFINITY,
        false if biased => -(random.below(40) as f64),
        false => 0.0,
    };
    Arg {
        dtype: random.pick(&[DType::F32, DType::F16]),
        dims,
        data: Data::F64((0..n).map(value).collect()),
    }
}

fn case(number: usize, random: &Random) -> Case {
    let cells = CELLS[number % CELLS.len()];
    let deep = cells > 1000;
    let types = [(); 2].map(|()| random.pick(&CACHES));
    let [dk, dv] = types.map(|t| row(t, random));
    let tokens = 1 + random.below(if deep { 2 } else { 8 });
    let kv_heads = 1 + random.below(if deep { 2 } else { 3 });
    let heads = kv_heads * (1 + random.below(if deep { 4 } else { 9 }));
    let streams = if deep { 1 } else { random.pick(&[1, 2]) };
    let max_bias = random.pick(&[0.0, 8.0]);
    let op = FlashAttn {
        scale: 1.0 / (dk as f32).sqrt(),
        max_bias,
        softcap: random.pick(&[0.0, 30.0]),
        heads: None,
        lse: false,
    };
    let mask_dims = [
        cells,
        tokens,
        if random.one_in(4) { heads } else { 1 },
        if random.one_in(2) { streams } else { 1 },
    ];
    let mut operands = vec![
        real(DType::F32, [dk, tokens, heads, streams], random, 2.0),
        real(types[0], [dk, cells, kv_heads, streams], random, 1.0),
        real(types[1], [dv, cells, kv_heads, streams], random, 1.0),
        mask(mask_dims, max_bias > 0.0, random),
    ];
    if random.one_in(2) {
        operands.push(real(DType::F32, [heads, 1, 1, 1], random, 2.0));
    }
    let result = (DType::F32, [dv, heads, tokens, streams]);
    Case::new(op, operands, result).within(3e-6, 1.0)
}

fn stored(case: &Case, layout: Layout, random: &Random) -> Vec<Stored> {
    let all = operands(case, random).into_iter().enumerate();
    let place = |(i, s): (usize, Stored)| match (layout, i) {
        (Layout::Random, _) => s.aligned(),
        (Layout::Cells, 1 | 2) => s.cell_major(),
        _ => s.packed(),
    };
    all.map(place).collect()
}

fn check(case: &Case, stored: &[Stored], rig: &mut Rig, random: &Random) {
    let wanted = expected(case, stored);
    let (found, _) = run(case, stored, rig, random);
    let wrong = difference(case, &found, &wanted[0]);
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
}

fn check_shapes(build: Build, from: usize) {
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let Some(mut rig) = rig(60 + from as u64, build) else {
        return;
    };
    let count = if full { 90 } else { 12 };
    for number in (from..).step_by(2).take(count) {
        let random = Random::new("shapes", number as u64);
        let case = case(number / 2, &random);
        let layout = LAYOUTS[number / 2 % LAYOUTS.len()];
        check(&case, &stored(&case, layout, &random), &mut rig, &random);
    }
}

#[test]
fn shapes_agree_with_the_reference() {
    check_shapes(Build::Plain, 0);
}

#[test]
fn shapes_have_no_races() {
    check_shapes(Build::Checked, 1);
}

fn of_cells(cells: usize, visible: impl Fn(usize) -> bool, random: &Random) -> Case {
    let op = FlashAttn {
        scale: 0.1,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    };
    let seen = |c: usize| if visible(c) { 0.0 } else { f64::NEG_INFINITY };
    let operands = vec![
        real(DType::F32, [64, 1, 4, 1], random, 2.0),
        real(DType::F16, [64, cells, 1, 1], random, 1.0),
        real(DType::Q8_0, [64, cells, 1, 1], random, 1.0),
        Arg {
            dtype: DType::F32,
            dims: [cells, 1, 1, 1],
            data: Data::F64((0..cells).map(seen).collect()),
        },
    ];
    let result = (DType::F32, [64, 4, 1, 1]);
    Case::new(op, operands, result).within(3e-6, 1.0)
}

#[test]
fn a_row_without_visible_cells_is_zero() {
    let Some(mut rig) = rig(63, Build::Checked) else {
        return;
    };
    for cells in [1, 130, 2100] {
        let random = Random::new("hidden", cells as u64);
        let case = of_cells(cells, |_| false, &random);
        check(
            &case,
            &stored(&case, Layout::Cells, &random),
            &mut rig,
            &random,
        );
    }
}

/// Hidden cells after the visible cells add chunks and groups of chunks, which do not change a bit.
#[test]
fn chunks_without_visible_cells_do_not_change_bits() {
    let Some(mut rig) = rig(64, Build::Plain) else {
        return;
    };
    let bits = |cells: usize, rig: &mut Rig| {
        let random = Random::new("bits", 1);
        let mut case = of_cells(40_000, |c| c < 300, &random);
        for (operand, axis) in [(1, 1), (2, 1), (3, 0)] {
            case.operands[operand] = super::attention::cut(&case.operands[operand], axis, 0, cells);
        }
        let (found, _) = run(&case, &stored(&case, Layout::Heads, &random), rig, &random);
        found.bytes().to_vec()
    };
    let first = bits(300, &mut rig);
    for cells in [400, 2048, 2049, 5000] {
        assert!(bits(cells, &mut rig) == first, "{cells} cells");
    }
}

/// The grid has the resident blocks at any context, or one block per chunk if that is fewer.
#[test]
fn the_grid_does_not_grow_with_the_context() {
    let random = Random::new("grid", 1);
    let grid = |cells| {
        let case = of_cells(cells, |_| true, &random);
        kernel(&case).expect("a kernel").0.geometry.grid
    };
    // Two multiprocessors hold three blocks each.
    assert_eq!(grid(100), [1, 1, 1]);
    assert_eq!(grid(600), [5, 1, 1]);
    assert_eq!(grid(800), [6, 1, 1]);
    assert_eq!(grid(30_000), [6, 1, 1]);
}
