//! Products with weights in planes: compiled for every kind of card without spills, and with no more instructions for a weight
//! and no fewer bytes in flight than the book says.
//!
//! Instructions are those of the loop over K of one token's product, two rows at once, as `nvdisasm` shows them. It comes with a
//! toolkit, or beside NVRTC in a wheel of its own; where it is not, that is said, and the count is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use tpc_cuda::kernels::{Instance, Request, Tensor, modules, select, select_terms};
use tpc_cuda::nvrtc::{CompiledModule, Nvrtc, TARGETS, with_prelude};
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

/// The kernel of a product of one token.
fn of_one_token(dtype: DType) -> Instance {
    instances(dtype).swap_remove(0)
}

/// The kernels that read a type.
fn instances(dtype: DType) -> Vec<Instance> {
    let window = None;
    let weight = Tensor {
        format: Planes::FORMAT,
        ..Tensor::new(dtype, [4096, 4096, 1, 1])
    };
    let x = |n| Tensor::new(DType::F32, [4096, n, 1, 1]);
    let ids = Tensor::new(DType::I32, [2, 2, 1, 1]);
    let of = |op: Op, operands: &[Tensor]| {
        let kernel = request(operands, |r| select(&op, r));
        kernel.unwrap_or_else(|e| panic!("{e}")).instance
    };
    vec![
        of(MulMat.into(), &[weight, x(1)]),
        of(MulMat.into(), &[weight, x(8)]),
        of(MulMatId { window }.into(), &[weight, x(2), ids]),
        of(GetRows { window }.into(), &[weight, ids]),
    ]
}

/// One target for each type, in turn; all with `TPC_FULL=1`.
#[test]
fn products_with_planes_compile_for_cards() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let full = std::env::var("TPC_FULL").is_ok_and(|v| v == "1");
    let mut failed = Vec::new();
    for (t, target) in TARGETS.iter().enumerate() {
        let mine = types()
            .enumerate()
            .filter(|(i, _)| full || i % TARGETS.len() == t);
        // The kernels of one token are compiled where instructions are counted.
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

/// Where the disassembler is: beside NVRTC, in a toolkit, or where the system finds it.
fn disassembler() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut folders = Vec::new();
    for root in ["TPC_NVDISASM", "TPC_NVRTC", "CUDA_PATH", "CUDA_HOME"] {
        let Some(root) = set(root) else { continue };
        let below = ["", "bin", "nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin"];
        folders.extend(below.map(|b| root.join(b)));
    }
    folders.push("/usr/local/cuda/bin".into());
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let found = folders.into_iter().map(|f| f.join("nvdisasm"));
    found.into_iter().find(|f| f.is_file())
}

/// The code of a module as instructions, by kernel. A label stands before the instruction that it names.
fn disassembled(tool: &Path, name: &str, cubin: &[u8]) -> Option<BTreeMap<String, Vec<String>>> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.cubin"));
    std::fs::write(&file, cubin).expect("a file");
    let done = Command::new(tool).arg("-c").arg(&file).output().ok()?;
    let text = String::from_utf8(done.stdout)
        .ok()
        .filter(|t| !t.is_empty())?;
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut kernel = String::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix(".text.")
            .and_then(|l| l.strip_suffix(':'))
        {
            name.clone_into(&mut kernel);
        }
        let code = out.entry(kernel.clone()).or_default();
        if line.starts_with(".L") && line.ends_with(':') {
            code.push(line.to_owned());
        } else if let Some((_, rest)) = line.split_once("*/") {
            code.extend(rest.split_once(';').map(|(i, _)| i.trim().to_owned()));
        }
    }
    Some(out)
}

/// The instructions of the shortest loop that multiplies codes, for each weight that it takes.
fn per_weight(code: &[String]) -> Option<f64> {
    let mut labels = BTreeMap::new();
    let mut shortest: Option<(usize, usize)> = None;
    let is_label = |line: &String| line.starts_with(".L");
    for (at, line) in code.iter().enumerate() {
        if let Some(label) = line.strip_suffix(':') {
            labels.insert(label, at);
        }
        let target = line.split_once("`(").and_then(|(_, l)| l.strip_suffix(')'));
        let Some(from) = target
            .filter(|_| line.contains("BRA"))
            .and_then(|l| labels.get(l))
        else {
            continue;
        };
        let body = &code[*from..=at];
        let products = body.iter().filter(|l| l.contains("IDP")).count();
        let instructions = body.iter().filter(|l| !is_label(l)).count();
        if products > 0 && shortest.is_none_or(|(n, _)| instructions < n) {
            shortest = Some((instructions, products));
        }
    }
    // Four weights are multiplied with both terms by two instructions.
    shortest.map(|(n, products)| n as f64 / (2 * products) as f64)
}

/// Threads and blocks that a multiprocessor of a target holds, the least where its cards differ.
fn held(target: &str) -> (u64, u64) {
    match target {
        "sm_75" => (1024, 16),
        "sm_80" => (1536, 16),
        "sm_89" | "sm_120f" => (1536, 24),
        _ => (2048, 32),
    }
}

/// The KB of weights that a multiprocessor waits for at most: of the blocks that its registers are enough for, what each thread loads 16
/// bytes at a time before it multiplies.
fn in_flight(dtype: DType, target: &str, registers: u64) -> f64 {
    /// Columns of a pair, rows that a lane has at once, and threads of a block.
    const OF: (usize, u64, u64) = (64, 2, 128);
    let (threads, blocks) = held(target);
    let of_block = registers.next_multiple_of(8) * OF.2;
    let blocks = blocks.min(threads / OF.2).min(65536 / of_block);
    let planes = Planes::new(dtype, 4096).expect("a type in planes");
    let bytes = planes.row_bytes().map(|bytes| bytes / (4096 / OF.0));
    let wide = |bytes: usize| if bytes.is_multiple_of(16) { bytes } else { 0 };
    let loaded = (wide(bytes[0]) + wide(bytes[1])) as u64 * OF.1;
    (loaded * OF.2 * blocks) as f64 / 1024.0
}

/// The rows of a table of the book: per type, a number for each target.
fn book(heading: &str) -> BTreeMap<String, Vec<f64>> {
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

/// Prints a table.
fn print(table: &BTreeMap<DType, Vec<f64>>, digits: usize) {
    for (dtype, counts) in table {
        let cells: Vec<String> = counts.iter().map(|c| format!("{c:.digits$}")).collect();
        println!("| `{dtype}` | {} |", cells.join(" | "));
    }
}

/// One target for each type, in turn; all with `TPC_FULL=1`, which prints the tables.
#[test]
fn loops_take_no_more_instructions_than_the_book_says() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let tool = disassembler();
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
            // A kernel's code depends on what is compiled beside it: each type has a module of its own.
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
            let code = tool
                .as_ref()
                .and_then(|t| disassembled(t, target, &compiled.cubin));
            let Some(code) = code else {
                eprintln!("no disassembler shows the code of {target}");
                continue;
            };
            let count = per_weight(&code[&kernel.entry()]);
            let count = count.unwrap_or_else(|| panic!("{dtype}: no loop"));
            found.entry(dtype).or_default().push(count);
            let most = book.get(dtype.name()).and_then(|row| row.get(t)).copied();
            // The table is rounded.
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

fn compile(nvrtc: &Nvrtc, text: &str, target: &str) -> CompiledModule {
    let compiled = nvrtc.compile("planes", &with_prelude(text), target);
    compiled.unwrap_or_else(|e| panic!("{target}: {e}"))
}
