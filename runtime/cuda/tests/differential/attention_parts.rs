//! Attention over parts of the cells: the log-sum-exp of each row, and the join of parts.

use tpc_cuda_emulator::Build;
use tpc_ir::op::{MergeAttn, Op};
use tpc_ir::{CellParts, DType};
use tpc_op_cases::{
    Arg, CACHES, Case, Random, Stored, aligned_results, difference, expected, operands,
};
use tpc_runtime::Data;

use super::attention::{self, Sizes, real};
use super::{Rig, kernel, rig, tolerated};

/// Returns the case with the log-sum-exp of each row.
fn with_lse(mut case: Case) -> Case {
    let Op::FlashAttn(op) = &mut case.op else {
        panic!("the op is attention")
    };
    op.lse = true;
    case.results[0].1[0] += 1;
    case
}

/// Runs the kernel of a case, whose name begins with `template`, and returns the result.
fn run(case: &Case, template: &str, rig: &mut Rig, random: &Random) -> Stored {
    let (kernel, size) = kernel(case).expect("a kernel");
    let name = kernel.instance.name();
    assert!(name.starts_with(&format!("{template}<")), "{name}");
    let packed = operands(case, random).into_iter().map(Stored::packed);
    let stored: Vec<Stored> = packed.collect();
    let wanted = expected(case, &stored);
    let outputs = aligned_results(case, &stored, random);
    let left = rig.launch((&kernel, size), (stored, outputs), None);
    let found = left
        .unwrap_or_else(|e| panic!("{e}: {name}"))
        .results
        .remove(0);
    let wrong = difference(&tolerated(case, &kernel), &found, &wanted[0]);
    assert!(wrong.is_none(), "{name}: {}", wrong.unwrap_or_default());
    found
}

fn numbers(stored: &Stored) -> Vec<f64> {
    stored.tensor().reals().expect("reals").into_owned()
}

/// Checks a case with and without the log-sum-exp: the values have the same bits.
fn check(sizes: Sizes, types: [DType; 2], template: &str, rig: &mut Rig, random: &Random) {
    let plain = attention::case(sizes, types, random);
    let rows = numbers(&run(&plain, template, rig, random));
    let found = numbers(&run(&with_lse(plain), template, rig, random));
    let dv = sizes.rows[1];
    for (row, found) in rows.chunks(dv).zip(found.chunks(dv + 1)) {
        assert_eq!(row, &found[..dv], "{sizes:?}");
    }
}

#[test]
fn few_tokens_have_a_log_sum_exp_with_every_cache() {
    let Some(mut rig) = rig(71, Build::Plain) else {
        return;
    };
    for (i, k) in CACHES.into_iter().enumerate() {
        let sizes = Sizes {
            rows: [96, 64],
            tokens: 1 + i % 3,
            heads: [6, 2],
            cells: [200, 100, 2500][i % 3],
        };
        let random = Random::new("lse", i as u64);
        let types = [k, CACHES[(i + 4) % CACHES.len()]];
        check(sizes, types, "flash_decode", &mut rig, &random);
    }
}

/// Tests rows of MLA, rows that are not aligned, and more heads than a block computes.
#[test]
fn rows_of_any_width_have_a_log_sum_exp() {
    let Some(mut rig) = rig(72, Build::Checked) else {
        return;
    };
    for (i, (rows, heads)) in [([576, 512], [16, 1]), ([20, 7], [7, 7]), ([64, 64], [9, 1])]
        .into_iter()
        .enumerate()
    {
        let random = Random::new("lse of rows", i as u64);
        let few = Sizes {
            rows,
            tokens: 1,
            heads,
            cells: 200,
        };
        let types = [DType::F16, DType::F16];
        check(few, types, "flash_decode", &mut rig, &random);
        let many = Sizes {
            tokens: 9,
            heads: [2, 1],
            cells: 70,
            ..few
        };
        let template = match rows[0] {
            576 => "flash_attn",
            _ => "flash_prefill",
        };
        check(many, types, template, &mut rig, &random);
    }
}

#[test]
fn prompts_have_a_log_sum_exp() {
    let Some(mut rig) = rig(73, Build::Checked) else {
        return;
    };
    let all = [
        ([128, 128], [20, 1], DType::F16),
        ([256, 256], [2, 1], DType::F16),
        ([64, 160], [2, 2], DType::Q8_0),
        ([32, 32], [2, 1], DType::Q4_1),
    ];
    for (i, (rows, heads, dtype)) in all.into_iter().enumerate() {
        let sizes = Sizes {
            rows,
            tokens: 10,
            heads,
            cells: 150,
        };
        let random = Random::new("lse of prompts", i as u64);
        check(sizes, [dtype; 2], "flash_prefill", &mut rig, &random);
    }
}

