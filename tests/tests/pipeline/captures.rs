//! Captured graphs of a widely used engine: read back, planned, and run whole and split, with random weights and with
//! those of golden models.
//!
//! Nothing but the golden tests' inputs knows a name, and nothing an architecture: what a capture says of memory is all
//! there is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tpc::capture::{self, Captured};
use tpc::gguf::GgufFile;
use tpc::golden::{Golden, distance};
use tpc_ir::op::{InputKind, Op};
use tpc_ir::verify::verify;
use tpc_ir::{Bindings, DType, Dim, Graph, Output, Symbol, TensorType};
use tpc_passes::factors::Factors;
use tpc_passes::lower::lower;
use tpc_passes::plan::{PlanRequest, Topology, Workload, plan};
use tpc_passes::shard::shard;
use tpc_runtime::reference::{Interpreter, MemoryWeights, Options, Tensor};
use tpc_runtime::{ExecError, WeightData, WeightSource};

use super::support;

/// The numbers of devices that every capture is planned for.
const DEVICES: [usize; 5] = [2, 3, 4, 5, 8];

/// The most that the split programs may differ from the whole graph: both compute in f64.
const AGAINST_WHOLE: f64 = 1e-10;

/// The most that the whole graph and the split programs may differ from the engine's exact logits.
const AGAINST_GOLDEN: f64 = 1e-8;

/// Captures that cannot be planned or run, with the reason.
const FAILING: &[(&str, &str)] = &[];

