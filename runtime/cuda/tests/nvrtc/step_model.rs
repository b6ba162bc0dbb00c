//! Counts the instructions of kernels for the model of a step, and compares them with its table.
//!
//! Every second kernel is checked for one target, or all kernels for all targets with `TPC_FULL=1`. `TPC_BLESS=1` writes
//! the table. `TPC_ONLY=sm_89` selects a target. Counting needs `nvdisasm`; otherwise it is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use tpc_cuda::kernels::{
    ExpertBias, FusedOp, Head, Heads, Instance, KeepInput, Request, RowSource, Tensor, modules,
    select, select_expert_order, select_fused, select_halves, select_sum_entries, select_terms,
};
use tpc_cuda::nvrtc::{CodeCounts, Disassembler, LoopUnit, Nvrtc, TARGETS, with_prelude};
use tpc_cuda::planes::Planes;
use tpc_cuda::step_model::{KernelCounts, KernelKey, KernelTable, table};
use tpc_ir::DType;
use tpc_ir::op::{
    Binary, BinaryKind, FlashAttn, GetRows, Glu, GluKind, MulMat, MulMatId, Norm, NormKind, Op,
    Rope, RopeMode, SetRows,
};
use tpc_runtime::Options;

use crate::fused;

fn with<T>(operands: &[Tensor], results: &[Tensor], of: impl Fn(&Request<'_>) -> T) -> T {
    of(&Request {
        operands,
        results,
        options: Options::default(),
        multiprocessors: 132,
    })
}

fn floats(dims: [usize; 4]) -> Tensor {
    Tensor::new(DType::F32, dims)
}

fn weight_of(dtype: DType, dims: [usize; 4]) -> Tensor {
    Tensor {
        format: Planes::FORMAT,
        ..Tensor::new(dtype, dims)
    }
}

fn weight(dtype: DType, rows: usize, stack: usize) -> Tensor {
    weight_of(dtype, [4096, rows, stack, 1])
}

fn op(op: &Op, operands: &[Tensor], result: Tensor) -> Instance {
    let kernel = with(operands, &[result], |r| select(op, r));
    kernel.unwrap_or_else(|e| panic!("{e}")).instance
}

fn fused(op: &FusedOp, operands: &[Tensor], results: &[Tensor]) -> Instance {
    let kernel = with(operands, results, |r| select_fused(op, r));
    kernel.unwrap_or_else(|e| panic!("{e}")).instance
}

/// Returns products with weights of a type in a batch of this size.
fn products(dtype: DType, tokens: usize) -> Vec<Instance> {
    let (x, y) = (floats([4096, tokens, 1, 1]), floats([4096, tokens, 1, 1]));
    let [large, small] = [4096, 1024].map(|rows| weight(dtype, rows, 1));
    let stack = weight(dtype, 1024, 128);
    let ids = Tensor::new(DType::I32, [8, tokens, 1, 1]);
    let of_slots = floats([4096, 1, tokens, 1]);
    let each = floats([4096, 8, tokens, 1]);
    let by = floats([1, 8, tokens, 1]);
    let of = MulMatId { window: None };
    let glu = Glu::new(GluKind::Swiglu);
    let group = FusedOp::GroupedMulMat(vec![0, 0, 0]);
    let sum = FusedOp::MulMatIdSum(of.clone(), ExpertBias::Absent, 1);
    let experts = FusedOp::MulMatIdGlu(glu.clone(), of.clone());
    vec![
        op(&MulMat.into(), &[small, x], y),
        fused(&FusedOp::MulMatAdd, &[large, x, y], &[y]),
        fused(&FusedOp::MulMatAdd, &[small, x, y], &[y]),
        fused(&group, &[x, large, small, small], &[y; 3]),
        fused(&FusedOp::MulMatGlu(glu), &[large, large, x], &[y, y]),
        op(&of.into(), &[stack, of_slots, ids], each),
        fused(&experts, &[stack, stack, of_slots, ids], &[each, each]),
        fused(&sum, &[stack, each, ids, by, y], &[y]),
    ]
}

fn attention() -> Vec<Instance> {
    let attention: Op = FlashAttn {
        scale: 0.1,
        max_bias: 0.0,
        softcap: 0.0,
        heads: None,
        lse: false,
    }
    .into();
    let cells = 4096;
    let of = |dtype: DType, (heads, tokens, n): (usize, usize, usize)| {
        let cache = Tensor::new(dtype, [n, cells, 1, 1]);
        let q = floats([n, tokens, heads, 1]);
        let mask = floats([cells, tokens, 1, 1]);
        let y = floats([n, heads, tokens, 1]);
        let kernel = with(&[q, cache, cache, mask], &[y, y], |r| select(&attention, r));
        kernel.unwrap_or_else(|e| panic!("{e}")).instance
    };
    let mut out = Vec::new();
    for dtype in [DType::F16, DType::Q8_0] {
        let rows = [1, 2, 4, 8].map(|heads| of(dtype, (heads, 1, 128)));
        out.extend(rows);
        out.push(of(dtype, (8, 512, 128)));
        out.push(of(dtype, (8, 512, 256)));
    }
    out
}

/// Returns kernels that read no weights in planes.
fn others() -> Vec<Instance> {
    let x = floats([4096, 1, 1, 1]);
    let many = floats([4096, 512, 1, 1]);
    let ids = Tensor::new(DType::I32, [8, 512, 1, 1]);
    let stack = weight(DType::Q4K, 1024, 128);
    let of = MulMatId { window: None };
    let sum = FusedOp::MulMatIdSum(of.clone(), ExpertBias::Absent, 1);
    let (each, by) = (floats([4096, 8, 512, 1]), floats([1, 8, 512, 1]));
    let window = None;
    let look_up: Op = GetRows { window }.into();
    let token = Tensor::new(DType::I32, [1, 1, 1, 1]);
    let add: Op = Binary {
        kind: BinaryKind::Add,
    }
    .into();
    let mut out = vec![
        with(&[x], &[x], select_terms).expect("reals").instance,
        with(&[many], &[many], select_halves)
            .expect("reals")
            .instance,
        with(&[stack, ids], &[x], |r| {
            select_expert_order(&of, r).expect("indices")
        })
        .instance,
        with(&[stack, each, ids, by, many], &[many], |r| {
            select_sum_entries(&sum, r).expect("a sum")
        })
        .instance,
        op(&look_up, &[weight(DType::Q4K, 4096, 1), token], x),
        op(
            &look_up,
            &[Tensor::new(DType::Q4K, [4096, 4096, 1, 1]), token],
            x,
        ),
        op(
            &MulMat.into(),
            &[floats([4096, 128, 1, 1]), x],
            floats([128, 1, 1, 1]),
        ),
        op(
            &MulMat.into(),
            &[floats([4096, 128, 1, 1]), many],
            floats([128, 512, 1, 1]),
        ),
        op(&add, &[x, x], x),
        fused::router().instance,
    ];
    let more = [fused::norms(), fused::attention()].concat();
    out.extend(more.into_iter().map(|kernel| kernel.instance));
    out.extend(plain_norms_and_heads());
    out
}

/// Returns norms that do not keep their input, and heads without norms.
fn plain_norms_and_heads() -> Vec<Instance> {
    let norm = Norm {
        kind: NormKind::Rms,
        eps: 1e-6,
    };
    let x = floats([4096, 1, 1, 1]);
    let of = |(rows, n, results): (RowSource, usize, usize)| {
        let op = FusedOp::NormMul(norm.clone(), rows, KeepInput::No);
        fused(&op, &vec![x; n + 1], &vec![x; results])
    };
    let forms = [(RowSource::Tensor, 1, 2), (RowSource::Tensor, 1, 1)];
    let mut out: Vec<Instance> = forms.into_iter().map(of).collect();
    let part = |rope: bool, set_rows: bool| Head {
        norm: None,
        rope,
        scale: None,
        set_rows: set_rows.then(|| SetRows::along(2)),
    };
    let op = FusedOp::Heads(Heads {
        rope: Some((Rope::with_defaults(RopeMode::Neox, 128), true)),
        parts: vec![part(true, false), part(true, true), part(false, true)],
    });
    let x = floats([128, 8, 1, 1]);
    let at = Tensor::new(DType::I32, [1, 1, 1, 1]);
    let cell = Tensor::new(DType::I64, [1, 1, 1, 1]);
    let cache = Tensor::new(DType::F16, [128, 8, 64, 1]);
    let factors = floats([64, 1, 1, 1]);
    let operands = [at, factors, x, x, cell, x, cell];
    out.push(fused(&op, &operands, &[x, cache, cache]));
    out
}

/// Returns one instance of each key.
fn kernels() -> BTreeMap<KernelKey, Instance> {
    let mut all = Vec::new();
    for dtype in DType::ALL.iter().copied().filter(|t| Planes::supports(*t)) {
        let (one, many) = (floats([4096, 1, 1, 1]), floats([4096, 512, 1, 1]));
        let large = weight(dtype, 4096, 1);
        all.push(op(&MulMat.into(), &[large, one], one));
        // Rows with fewer pairs than a warp has lanes.
        let (short, few) = (
            weight_of(dtype, [1024, 4096, 1, 1]),
            floats([1024, 1, 1, 1]),
        );
        all.push(op(&MulMat.into(), &[short, few], one));
        all.push(op(&MulMat.into(), &[large, many], many));
    }
    for dtype in [DType::Q4K, DType::Q6K, DType::Q8_0, DType::Mxfp4] {
        all.extend(products(dtype, 1));
    }
    all.extend(products(DType::Q4K, 8));
    // Tiles of 64 and of 128 rows.
    all.extend(products(DType::Q4K, 64));
    all.extend(products(DType::Q4K, 2048));
    all.extend(attention());
    all.extend(others());
    let mut out = BTreeMap::new();
    for instance in all {
        out.entry(KernelKey::of(instance.name()))
            .or_insert(instance);
    }
    out
}

fn counts(
    (nvrtc, tool): (&Nvrtc, &Disassembler),
    (key, instance): (&KernelKey, &Instance),
    target: &str,
) -> KernelCounts {
    let module = modules(&BTreeSet::from([instance.clone()])).swap_remove(0);
    let compiled = nvrtc.compile(module.name, &with_prelude(&module.text), target);
    let compiled = compiled.unwrap_or_else(|e| panic!("{target}: {e}"));
    let code = tool.kernels(&compiled.cubin).expect("instructions");
    let resources = &compiled.kernels[0];
    KernelCounts {
        kernel: key.kernel.clone(),
        weights: key.weights.clone(),
        target: target.to_owned(),
        registers: resources.registers as u32,
        shared: resources.shared as u32,
        code: CodeCounts::of(
            &code[&instance.entry()],
            KernelKey::is_attention(key.template()),
        ),
    }
}

/// Counts kernels in two threads.
fn all_counts(
    tools: (&Nvrtc, &Disassembler),
    kernels: &[(&KernelKey, &Instance)],
    target: &str,
) -> Vec<KernelCounts> {
    let (work, out) = (Mutex::new(kernels.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no panic").next();
                    let Some(of) = next else { return };
                    let found = counts(tools, *of, target);
                    out.lock().expect("no panic").push(found);
                }
            });
        }
    });
    out.into_inner().expect("no panic")
}

