//! Captured graphs of a widely used engine: read back, planned, and run whole and split.
//!
//! Nothing here knows an architecture: what a capture says of memory is all there is.

use std::collections::BTreeMap;
use std::path::Path;

use tpc::capture::{self, Captured};
use tpc_ir::op::{InputKind, Op};
use tpc_ir::verify::verify;
use tpc_ir::{Bindings, DType, Dim, Graph, Symbol, TensorType};
use tpc_passes::factors::Factors;
use tpc_passes::lower::lower;
use tpc_passes::plan::{PlanRequest, Topology, Workload, plan};
use tpc_passes::shard::shard;
use tpc_runtime::ExecError;
use tpc_runtime::reference::{Interpreter, MemoryWeights, Options, Tensor};

/// The numbers of devices that every capture is planned for.
const DEVICES: [usize; 5] = [2, 3, 4, 5, 8];

/// The most that the split programs may differ from the whole graph: both compute in f64.
const LIMIT: f64 = 1e-10;

/// Reads a capture; it has no ops that the IR lacks.
pub fn read(path: &Path) -> Result<Captured, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let captured = capture::read(&text, &name).map_err(|e| format!("read: {e}"))?;
    if let Some(note) = captured.notes.first() {
        return Err(format!("note {}: {note}", note.code));
    }
    Ok(captured)
}

/// The factors of the graph are inferred without cutting any, and hold.
pub fn infer(graph: &Graph) -> Result<(), String> {
    verify(graph).map_err(|e| format!("verify: {}", e[0]))?;
    let factors = Factors::infer(graph);
    if let Some((inst, cut)) = factors.opaque.first() {
        return Err(format!("factors: {inst} {}: {cut}", graph.inst(*inst).op.name()));
    }
    if !factors.is_stable(graph) {
        return Err("factors: a second pass refines something".to_owned());
    }
    Ok(())
}

/// What the devices do, and how many values are split.
pub struct Split {
    pub programs: Graph,
    /// Weights and states that are split, and all of them.
    pub stored: (usize, usize),
    pub all_reduces: usize,
    /// What splits, by name.
    pub classes: Vec<String>,
}

/// The verified programs of so many devices.
pub fn divide(graph: &Graph, devices: usize) -> Result<Split, String> {
    let names: Vec<String> = (0..devices).map(|i| format!("d{i}")).collect();
    let request = PlanRequest::new(
        Topology::default(),
        Workload::new(4096, 4096, 512, 1),
        names.clone(),
    );
    let planned = plan(graph, &request);
    let sharded = shard(
        graph,
        &planned.factors,
        &planned.analysis,
        &planned.users,
        &planned.choice,
        &names,
    )
    .map_err(|e| format!("shard for {devices}: {e}"))?;
    verify(&sharded).map_err(|e| format!("sharded for {devices}: {}", e[0]))?;
    let programs = lower(&sharded).map_err(|e| format!("lower for {devices}: {e}"))?;
    verify(&programs).map_err(|e| format!("programs for {devices}: {}", e[0]))?;
    let mut stored = (0, 0);
    for (_, data) in sharded.insts() {
        if matches!(data.op, Op::Weight(_) | Op::State(_)) {
            stored.1 += 1;
            stored.0 += usize::from(sharded.value(data.results[0]).sharding.is_split());
        }
    }
    let all_reduces = sharded.insts().filter(|(_, i)| matches!(i.op, Op::AllReduce(_)));
    let classes = sharded.classes.iter().map(|c| format!("{} {}", c.name, c.size));
    Ok(Split {
        programs,
        stored,
        all_reduces: all_reduces.count(),
        classes: classes.collect(),
    })
}

/// The graph with exact caches and masks: rounding to f16 may turn a difference of the last bit into one of f16's.
pub fn exact(mut graph: Graph) -> Graph {
    let values: Vec<_> = graph.values().map(|(v, _)| v).collect();
    for v in values {
        let ty = &mut graph.value_mut(v).ty;
        if ty.dtype == DType::F16 {
            ty.dtype = DType::F32;
        }
    }
    graph
}

/// A small generator of numbers from −1 to 1, from a name.
fn noise(seed: &str) -> impl FnMut() -> f64 {
    let mut state = seed
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// Random weights for a graph.
pub fn weights(graph: &Graph) -> MemoryWeights {
    let mut out = MemoryWeights::new();
    for (_, data) in graph.insts() {
        let Op::Weight(w) = &data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        let ne = ty.dims.each_ref().map(|d| d.as_const().expect("weights have constant sizes"));
        assert_eq!(ty.dtype, DType::F32, "captures have f32 weights");
        // Matrices keep the size of what they multiply.
        let scale = if ne[1] > 1 { (3.0 / ne[0] as f64).sqrt() } else { 1.0 };
        let mut next = noise(&w.tensor);
        let values: Vec<f32> = (0..ne.iter().product()).map(|_| (next() * scale) as f32).collect();
        out.insert_f32(w.tensor.clone(), ne, &values);
    }
    out
}

/// The named outputs of two batches, the second of which sees the states that the first left.
pub fn run(graph: &Graph, weights: &MemoryWeights, batch: &[(Symbol, u64)]) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let bindings = batch.iter().fold(Bindings::default(), |b, &(s, n)| b.with(s, n));
    let cells = [Symbol::NKv, Symbol::NCtx, Symbol::NKvSwa, Symbol::NCtxSwa].map(Dim::symbol);
    let mut interpreter = Interpreter::new(graph, weights, Options::default()).map_err(|e| format!("load: {e}"))?;
    let mut out = BTreeMap::new();
    for turn in 0..2 {
        let mut inputs = |kind: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
            let InputKind::Other(name) = kind else {
                panic!("captures name their inputs, not {kind:?}")
            };
            let dims = ty.dims.each_ref().map(|d| d.eval(&bindings).expect("small") as usize);
            let n: usize = dims.iter().product();
            if ty.dtype.is_integer() {
                // Every index is below the number of tokens, and below the size of what it counts along.
                let data = (0..n).map(|i| if turn == 0 { i } else { n - 1 - i } as i64 % 8);
                Tensor::ints_of(dims, data.collect())
            } else if cells.contains(&ty.dims[0]) {
                Tensor::reals_of(dims, vec![0.0; n])
            } else {
                let mut next = noise(name);
                Tensor::reals_of(dims, (0..n).map(|_| next()).collect())
            }
        };
        let made = interpreter.run(&bindings, &mut inputs).map_err(|e| format!("run: {e}"))?;
        for (name, tensor) in made {
            let values = tensor.reals().map_err(|e| e.to_string())?.to_vec();
            out.insert(format!("{name} of batch {turn}"), values);
        }
    }
    Ok(out)
}

/// Reads, plans for every number of devices, runs all forms and compares.
pub fn check(path: &Path) -> Result<(), String> {
    let captured = read(path)?;
    infer(&captured.graph)?;
    let graph = exact(captured.graph);
    let weights = weights(&graph);
    let whole = run(&graph, &weights, &captured.batch)?;
    for devices in DEVICES {
        let split = divide(&graph, devices)?;
        let parts = run(&split.programs, &weights, &captured.batch).map_err(|e| format!("{devices} devices: {e}"))?;
        for (name, expected) in &whole {
            if !expected.iter().all(|x| x.is_finite()) {
                return Err(format!("{name} is not finite"));
            }
            let d = tpc::golden::distance(expected.iter().copied(), parts[name].iter().copied());
            if d.nmse > LIMIT {
                return Err(format!("{name} on {devices} devices: NMSE {:e}", d.nmse));
            }
        }
    }
    Ok(())
}
