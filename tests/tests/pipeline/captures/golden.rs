//! Captures with the weights of golden models compute the engine's exact logits, whole and split.
//!
//! Only the inputs depend on tensor names.

use crate::support::verified;
use std::path::{Path, PathBuf};
use tpc_ir::stage::Executable;

use tpc_core::golden::{Golden, distance};
use tpc_gguf::GgufFile;
use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Bindings, DType, Graph, Symbol, TensorType, Verified, stage};
use tpc_runtime::{ExecError, WeightData, WeightSource};
use tpc_runtime::{Interpreter, Options, Tensor};

use super::super::support;
use super::{DEVICES, divide, exact, infer, named, read, sizes, stem, text};

/// The maximum NMSE of the graph and of the split programs from the exact logits.
const AGAINST_GOLDEN: f64 = 1e-8;

/// A golden model, and the way the engine fills its graph's inputs.
struct Engine {
    file: GgufFile,
    golden: Golden,
    /// The number of tokens that window layers see; the flag is true if the first mask is for window layers.
    window: Option<(usize, bool)>,
    /// True if masks hold distances (for slopes per head) instead of 0.
    slopes: bool,
    masks: Vec<String>,
}

/// Removes the suffix after `#`, which distinguishes equal names.
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
            // Only mimo2's first layer has no window.
            window: (masks > 1).then_some((window as usize, arch != Some("mimo2"))),
            slopes: graph.insts().any(slopes),
            masks: Vec::new(),
            file,
        }
    }

    /// Returns the tensor's name in the file; the captures have a longer context than the logits.
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
            // Text positions have equal time, height and width; the fourth component is 0.
            "inp_pos" => ints(&|i| if i < 3 * t { (i % t) as i64 } else { 0 }),
            "rs_s_copy" => ints(&|_| 0),
            "inp_attn_scale" => Tensor::reals_of(dims, vec![1.0; n]),
            "attn_inp_kq_mask" => self.mask(name, dims),
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

    fn compare<S: Executable>(&mut self, graph: &Verified<S>) -> f64 {
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

fn golden_of(capture: &Path) -> Option<PathBuf> {
    let prefix = format!("{}-", stem(capture));
    let mut models = tpc_tests::goldens().into_iter();
    models.find(|m| stem(m).starts_with(&prefix))
}

fn quantised(text: &str, model: &Path) -> (Verified<stage::Model>, Engine) {
    let captured = read(text, &stem(model)).unwrap_or_else(|e| panic!("{}: {e}", stem(model)));
    let mut graph = exact(captured.graph).into_graph();
    let engine = Engine::new(model, &graph);
    let weights = graph.insts().filter_map(|(_, d)| match &d.op {
        Op::Weight(w) => Some((d.results[0], engine.dtype(&w.tensor))),
        _ => None,
    });
    for (v, dtype) in weights.collect::<Vec<_>>() {
        graph.value_mut(v).ty.dtype = dtype;
    }
    (verified(graph), engine)
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
            let divided = divide(&graph, devices).unwrap_or_else(|e| panic!("{}: {e}", graph.name));
            let nmse = engine.compare(&divided.programs);
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
    let activation = ("\"SWIGLU\"", "\"GEGLU\"");
    // Make attention look for its keys among the values.
    let view = ("\"src\":[27],\"view\":27", "\"src\":[31],\"view\":31");
    let turned = ("\"src\":[35],\"view\":27", "\"src\":[35],\"view\":31");
    for changes in [&[activation][..], &[view, turned]] {
        let changed = |text: String, &(from, to): &(&str, &str)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        };
        let bad = changes.iter().fold(good.clone(), changed);
        let (graph, mut engine) = quantised(&bad, &model);
        let nmse = engine.compare(&graph);
        assert!(nmse > 1e-3, "{changes:?}: NMSE {nmse:e}");
    }
    // A view whose source is another tensor is invalid.
    let torn = good.replacen(turned.0, turned.1, 1);
    let e = read(&torn, "torn").expect_err("two tensors");
    assert!(
        e.contains("src[0] 35: not the owner of the view's memory"),
        "{e}"
    );
}