/// Explains how code is worse than the table: more instructions per unit, or more registers.
fn worse(found: &KernelCounts, known: Option<&KernelCounts>) -> Option<String> {
    let name = format!("{} {} on {}", found.kernel, found.weights, found.target);
    let Some(known) = known else {
        return Some(format!("{name}: not in the table"));
    };
    let per_unit = |c: &CodeCounts| f64::from(c.each) / f64::from(c.done.max(1));
    let figures = [
        (
            "registers",
            f64::from(found.registers),
            f64::from(known.registers),
        ),
        (
            "instructions",
            f64::from(found.code.total()),
            f64::from(known.code.total()),
        ),
        (
            "instructions per unit",
            per_unit(&found.code),
            per_unit(&known.code),
        ),
    ];
    let is_worse = |(_, found, known): &&(&str, f64, f64)| *found > *known + 1e-9;
    let worst = figures.iter().find(is_worse);
    worst.map(|(what, found, known)| format!("{name}: {found:.2} {what}, the table has {known:.2}"))
}

#[test]
fn kernels_are_no_worse_than_the_table_says() {
    let Some(nvrtc) = super::nvrtc() else { return };
    let Some(tool) = Disassembler::find() else {
        tpc_op_cases::skip("without nvdisasm no instructions are counted");
        return;
    };
    let is_set = |name: &str| std::env::var(name).is_ok_and(|v| v == "1");
    let (full, bless) = (is_set("TPC_FULL"), is_set("TPC_BLESS"));
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let kernels = kernels();
    let mut failed = Vec::new();
    // The file may be newer than this program.
    let file = std::fs::read_to_string(TABLE).expect("the table");
    let known = KernelTable::parse(&file).unwrap_or_else(|e| panic!("{TABLE}: {e}"));
    let mut rows: Vec<KernelCounts> = known.rows().cloned().collect();
    for (t, target) in TARGETS.iter().enumerate() {
        if !target.contains(&only) {
            continue;
        }
        rows.retain(|row| !bless || row.target != *target);
        // The other half of the kernels takes as long again.
        let is_due = |i: usize| full || bless || i % (2 * TARGETS.len()) == t;
        let due = kernels.iter().enumerate().filter(|(i, _)| is_due(*i));
        let due: Vec<_> = due.map(|(_, of)| of).collect();
        for found in all_counts((&nvrtc, &tool), &due, target) {
            let key = KernelKey {
                kernel: found.kernel.clone(),
                weights: found.weights.clone(),
            };
            if full {
                println!("{found:?}");
            }
            failed.extend(worse(&found, known.row(target, &key)));
            if bless {
                rows.push(found);
            }
        }
        if bless {
            write(&rows);
        }
    }
    if bless {
        write_book(&rows);
    }
    assert!(bless || failed.is_empty(), "{}", failed.join("\n"));
}