/// The logarithm equals the sink; without a sink, it is −∞.
#[test]
fn rows_without_visible_cells_have_no_weight() {
    let Some(mut rig) = rig(74, Build::Checked) else {
        return;
    };
    let templates = [
        (1, 64, "flash_decode"),
        (9, 64, "flash_prefill"),
        (9, 320, "flash_attn"),
    ];
    for (tokens, width, template) in templates {
        let sizes = Sizes {
            rows: [width, 64],
            tokens,
            heads: [4, 2],
            cells: 130,
        };
        let random = Random::new("hidden", tokens as u64);
        let mut case = with_lse(attention::case(sizes, [DType::F16, DType::Q8_0], &random));
        case.operands[3].data = Data::F64(vec![f64::NEG_INFINITY; 130 * tokens]);
        case.operands.truncate(4);
        let found = numbers(&run(&case, template, &mut rig, &random));
        for row in found.chunks(65) {
            assert!(row[..64].iter().all(|x| *x == 0.0), "{template}");
            assert_eq!(row[64], f64::NEG_INFINITY, "{template}");
        }
        let sinks = real(DType::F32, [4, 1, 1, 1], &random, 2.0);
        case.operands.push(sinks);
        run(&case, template, &mut rig, &random);
    }
}

/// Returns an operand with the cells of a part. `axis` counts cells.
fn of_part(arg: &Arg, axis: usize, part: CellParts) -> Arg {
    let held: Vec<Arg> = (0..arg.dims[axis])
        .filter(|c| part.local(*c as u64).is_some())
        .map(|c| attention::cut(arg, axis, c, 1))
        .collect();
    let mut dims = arg.dims;
    dims[axis] = held.len();
    let inner: usize = dims[..axis].iter().product();
    let outer: usize = dims[axis + 1..].iter().product();
    let mut data = Vec::new();
    for o in 0..outer {
        for cell in &held {
            let Data::F64(cell) = &cell.data else {
                panic!("the operand must be real")
            };
            data.extend(&cell[o * inner..][..inner]);
        }
    }
    Arg {
        dims,
        data: Data::F64(data),
        ..arg.clone()
    }
}

#[test]
fn joined_parts_are_attention_over_all_cells() {
    let Some(mut rig) = rig(75, Build::Checked) else {
        return;
    };
    for (tokens, template) in [(2, "flash_decode"), (10, "flash_prefill")] {
        let [heads, dv] = [4, 72];
        let sizes = Sizes {
            rows: [64, dv],
            tokens,
            heads: [heads, 2],
            // The parts have blocks 0 and 3, 1 and 4, and 2.
            cells: 4 * 64 + 30,
        };
        let random = Random::new("joined", tokens as u64);
        let mut whole = attention::case(sizes, [DType::F16, DType::F16], &random);
        whole.operands.truncate(4);
        let sinks = real(DType::F32, [heads, 1, 1, 1], &random, 2.0);
        let mut parts = Vec::new();
        for first in 0..3 {
            let part = CellParts {
                first,
                count: 1,
                of: 3,
            };
            let mut case = with_lse(whole.clone());
            for (operand, axis) in [(1, 1), (2, 1), (3, 0)] {
                case.operands[operand] = of_part(&case.operands[operand], axis, part);
            }
            parts.extend(numbers(&run(&case, template, &mut rig, &random)));
        }
        // A second part, hidden from all rows.
        let hidden = (0..(dv + 1) * heads * tokens).map(|i| match i % (dv + 1) {
            at if at == dv => f64::NEG_INFINITY,
            _ => 0.0,
        });
        parts.extend(hidden);
        let arg = Arg {
            dtype: DType::F32,
            dims: [dv + 1, heads, tokens, 4],
            data: Data::F64(parts),
        };
        let result = (DType::F32, [dv, heads, tokens, 1]);
        let merge = Case::new(MergeAttn, vec![arg, sinks.clone()], result).within(3e-6, 1.0);
        let found = run(&merge, "merge_attn", &mut rig, &random);
        whole.operands.push(sinks);
        let stored: Vec<Stored> = operands(&whole, &random);
        let wanted = expected(&whole, &stored);
        let of_whole = tolerated(&whole, &kernel(&whole).expect("a kernel").0);
        let wrong = difference(&of_whole, &found, &wanted[0]);
        assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    }
}
