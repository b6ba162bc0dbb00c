//! Products with weights in planes compile for every target without spills. Instructions per weight and bytes in flight
//! match the tables of the book.
//!
//! Instructions are counted in the loop over K of a one-token product with four rows per warp. Counting needs
//! `nvdisasm`, from the CUDA toolkit or a wheel; otherwise it is skipped.

use std::collections::{BTreeMap, BTreeSet};

use tpc_cuda::kernels::{Instance, Request, Tensor, modules, select, select_terms};
use tpc_cuda::nvrtc::{
    CompiledModule, Disassembler, Nvrtc, TARGETS, instructions_per_mma, instructions_per_weight,
    with_prelude,
};
use tpc_cuda::planes::Planes;
use tpc_ir::DType;
use tpc_ir::op::{GetRows, MulMat, MulMatId, Op};
use tpc_runtime::Options;

fn types() -> impl Iterator<Item = DType> {
    let all = DType::ALL.iter().copied();
    all.filter(|t| Planes::supports(*t))
}

fn request<T>(operands: &[Tensor], of: impl Fn(&Request<'_>) -> T) -> T {
    of(&Request {
        operands,
        results: &[Tensor::new(DType::F32, [4096; 4])],
        options: Options::default(),
        multiprocessors: 132,
    })
}

fn of_one_token(dtype: DType) -> Instance {
    instances(dtype).swap_remove(0)
}

fn instances(dtype: DType) -> Vec<Instance> {
    let window = None;
    let weight = Tensor {
        format: Planes::FORMAT,
        ..Tensor::new(dtype, [4096, 4096, 1, 1])
    };
    let x = |n| Tensor::new(DType::F32, [4096, n, 1, 1]);
    let ids = |tokens| Tensor::new(DType::I32, [2, tokens, 1, 1]);
    let of = |op: Op, operands: &[Tensor]| {
        let kernel = request(operands, |r| select(&op, r));
        kernel.unwrap_or_else(|e| panic!("{e}")).instance
    };
    vec![
        of(MulMat.into(), &[weight, x(1)]),
        of(MulMat.into(), &[weight, x(8)]),
        of(MulMatId { window }.into(), &[weight, x(2), ids(2)]),
        of(GetRows { window }.into(), &[weight, ids(2)]),
        // Tiles of 64 and of 128 rows.
        of(MulMat.into(), &[weight, x(64)]),
        of(MulMat.into(), &[weight, x(512)]),
        of(MulMatId { window }.into(), &[weight, x(2), ids(64)]),
        of(MulMatId { window }.into(), &[weight, x(2), ids(2048)]),
    ]
}

#[test]
fn products_with_planes_compile_for_cards() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let mut failed = Vec::new();
    for (t, target) in TARGETS.iter().enumerate() {
        let mine = types()
            .enumerate()
            .filter(|(i, _)| full || i % TARGETS.len() == t);
        // The test of instruction counts compiles the kernels of one token.
        let others = mine.flat_map(|(_, d)| instances(d).split_off(1));
        let mut kernels: BTreeSet<Instance> = others.collect();
        let x = [Tensor::new(DType::F32, [4096, 1, 1, 1])];
        let terms = request(&x, select_terms).expect("reals");
        kernels.insert(terms.instance);
        for module in modules(&kernels) {
            match nvrtc.compile(module.name, &with_prelude(&module.text), target) {
                Ok(compiled) => assert_eq!(compiled.kernels.len(), kernels.len(), "{target}"),
                Err(e) => failed.push(format!("{target}: {e}")),
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Returns the maximum threads and blocks per multiprocessor of a target. If its cards differ, returns the smallest.
fn held(target: &str) -> (u64, u64) {
    match target {
        "sm_75" => (1024, 16),
        "sm_80" => (1536, 16),
        "sm_89" | "sm_120f" => (1536, 24),
        _ => (2048, 32),
    }
}

/// Returns the maximum KB of weights in flight per multiprocessor. Each thread loads a pair of each row before it multiplies,
/// 16 bytes at a time; registers limit the resident blocks.
fn in_flight(dtype: DType, target: &str, registers: u64) -> f64 {
    /// The columns of a pair, rows per lane, and threads per block.
    const OF: (usize, u64, u64) = (64, 4, 128);
    let (threads, blocks) = held(target);
    let of_block = registers.next_multiple_of(8) * OF.2;
    let blocks = blocks.min(threads / OF.2).min(65536 / of_block);
    let planes = Planes::new(dtype, 4096).expect("a type in planes");
    let bytes = planes.row_bytes().map(|bytes| bytes / (4096 / OF.0));
    let wide = |bytes: usize| if bytes.is_multiple_of(16) { bytes } else { 0 };
    let loaded = (wide(bytes[0]) + wide(bytes[1])) as u64 * OF.1;
    (loaded * OF.2 * blocks) as f64 / 1024.0
}

pub(super) fn book(heading: &str) -> BTreeMap<String, Vec<f64>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/cuda.md");
    let text = std::fs::read_to_string(file).expect("the page of the book");
    let mut out = BTreeMap::new();
    let heading = format!("| {heading} |");
    let rows = text
        .lines()
        .skip_while(|l| !l.starts_with(&heading))
        .skip(2);
    for row in rows.take_while(|l| l.starts_with('|')) {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let name = cells.next().expect("a cell").trim_matches('`').to_owned();
        out.insert(name, cells.filter_map(|c| c.parse().ok()).collect());
    }
    out
}

fn print(table: &BTreeMap<DType, Vec<f64>>, digits: usize) {
    for (dtype, counts) in table {
        let cells: Vec<String> = counts.iter().map(|c| format!("{c:.digits$}")).collect();
        println!("| `{dtype}` | {} |", cells.join(" | "));
    }
}

/// Checks one target per type in turn. `TPC_FULL=1` checks all targets and prints the tables.
#[test]
fn loops_take_no_more_instructions_than_the_book_says() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let tool = Disassembler::find();
    if tool.is_none() {
        tpc_op_cases::skip("without nvdisasm no instructions are counted");
    }
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let (book, flight) = (book("instructions for a weight"), book("KB in flight"));
    let mut found: BTreeMap<DType, Vec<f64>> = BTreeMap::new();
    let mut flying: BTreeMap<DType, Vec<f64>> = BTreeMap::new();
    let mut worse = Vec::new();
    for (t, target) in TARGETS.iter().enumerate() {
        let mine = types()
            .enumerate()
            .filter(|(i, _)| full || (i + 1) % TARGETS.len() == t);
        let mine: Vec<DType> = mine.map(|(_, d)| d).collect();
        for dtype in mine {
            // Compile one module per type, because other kernels in a module can change the code of a kernel.
            let kernel = of_one_token(dtype);
            let module = modules(&BTreeSet::from([kernel.clone()])).swap_remove(0);
            let compiled = compile(&nvrtc, &module.text, target);
            let own = in_flight(dtype, target, compiled.kernels[0].registers);
            flying.entry(dtype).or_default().push(own);
            let least = flight.get(dtype.name()).and_then(|row| row.get(t)).copied();
            let enough = *target != "sm_90a" || own >= 23.0;
            if !enough || least.is_none_or(|least| own < least - 0.5) {
                worse.push(format!(
                    "{dtype} on {target}: {own} KB in flight, the book has {least:?}"
                ));
            }
            let code = tool.as_ref().and_then(|tool| tool.kernels(&compiled.cubin));
            let Some(code) = code else {
                eprintln!("no disassembler shows the code of {target}");
                continue;
            };
            let count = instructions_per_weight(&code[&kernel.entry()]);
            let count = count.unwrap_or_else(|| panic!("{dtype}: no loop"));
            found.entry(dtype).or_default().push(count);
            let most = book.get(dtype.name()).and_then(|row| row.get(t)).copied();
            // Numbers in the table are rounded.
            if most.is_none_or(|most| count > most + 0.005) {
                worse.push(format!(
                    "{dtype} on {target}: {count:.2}, the book has {most:?}"
                ));
            }
        }
    }
    if full {
        print(&found, 2);
        print(&flying, 0);
    }
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}

/// Checks the loop over K of products of many tokens, for one target per type in turn. `TPC_FULL=1` checks all targets and
/// prints the table.
#[test]
fn loops_of_prompts_take_no_more_instructions_than_the_book_says() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let Some(tool) = Disassembler::find() else {
        tpc_op_cases::skip("without nvdisasm no instructions are counted");
        return;
    };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let book = book("instructions for a tensor instruction");
    let mut found: BTreeMap<DType, Vec<f64>> = BTreeMap::new();
    let mut worse = Vec::new();
    for (t, target) in TARGETS.iter().enumerate() {
        let mine = types()
            .enumerate()
            .filter(|(i, _)| full || (i + 2) % TARGETS.len() == t);
        for (_, dtype) in mine {
            let kernel = instances(dtype).swap_remove(5);
            assert!(kernel.name().ends_with("128, 128>"), "{}", kernel.name());
            let module = modules(&BTreeSet::from([kernel.clone()])).swap_remove(0);
            let compiled = compile(&nvrtc, &module.text, target);
            let code = tool.kernels(&compiled.cubin).expect("instructions");
            let count = instructions_per_mma(&code[&kernel.entry()]);
            let count = count.unwrap_or_else(|| panic!("{dtype}: no loop"));
            found.entry(dtype).or_default().push(count);
            let most = book.get(dtype.name()).and_then(|row| row.get(t)).copied();
            // Numbers in the table are rounded.
            if most.is_none_or(|most| count > most + 0.005) {
                worse.push(format!(
                    "{dtype} on {target}: {count:.2}, the book has {most:?}"
                ));
            }
        }
    }
    if full {
        print(&found, 2);
    }
    assert!(worse.is_empty(), "{}", worse.join("\n"));
}

fn compile(nvrtc: &Nvrtc, text: &str, target: &str) -> CompiledModule {
    let compiled = nvrtc.compile("planes", &with_prelude(text), target);
    compiled.unwrap_or_else(|e| panic!("{target}: {e}"))
}