fn table_of(rows: &[KernelCounts]) -> KernelTable {
    let mut table = KernelTable::default();
    rows.iter().cloned().for_each(|row| table.insert(row));
    table
}

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/step_model/kernels.ron");
const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/cuda.md");
const HEADING: &str = "| instructions of the kernel for a weight, K = 4096 / 14336 |";

/// Returns the rows of the book's table: each type's instructions per weight of the whole kernel.
fn book_rows(table: &KernelTable) -> String {
    let mut out = String::new();
    for dtype in DType::ALL.iter().copied().filter(|t| Planes::supports(*t)) {
        let large = weight(dtype, 4096, 1);
        let one = floats([4096, 1, 1, 1]);
        let key = KernelKey::of(op(&MulMat.into(), &[large, one], one).name());
        let cell = |target: &&str| {
            let of = |k| table.instructions_per_weight(target, &key.weights, k);
            let both = of(4096).zip(of(14336));
            both.map_or_else(|| "–".to_owned(), |(a, b)| format!("{a:.2} / {b:.2}"))
        };
        let cells: Vec<String> = TARGETS.iter().map(cell).collect();
        out.push_str(&format!("| `{dtype}` | {} |\n", cells.join(" | ")));
    }
    out
}

/// Splits the book at the rows of the table.
fn split_book(book: &str) -> (&str, &str, &str) {
    let heading = book.find(HEADING).expect("the table of whole kernels");
    let lines = book[heading..]
        .match_indices('\n')
        .map(|(i, _)| heading + i + 1);
    let start = lines.clone().nth(1).expect("rows");
    let mut ends = lines.skip(1);
    let end = ends
        .find(|i| !book[*i..].starts_with('|'))
        .expect("text after the table");
    (&book[..start], &book[start..end], &book[end..])
}

fn write_book(rows: &[KernelCounts]) {
    let book = std::fs::read_to_string(BOOK).expect("the page of the book");
    let (before, _, after) = split_book(&book);
    let text = format!("{before}{}{after}", book_rows(&table_of(rows)));
    std::fs::write(BOOK, text).expect("the page is written");
}

#[test]
fn the_book_has_the_instructions_of_whole_kernels() {
    let book = std::fs::read_to_string(BOOK).expect("the page of the book");
    assert_eq!(
        split_book(&book).1,
        book_rows(table()),
        "TPC_BLESS=1 writes the table"
    );
}

fn write(rows: &[KernelCounts]) {
    let table = table_of(rows);
    std::fs::write(TABLE, table.format().expect("rows")).expect("the table is written");
}

#[test]
fn the_table_has_every_kernel() {
    let kernels = kernels();
    let lacking: Vec<_> = kernels
        .keys()
        .filter(|key| TARGETS.iter().any(|t| table().row(t, key).is_none()))
        .collect();
    assert!(lacking.is_empty(), "{lacking:?}");
    let products = table().rows().filter(|r| r.kernel.starts_with("gemv "));
    for row in products {
        assert_eq!(row.code.unit, LoopUnit::Idp, "{row:?}");
    }
}
