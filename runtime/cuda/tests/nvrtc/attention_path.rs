//! The instructions, code and resident blocks of attention in chunks match the table of the book.
//!
//! Instructions are those of the shortest walk through the code that does the work of a warp: one token, four query
//! heads per KV head, 128 elements per row. Counting needs `nvdisasm`; otherwise it is skipped.

use std::collections::BTreeMap;

use tpc_cuda::kernels::Kernel;
use tpc_cuda::nvrtc::{CompiledModule, Disassembler, shortest_walk, with_prelude};
use tpc_ir::DType;

use crate::attention::attention;
use crate::planes::book;

const TARGETS: [&str; 3] = ["sm_89", "sm_90a", "sm_120f"];
const TYPES: [DType; 2] = [DType::F16, DType::Q8_0];
/// The instructions of the first step: 16 cells of f16.
const MOST_AT_FIRST: f64 = 1500.0;

type Work = Vec<&'static str>;

fn repeat(n: usize, parts: &[&[&'static str]]) -> Work {
    (0..n)
        .flat_map(|_| parts.iter().flat_map(|p| p.iter().copied()))
        .collect()
}

fn one(opcode: &'static str, n: usize) -> Work {
    vec![opcode; n]
}

/// Loads views, prepares rows with their slopes, and copies queries.
fn begin() -> Work {
    vec!["LDG", "STS", "BAR", "LDG", "STS", "BAR", "LDGSTS"]
}

fn masks() -> Work {
    vec!["LDG|LD.E", "VOTE", "BAR"]
}

/// Copies the windows of a thread for a tile.
fn copies(n: usize) -> Work {
    [one("LDGSTS", n), vec!["LDGDEPBAR"]].concat()
}

/// Multiplies four pieces of eight elements by four rows, and adds the sums of four lanes.
fn scores() -> Work {
    [one("FFMA", 4 * 32), one("SHFL", 8), vec!["STS"]].concat()
}

/// Converts `n` scores of a lane to weights.
fn weights(n: usize) -> Work {
    [one("SHFL", 5), one("MUFU.EX2", n), one("SHFL", 5)].concat()
}

/// Adds the values of `n` cells for four rows.
fn values(n: usize) -> Work {
    let cell = [vec!["LDS"], one("FFMA", 32)].concat();
    repeat(n, &[&cell])
}

/// Stores the sums of a thread, and adds the sums of eight threads.
fn sums() -> Work {
    let pair = [one("LDS.128", 2), one("FADD", 8)].concat();
    let stored = [vec!["BAR"], one("STS", 8), vec!["BAR"]].concat();
    [stored, repeat(4, &[&pair])].concat()
}

/// A cache of 16 cells. A thread has two of them, and passes two hidden cells of the tile. The block writes the result and
/// its terms.
fn first_step() -> Work {
    let tiles = repeat(2, &[&copies(2)]);
    let hidden = repeat(2, &[&one("FSETP", 4)]);
    let result = [vec!["STG|ST.E"], one("F2I", 4), vec!["EXIT"]].concat();
    [
        begin(),
        masks(),
        tiles,
        vec!["BAR"],
        scores(),
        vec!["BAR"],
        weights(1),
        vec!["BAR"],
        values(2),
        hidden,
        sums(),
        result,
    ]
    .concat()
}

/// Adds a partial result, and waits for the counter.
fn arrival() -> Work {
    vec!["STG|ST.E", "BAR", "ATOM", "BAR"]
}

fn hidden_chunk() -> Work {
    [masks(), arrival()].concat()
}

/// A chunk of 128 visible cells: four tiles of K, then four of V.
fn full_chunk() -> Work {
    let bar = vec!["BAR"];
    let first = repeat(2, &[&copies(4)]);
    let keys = repeat(4, &[&bar, &copies(4), &scores()]);
    let middle = repeat(2, &[&bar, &copies(4), &values(4)]);
    let end = repeat(2, &[&bar, &values(4)]);
    [
        masks(),
        first,
        keys,
        bar,
        weights(4),
        middle,
        end,
        sums(),
        arrival(),
    ]
    .concat()
}

/// Returns the instructions that a second chunk adds.
fn of_chunk(code: &[String], chunk: &[&'static str]) -> Option<usize> {
    let walk = |n| {
        let work = [begin(), repeat(n, &[chunk]), vec!["EXIT"]].concat();
        shortest_walk(code, &work)
    };
    Some(walk(2)? - walk(1)?)
}

/// Returns the blocks that fit on a multiprocessor with 65,536 registers and this much shared memory.
fn resident(kernel: &Kernel, compiled: &CompiledModule, target: &str) -> u64 {
    let kb = match target {
        "sm_90a" => 228,
        _ => 100,
    };
    let k = &compiled.kernels[0];
    let threads = u64::from(kernel.geometry.threads);
    let of_registers = 65536 / (k.registers.next_multiple_of(8) * threads);
    // The driver takes 1 KB of each block.
    let shared = u64::from(kernel.geometry.shared_bytes) + k.shared + 1024;
    of_registers.min((kb << 10) / shared)
}

fn measure(kernel: &Kernel, compiled: &CompiledModule, code: &[String], target: &str) -> [f64; 5] {
    let walk = |n: Option<usize>, what: &str| {
        n.unwrap_or_else(|| {
            panic!(
                "{target}: {}: no walk does the work of {what}",
                kernel.instance.name()
            )
        }) as f64
    };
    [
        walk(shortest_walk(code, &first_step()), "the first step"),
        walk(of_chunk(code, &full_chunk()), "a chunk"),
        walk(of_chunk(code, &hidden_chunk()), "a hidden chunk"),
        compiled.sizes()[&kernel.instance.entry()] as f64 / 1024.0,
        resident(kernel, compiled, target) as f64,
    ]
}

const ROWS: [&str; 5] = [
    "16 cells",
    "a chunk",
    "a hidden chunk",
    "KB of code",
    "blocks",
];

#[test]
fn steps_take_no_more_instructions_than_the_book_says() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let Some(tool) = Disassembler::find() else {
        tpc_op_cases::skip("without nvdisasm no instructions are counted");
        return;
    };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let (book, mut worse) = (book("a warp of attention"), Vec::new());
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for dtype in TYPES {
        let kernel = attention([dtype; 2], (4, 1, 128));
        let module = kernel.instance.single_kernel_source();
        for (t, target) in TARGETS.iter().enumerate() {
            let compiled = nvrtc
                .compile(module.name, &with_prelude(&module.text), target)
                .unwrap_or_else(|e| panic!("{target}: {e}"));
            let mut kernels = tool.kernels(&compiled.cubin).expect("a disassembly");
            let code = kernels
                .remove(&kernel.instance.entry())
                .expect("the kernel");
            let measured = measure(&kernel, &compiled, &code, target);
            if dtype == DType::F16 && measured[0] > MOST_AT_FIRST {
                worse.push(format!(
                    "{target}: {} instructions for 16 cells exceed {MOST_AT_FIRST}",
                    measured[0]
                ));
            }
            for (row, measured) in ROWS.iter().zip(measured) {
                let name = format!("{row}, {dtype}");
                let written = book.get(&name).and_then(|r| r.get(t)).copied();
                let fits = written.is_some_and(|w| match *row {
                    "blocks" => measured >= w,
                    _ => measured <= w + 0.5,
                });
                if !fits {
                    worse.push(format!(
                        "{target}: {name}: {measured:.1}, in the book {written:?}"
                    ));
                }
                found.entry(name).or_default().push(measured);
            }
        }
    }
    if full {
        for (name, row) in &found {
            let cells: Vec<String> = row.iter().map(|n| format!("{n:.0}")).collect();
            println!("| {name} | {} |", cells.join(" | "));
        }
    }
    assert!(worse.is_empty(), "docs/src/cuda.md:\n{}", worse.join("\n"));
}
