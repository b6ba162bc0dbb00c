//! Captured graphs of llama.cpp: read, planned, and run whole and split, with random or golden weights.
//!
//! Only inputs of the golden tests depend on tensor names. The reader uses neither names nor architectures, only the
//! capture's memory.

mod deep;
mod forced;
mod golden;
mod native;
mod quality;
mod small;
mod split;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;

use tpc_core::golden::distance;
use tpc_ggml::capture::{self, CapturedGraph};
use tpc_ir::op::{InputKind, Op};
use tpc_ir::stage::Executable;
use tpc_ir::{Bindings, DType, Dim, Graph, Symbol, TensorType, Verified, stage};
use tpc_passes::canonicalise::canonicalise;
use tpc_passes::factors::Factors;
use tpc_passes::lower::lower;
use tpc_passes::machine::{Topology, Workload};
use tpc_passes::plan::{PlanRequest, PlannedGraph, plan};
use tpc_passes::shard::shard;
use tpc_runtime::{Interpreter, MemoryWeights, Options, Tensor};

use super::support::verified;

const DEVICES: [usize; 5] = [2, 3, 4, 5, 8];

/// The maximum NMSE of split programs from the whole graph; both compute in f64.
const AGAINST_WHOLE: f64 = 1e-10;

fn stem(path: &Path) -> String {
    path.file_stem()
        .expect("a file name")
        .to_string_lossy()
        .into_owned()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a capture; fails if the reader adds a note.
fn read(text: &str, name: &str) -> Result<CapturedGraph, String> {
    let captured = capture::read(text, name).map_err(|e| format!("read: {e}"))?;
    match captured.notes.first() {
        None => Ok(captured),
        Some(note) => Err(format!("note {}: {note}", note.code)),
    }
}

fn infer(graph: &Verified<stage::Model>) -> Result<(), String> {
    let factors = Factors::infer(graph);
    if let Some((inst, cut)) = factors.opaque.first() {
        let op = graph.inst(*inst).op.name();
        return Err(format!("factors: {inst} {op}: {cut}"));
    }
    if !factors.is_stable(graph) {
        return Err("factors: a second pass refines something".to_owned());
    }
    Ok(())
}

struct Divided {
    planned: PlannedGraph,
    sharded: Verified<stage::Sharded>,
    programs: Verified<stage::Programs>,
}

fn divide(graph: &Verified<stage::Model>, devices: usize) -> Result<Divided, String> {
    divide_on(graph, devices, Topology::default())
}

fn divide_on(
    graph: &Verified<stage::Model>,
    devices: usize,
    topology: Topology,
) -> Result<Divided, String> {
    let names = (0..devices).map(|i| format!("cpu:{i}")).collect();
    let workload = Workload::new(4096, 4096, 512, 1);
    let request = PlanRequest::new(topology, workload, names);
    let planned = plan(graph, &request).map_err(|e| format!("for {devices}: {e}"))?;
    carry_out_on(planned, &request)
}

/// Returns a capture's graph, and its programs with divided experts; `None` without experts.
pub(crate) fn divided_experts(
    path: &Path,
    devices: usize,
) -> Option<(Verified<stage::Model>, Verified<stage::Programs>)> {
    let captured = read(&text(path), &stem(path)).unwrap_or_else(|e| panic!("{e}"));
    let whole = Whole::new(captured).ok()?;
    let made = forced::by_number(&whole, devices).ok()?;
    Some((whole.graph, made.programs))
}

fn carry_out(planned: PlannedGraph, devices: usize) -> Result<Divided, String> {
    let names = (0..devices).map(|i| format!("cpu:{i}")).collect();
    let workload = Workload::new(4096, 4096, 512, 1);
    carry_out_on(
        planned,
        &PlanRequest::new(Topology::default(), workload, names),
    )
}

fn carry_out_on(planned: PlannedGraph, request: &PlanRequest) -> Result<Divided, String> {
    let p = &planned;
    let devices = request.devices.len();
    let eager = shard(&p.graph, &p.factors, &p.analysis, &p.choice)
        .map_err(|e| format!("shard for {devices}: {e}"))?;
    let eager = Verified::new(eager).map_err(|e| format!("for {devices}: {e}"))?;
    let sharded = super::support::rewritten(&eager, request).graph;
    let sharded = Verified::new(sharded).map_err(|e| format!("rewritten for {devices}: {e}"))?;
    let programs = canonicalise(lower(&sharded).map_err(|e| format!("lower for {devices}: {e}"))?);
    let programs = Verified::new(programs).map_err(|e| format!("for {devices}: {e}"))?;
    Ok(Divided {
        planned,
        sharded,
        programs,
    })
}

/// Returns the graph with exact caches and masks, because f16 rounding may amplify a difference in the last bit.
fn exact(graph: Verified<stage::Model>) -> Verified<stage::Model> {
    let mut graph = graph.into_graph();
    let values: Vec<_> = graph.values().map(|(v, _)| v).collect();
    for v in values {
        let ty = &mut graph.value_mut(v).ty;
        if ty.dtype == DType::F16 {
            ty.dtype = DType::F32;
        }
    }
    verified(graph)
}

/// Returns random numbers from −1 to 1, equal for equal names.
fn noise(name: &str) -> impl FnMut() -> f64 {
    let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
    let mut rng = super::random::Rng::new(seed);
    move || rng.real()
}

pub(crate) fn random_weights(graph: &Graph) -> MemoryWeights {
    let mut out = MemoryWeights::new();
    for (_, data) in graph.insts() {
        let Op::Weight(w) = &data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        let constant = |d: &Dim| d.as_const().expect("weights have constant sizes");
        let ne = ty.dims.each_ref().map(constant);
        assert_eq!(ty.dtype, DType::F32, "captures have f32 weights");
        // Scale weights so that a product keeps its input's magnitude.
        let scale = if ne[1] > 1 {
            (3.0 / ne[0] as f64).sqrt()
        } else {
            1.0
        };
        let mut next = noise(&w.tensor);
        let n = ne.iter().product();
        let values: Vec<f32> = (0..n).map(|_| (next() * scale) as f32).collect();
        out.insert_f32(w.tensor.clone(), ne, &values);
    }
    out
}

fn named(kind: &InputKind) -> &str {
    match kind {
        InputKind::Other(name) => name,
        other => panic!("captures name their inputs, this is {other:?}"),
    }
}

fn sizes(ty: &TensorType, bindings: &Bindings) -> [usize; 4] {
    let size = |d: &Dim| d.eval(bindings).expect("small") as usize;
    ty.dims.each_ref().map(size)
}

/// Rows of every axis that an index counts, except the one cell of recurrent states.
const ROWS: usize = 8;

/// Returns the named outputs of two batches. The second batch reads the first one's states. Indices are below `rows`.
pub(crate) fn run_at_random<S: Executable>(
    graph: &Verified<S>,
    weights: &MemoryWeights,
    batch: &[(Symbol, u64)],
    rows: usize,
) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let bind = |b: Bindings, &(s, n): &(Symbol, u64)| b.with(s, n);
    let bindings = batch.iter().fold(Bindings::default(), bind);
    let cells = [Symbol::NKv, Symbol::NCtx, Symbol::NKvSwa, Symbol::NCtxSwa].map(Dim::symbol);
    let mut interpreter =
        Interpreter::new(graph, weights, Options::default()).map_err(|e| format!("load: {e}"))?;
    let mut out = BTreeMap::new();
    for turn in 0..2 {
        let mut inputs = |kind: &InputKind, ty: &TensorType| {
            let dims = sizes(ty, &bindings);
            let n: usize = dims.iter().product();
            if ty.dtype.is_integer() {
                let at = |i: usize| if turn == 0 { i } else { n - 1 - i };
                Tensor::ints_of(dims, (0..n).map(|i| (at(i) % rows) as i64).collect())
            } else if cells.contains(&ty.dims[0]) {
                Tensor::reals_of(dims, vec![0.0; n])
            } else {
                let mut next = noise(named(kind));
                Tensor::reals_of(dims, (0..n).map(|_| next()).collect())
            }
        };
        let made = interpreter
            .run(&bindings, &mut inputs)
            .map_err(|e| format!("run: {e}"))?;
        for (name, tensor) in made {
            let values = tensor.reals().map_err(|e| e.to_string())?.to_vec();
            out.insert(format!("{name} of batch {turn}"), values);
        }
    }
    Ok(out)
}