fn stem(path: &Path) -> String {
    path.file_stem()
        .expect("a file name")
        .to_string_lossy()
        .into_owned()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a capture, of which nothing is worth a note.
fn read(text: &str, name: &str) -> Result<Captured, String> {
    let captured = capture::read(text, name).map_err(|e| format!("read: {e}"))?;
    match captured.notes.first() {
        None => Ok(captured),
        Some(note) => Err(format!("note {}: {note}", note.code)),
    }
}

/// The graph is valid, and its factors are inferred without cutting any.
fn infer(graph: &Graph) -> Result<(), String> {
    verify(graph).map_err(|e| format!("verify: {}", e[0]))?;
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

/// The verified sharded graph and programs of so many devices.
fn divide(graph: &Graph, devices: usize) -> Result<(Graph, Graph), String> {
    let names: Vec<String> = (0..devices).map(|i| format!("cpu:{i}")).collect();
    let workload = Workload::new(4096, 4096, 512, 1);
    let request = PlanRequest::new(Topology::default(), workload, names);
    let p = plan(graph, &request);
    let sharded = shard(&p.graph, &p.factors, &p.analysis, &p.users, &p.choice)
        .map_err(|e| format!("shard for {devices}: {e}"))?;
    verify(&sharded).map_err(|e| format!("sharded for {devices}: {}", e[0]))?;
    let programs = lower(&sharded).map_err(|e| format!("lower for {devices}: {e}"))?;
    verify(&programs).map_err(|e| format!("programs for {devices}: {}", e[0]))?;
    Ok((sharded, programs))
}

/// The share of the elements of weights that is in split tensors.
fn split_share(sharded: &Graph) -> f64 {
    let (mut split, mut all) = (0.0, 0.0);
    for (_, data) in sharded.insts() {
        let Op::Weight(_) = data.op else { continue };
        let v = sharded.value(data.results[0]);
        let n =
            v.ty.elements()
                .and_then(|d| d.as_const())
                .expect("constant") as f64;
        all += n;
        split += if v.sharding.is_split() { n } else { 0.0 };
    }
    split / all
}

/// The graph with exact caches and masks: rounding to f16 may turn a difference of the last bit into one of f16's.
fn exact(mut graph: Graph) -> Graph {
    let values: Vec<_> = graph.values().map(|(v, _)| v).collect();
    for v in values {
        let ty = &mut graph.value_mut(v).ty;
        if ty.dtype == DType::F16 {
            ty.dtype = DType::F32;
        }
    }
    graph
}

/// Numbers from −1 to 1, the same for the same name.
fn noise(name: &str) -> impl FnMut() -> f64 {
    let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
    let mut rng = super::random::Rng::new(seed);
    move || rng.real()
}

/// Random weights for a graph.
fn random_weights(graph: &Graph) -> MemoryWeights {
    let mut out = MemoryWeights::new();
    for (_, data) in graph.insts() {
        let Op::Weight(w) = &data.op else { continue };
        let ty = &graph.value(data.results[0]).ty;
        let constant = |d: &Dim| d.as_const().expect("weights have constant sizes");
        let ne = ty.dims.each_ref().map(constant);
        assert_eq!(ty.dtype, DType::F32, "captures have f32 weights");
        // Matrices keep the size of what they multiply.
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

/// The named outputs of two batches, of which the second sees the states that the first left.
fn run_at_random(
    graph: &Graph,
    weights: &MemoryWeights,
    batch: &[(Symbol, u64)],
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
                // Eight tokens, and nothing that an index counts along has fewer but the one cell of recurrent states.
                let at = |i: usize| if turn == 0 { i } else { n - 1 - i };
                Tensor::ints_of(dims, (0..n).map(|i| (at(i) % 8) as i64).collect())
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

/// Reads, plans for every number of devices, runs all forms and compares.
fn check(path: &Path) -> Result<(), String> {
    let captured = read(&text(path), &stem(path))?;
    infer(&captured.graph)?;
    if captured.n_layer < 2 {
        return Err(format!("{} layers", captured.n_layer));
    }
    let graph = exact(captured.graph);
    support::round_trip(&graph);
    let weights = random_weights(&graph);
    let whole = run_at_random(&graph, &weights, &captured.batch)?;
    for devices in DEVICES {
        let (sharded, programs) = divide(&graph, devices)?;
        let share = split_share(&sharded);
        if share < 0.6 {
            return Err(format!(
                "{share:.3} of the weights are split over {devices}"
            ));
        }
        let parts = run_at_random(&programs, &weights, &captured.batch)
            .map_err(|e| format!("{devices} devices: {e}"))?;
        for (name, expected) in &whole {
            let size: f64 = expected.iter().map(|x| x * x).sum();
            if !size.is_normal() {
                return Err(format!("{name} has the size {size}"));
            }
            let d = distance(expected.iter().copied(), parts[name].iter().copied());
            if d.nmse > AGAINST_WHOLE {
                return Err(format!("{name} on {devices}: NMSE {:e}", d.nmse));
            }
        }
    }
    Ok(())
}

#[test]
fn captures_are_planned_and_run_split_as_whole() {
    let found = tpc_tests::captures();
    assert!(found.len() >= 6, "the repository has some");
    for path in found {
        let known = FAILING.iter().find(|(name, _)| *name == stem(&path));
        match (check(&path), known) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Err(e), None) => panic!("{}: {e}", stem(&path)),
            (Ok(()), Some((name, why))) => panic!("{name} works now: it was said that {why}"),
        }
    }
}

/// The capture with every tensor under another name and no input marked as such.
fn anonymous(text: &str) -> String {
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        let mut record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        record["name"] = format!("t{i}").into();
        record["flags"] = (record["flags"].as_u64().expect("a number") & !1).into();
        out.push_str(&record.to_string());
        out.push('\n');
    }
    out
}

/// Everything about a graph but names.
fn form(graph: &Graph) -> impl PartialEq {
    let insts: Vec<_> = graph
        .insts()
        .map(|(_, i)| (i.op.name(), i.operands.clone(), i.results.clone(), i.layer))
        .collect();
    let values: Vec<_> = graph
        .values()
        .map(|(_, v)| (v.ty.clone(), v.place, v.sharding.clone()))
        .collect();
    let classes: Vec<_> = graph
        .classes
        .iter()
        .map(|c| (c.size, c.ranges.clone()))
        .collect();
    let outputs: Vec<_> = graph.outputs.iter().map(Output::value).collect();
    (insts, values, classes, outputs)
}

#[test]
fn names_and_marks_of_inputs_decide_nothing() {
    for path in tpc_tests::captures() {
        let name = stem(&path);
        let text = text(&path);
        let plan = |text: &str| {
            let captured = read(text, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
            divide(&captured.graph, 3).unwrap_or_else(|e| panic!("{name}: {e}"))
        };
        let (sharded, programs) = plan(&text);
        let (other_sharded, other_programs) = plan(&anonymous(&text));
        assert!(form(&sharded) == form(&other_sharded), "{name}");
        assert!(form(&programs) == form(&other_programs), "{name}");
    }
}

/// A golden model, and how the engine fills the inputs of its graph: the tests' only use of names.
struct Engine {
    file: GgufFile,
    golden: Golden,
    /// Tokens that layers with a window see, and whether the first mask is of such layers.
    window: Option<(usize, bool)>,
    /// Whether masks hold distances, for slopes per head, and not 0.
    slopes: bool,
    masks: Vec<String>,
}

/// The name of a tensor without what tells it from others of that name.
fn plain(name: &str) -> &str {
    name.split_once('#').map_or(name, |(n, _)| n)
}

impl WeightSource for Engine {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let name = self.tensor(tensor);
        let found = self.file.header().tensor(name);
        let info = found.ok_or_else(|| ExecError::MissingWeight {
            tensor: name.to_owned(),
        })?;
        Ok(WeightData {
            dtype: info.dtype,
            ne: info.ne,
            bytes: self.file.tensor_data(info).expect("the file has data"),
        })
    }
}

impl Engine {
    fn new(model: &Path, graph: &Graph) -> Engine {
        let file = GgufFile::open(model).unwrap_or_else(|e| panic!("{e}"));
        let metadata = file.header().metadata();
        let arch = metadata.get_str("general.architecture").expect("text");
        let window = format!("{}.attention.sliding_window", arch.unwrap_or_default());
        let window = metadata.get_u64(&window).expect("a number").unwrap_or(0);
        let input = |op: &Op| match op {
            Op::Input(i) => Some(plain(named(&i.kind)).to_owned()),
            _ => None,
        };
        let inputs = graph.insts().filter_map(|(_, d)| input(&d.op));
        let masks = inputs.filter(|n| n == "attn_inp_kq_mask").count();
        let slopes =
            |(_, d): (_, &tpc_ir::InstData)| matches!(&d.op, Op::FlashAttn(f) if f.max_bias > 0.0);
        Engine {
            golden: support::golden(model),
            // In the first layer of mimo2 nothing has a window, in that of all others.
            window: (masks > 1).then_some((window as usize, arch != Some("mimo2"))),
            slopes: graph.insts().any(slopes),
            masks: Vec::new(),
            file,
        }
    }

    /// The name in the file: the captures were made for a longer context than the logits.
    fn tensor<'n>(&self, name: &'n str) -> &'n str {
        match plain(name) {
            "rope_factors_long.weight" => "rope_factors_short.weight",
            name => name,
        }
    }

    fn dtype(&self, name: &str) -> DType {
        let tensor = self.file.header().tensor(self.tensor(name));
        tensor
            .unwrap_or_else(|| panic!("{name} is not in the model"))
            .dtype
    }

    fn input(&mut self, name: &str, dims: [usize; 4]) -> Result<Tensor, ExecError> {
        let (n, t) = (dims.iter().product(), self.golden.tokens.len());
        let ints = |f: &dyn Fn(usize) -> i64| Tensor::ints_of(dims, (0..n).map(f).collect());
        match plain(name) {
            "inp_tokens" => ints(&|i| i64::from(self.golden.tokens[i])),
            // Text has one position in time, height and width, and none in the last.
            "inp_pos" => ints(&|i| if i < 3 * t { (i % t) as i64 } else { 0 }),
            "rs_s_copy" => ints(&|_| 0),
            "inp_attn_scale" => Tensor::reals_of(dims, vec![1.0; n]),
            "attn_inp_kq_mask" => self.mask(name, dims),
            // Each token has the cell and the output of its number.
            _ => ints(&|i| i as i64),
        }
    }

    fn mask(&mut self, name: &str, dims: [usize; 4]) -> Result<Tensor, ExecError> {
        if !self.masks.iter().any(|m| m == name) {
            self.masks.push(name.to_owned());
        }
        let is_first = self.masks[0] == name;
        let window = match self.window {
            Some((window, first)) if is_first == first => window,
            _ => usize::MAX,
        };
        let value = |token: usize, cell: usize| match token.checked_sub(cell) {
            Some(distance) if distance < window && self.slopes => -(distance as f64),
            Some(distance) if distance < window => 0.0,
            _ => f64::NEG_INFINITY,
        };
        let row = |token| (0..dims[0]).map(move |cell| value(token, cell));
        Tensor::reals_of(dims, (0..dims[1]).flat_map(row).collect())
    }

    /// The NMSE of what a graph answers against the engine's exact logits.
    fn compare(&mut self, graph: &Graph) -> f64 {
        let n = self.golden.tokens.len() as u64;
        let counts = Symbol::ALL.into_iter().filter(|&s| s != Symbol::NSeqs);
        let bindings = counts.fold(Bindings::default(), |b, s| b.with(s, n));
        let mut interpreter = Interpreter::new(graph, self, Options::default())
            .unwrap_or_else(|e| panic!("{}: {e}", graph.name));
        let mut inputs =
            |kind: &InputKind, ty: &TensorType| self.input(named(kind), sizes(ty, &bindings));
        let made = interpreter
            .run(&bindings, &mut inputs)
            .unwrap_or_else(|e| panic!("{}: {e}", graph.name));
        let logits = made["result_output"].reals().expect("logits are real");
        let want = self.golden.logits.iter().map(|&x| f64::from(x));
        distance(want, logits.iter().copied()).nmse
    }
}

