//! Runs a part of a graph.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use tpc_ggml::capture::{CaptureError, Computed, read_computed};
use tpc_ir::op::InputKind;
use tpc_ir::{Bindings, TensorType, Value};
use tpc_runtime::{ExecError, Interpreter, MemoryWeights, Tensor, WeightData, WeightSource};

use super::classes::Class;
use super::content::{Contents, elements};
use super::reduce::{Part, number_in, with_result};
use crate::feed::WITH_STAND_INS;
use crate::weights;

/// The contents of memory, by number.
pub(super) type Memory = BTreeMap<Class, Rc<[f64]>>;

/// The reason why the run left out a part.
#[derive(Debug)]
pub(super) enum RunError {
    Capture(CaptureError),
    Exec(ExecError),
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunError::Capture(e) => e.fmt(f),
            RunError::Exec(e) => e.fmt(f),
        }
    }
}

impl From<CaptureError> for RunError {
    fn from(e: CaptureError) -> RunError {
        RunError::Capture(e)
    }
}

impl From<ExecError> for RunError {
    fn from(e: ExecError) -> RunError {
        RunError::Exec(e)
    }
}

/// Weights of the first part, else of the second, so that both parts have the same.
struct Shared<'a>(&'a [MemoryWeights]);

impl WeightSource for Shared<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let mut last = Err(ExecError::MissingWeight {
            tensor: tensor.to_owned(),
        });
        // A weight with a second record has the number of a line in its name.
        let stem = tensor.split('#').next().unwrap_or(tensor);
        for source in self.0 {
            last = source.weight(tensor).or_else(|_| source.weight(stem));
            if last.is_ok() {
                break;
            }
        }
        last
    }
}

/// Runs two parts on the same leaves. Returns the contents of memory in each.
pub(super) fn run(parts: [&Part; 2], contents: &Contents) -> Result<[Memory; 2], RunError> {
    let mut graphs = Vec::new();
    let mut weights = Vec::new();
    for part in parts {
        let mut records = part.records.clone();
        with_result(&mut records);
        let (captured, computed) = read_computed(&records, "part")?;
        weights.push(weights::random(&captured.graph)?);
        graphs.push((captured, computed));
    }
    let mut out = [Memory::new(), Memory::new()];
    for ((memory, part), (captured, computed)) in out.iter_mut().zip(parts).zip(&graphs) {
        let wanted = Wanted::new(part, computed);
        let mut inputs = |kind: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
            input(kind, ty, contents)
        };
        let mut observe = |v: Value, t: &Tensor| wanted.keep(v, t);
        let source = Shared(&weights);
        let mut interpreter = Interpreter::new(&captured.graph, &source, WITH_STAND_INS)?;
        interpreter.run_observed(&Bindings::default(), &mut inputs, &mut observe)?;
        *memory = wanted.memory();
    }
    Ok(out)
}

fn input(kind: &InputKind, ty: &TensorType, contents: &Contents) -> Result<Tensor, ExecError> {
    let mut dims = [1; 4];
    for (n, d) in dims.iter_mut().zip(&ty.dims) {
        let size = d.as_const().and_then(|n| usize::try_from(n).ok());
        *n = size.ok_or_else(|| ExecError::Size {
            what: format!("of an input {ty}"),
        })?;
    }
    let n = dims.iter().product();
    let named = match kind {
        InputKind::Other(name) => number_in(name),
        _ => None,
    };
    let data = match named {
        Some(leaf) => elements(leaf, contents.of(leaf), n, dims[0]),
        None => vec![1.0; n],
    };
    match ty.dtype.is_integer() {
        true => Tensor::ints_of(dims, data.iter().map(|&x| x as i64).collect()),
        false => Tensor::reals_of(dims, data),
    }
}

/// The values that make up memory, collected while a graph runs.
struct Wanted<'a> {
    part: &'a Part,
    computed: &'a [Computed],
    values: RefCell<BTreeMap<Value, Option<Rc<[f64]>>>>,
}

impl<'a> Wanted<'a> {
    fn new(part: &'a Part, computed: &'a [Computed]) -> Wanted<'a> {
        let all = computed.iter().flat_map(|c| &c.memory);
        Wanted {
            part,
            computed,
            values: RefCell::new(all.map(|&v| (v, None)).collect()),
        }
    }

    fn keep(&self, v: Value, t: &Tensor) {
        if let Some(place) = self.values.borrow_mut().get_mut(&v) {
            let numbers = match t.ints() {
                Ok(ints) => Some(ints.iter().map(|&x| x as f64).collect()),
                Err(_) => t.reals().ok().map(|x| x.iter().copied().collect()),
            };
            *place = numbers;
        }
    }

    fn memory(&self) -> Memory {
        let values = self.values.borrow();
        let mut out = Memory::new();
        for made in self.computed {
            let Some(&class) = self.part.makes.get(&made.record) else {
                continue;
            };
            let parts: Option<Vec<&Rc<[f64]>>> = made
                .memory
                .iter()
                .map(|v| values.get(v).and_then(Option::as_ref))
                .collect();
            let content = match parts.as_deref() {
                Some([one]) => Rc::clone(one),
                Some(several) => several.iter().flat_map(|p| p.iter().copied()).collect(),
                None => continue,
            };
            out.insert(class, content);
        }
        out
    }
}