/// A captured graph without rounding, with random weights and outputs.
struct Whole {
    graph: Verified<stage::Model>,
    batch: Vec<(Symbol, u64)>,
    weights: MemoryWeights,
    answers: BTreeMap<String, Vec<f64>>,
}

impl Whole {
    fn new(captured: CapturedGraph) -> Result<Whole, String> {
        let graph = exact(captured.graph);
        let weights = random_weights(&graph);
        let answers = run_at_random(&graph, &weights, &captured.batch, ROWS)?;
        for (name, answer) in &answers {
            let size: f64 = answer.iter().map(|x| x * x).sum();
            if !size.is_normal() {
                return Err(format!("{name} has the size {size}"));
            }
        }
        Ok(Whole {
            graph,
            batch: captured.batch,
            weights,
            answers,
        })
    }

    fn compare(&self, programs: &Verified<stage::Programs>) -> Result<(), String> {
        super::support::proved(&self.graph, programs)?;
        let parts = run_at_random(programs, &self.weights, &self.batch, ROWS)?;
        for (name, expected) in &self.answers {
            let d = distance(expected.iter().copied(), parts[name].iter().copied());
            if d.nmse > AGAINST_WHOLE {
                return Err(format!("{name}: NMSE {:e}", d.nmse));
            }
        }
        Ok(())
    }
}