/// The golden model of a capture's name.
fn golden_of(capture: &Path) -> Option<PathBuf> {
    let prefix = format!("{}-", stem(capture));
    let mut models = tpc_tests::goldens().into_iter();
    models.find(|m| stem(m).starts_with(&prefix))
}

/// The graph of a capture with the types of the model's tensors.
fn quantised(text: &str, model: &Path) -> (Graph, Engine) {
    let captured = read(text, &stem(model)).unwrap_or_else(|e| panic!("{}: {e}", stem(model)));
    let mut graph = exact(captured.graph);
    let engine = Engine::new(model, &graph);
    let weights = graph.insts().filter_map(|(_, d)| match &d.op {
        Op::Weight(w) => Some((d.results[0], engine.dtype(&w.tensor))),
        _ => None,
    });
    for (v, dtype) in weights.collect::<Vec<_>>() {
        graph.value_mut(v).ty.dtype = dtype;
    }
    (graph, engine)
}

#[test]
fn captures_agree_with_golden_logits_on_any_number_of_devices() {
    let mut compared = 0;
    for path in tpc_tests::captures() {
        let Some(model) = golden_of(&path) else {
            continue;
        };
        let (graph, mut engine) = quantised(&text(&path), &model);
        infer(&graph).unwrap_or_else(|e| panic!("{}: {e}", graph.name));
        let nmse = engine.compare(&graph);
        assert!(nmse <= AGAINST_GOLDEN, "{}: NMSE {nmse:e}", graph.name);
        for devices in DEVICES {
            let (_, programs) =
                divide(&graph, devices).unwrap_or_else(|e| panic!("{}: {e}", graph.name));
            let nmse = engine.compare(&programs);
            let name = &graph.name;
            assert!(nmse <= AGAINST_GOLDEN, "{name} on {devices}: NMSE {nmse:e}");
        }
        compared += 1;
    }
    assert!(compared >= 3, "the repository has golden models of some");
}

#[test]
fn a_misread_capture_is_noticed() {
    let path = tpc_tests::data().join("graphs/llama-dense.jsonl");
    let model = golden_of(&path).expect("in the repository");
    let good = text(&path);
    for (from, to) in [
        ("\"SWIGLU\"", "\"GEGLU\""),
        // Attention looks for its keys among the values.
        ("\"src\":[35],\"view\":27", "\"src\":[35],\"view\":31"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        let (graph, mut engine) = quantised(&bad, &model);
        let nmse = engine.compare(&graph);
        assert!(nmse > 1e-3, "{from}: NMSE {nmse:e}");
    }
}
