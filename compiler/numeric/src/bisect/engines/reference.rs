//! The reference executor as an engine.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tpc_ggml::capture::{Record, Role, read_computed};
use tpc_ggml::op::GgmlOp;
use tpc_ir::op::InputKind;
use tpc_ir::{Bindings, TensorType, Value};
use tpc_runtime::{ExecError, Interpreter, MemoryWeights, Tensor, knows};

use super::leaves::decoded;
use super::{Engine, EngineError, Memory};
use crate::bisect::reduce::{number_in, with_result};
use crate::bisect::run::RunError;
use crate::feed::WITH_STAND_INS;

/// The reference executor, in 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Engine for Reference {
    fn run(
        &mut self,
        graph: &[Record],
        leaves: &BTreeMap<usize, Vec<u8>>,
        wanted: usize,
    ) -> Result<Memory, EngineError> {
        if let Some(t) = graph.iter().find(|t| !is_known(t)) {
            let name = t.op.name();
            return Err(EngineError::Unsupported(format!(
                "tpc does not know the op {name}"
            )));
        }
        let numbers =
            run(graph, leaves, wanted).map_err(|e| EngineError::Unsupported(e.to_string()))?;
        match numbers {
            Some(numbers) => Ok(Memory::Numbers(numbers)),
            None => Err(EngineError::Unsupported(
                "the reference executor did not compute the result".to_owned(),
            )),
        }
    }
}

fn is_known(t: &Record) -> bool {
    match &t.op {
        GgmlOp::Unknown(_) => knows(&t.op.name().to_lowercase()),
        GgmlOp::Malformed(..) => false,
        _ => true,
    }
}

fn run(
    graph: &[Record],
    leaves: &BTreeMap<usize, Vec<u8>>,
    wanted: usize,
) -> Result<Option<Vec<f64>>, RunError> {
    let mut records = graph.to_vec();
    with_result(&mut records);
    let (captured, computed) = read_computed(&records, "op")?;
    let mut weights = MemoryWeights::new();
    for leaf in captured.leaves.iter().filter(|l| l.role == Role::Weight) {
        if let Some(bytes) = leaves.get(&leaf.record) {
            let t = &graph[leaf.record];
            weights.insert(leaf.name.clone(), t.dtype, leaf.ne, bytes.clone());
        }
    }
    let by_number: BTreeMap<u32, usize> = (leaves.keys())
        .filter_map(|&i| Some((number_in(&graph[i].name)?, i)))
        .collect();
    let mut inputs = |kind: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
        let leaf = match kind {
            InputKind::Other(name) => number_in(name).and_then(|n| by_number.get(&n)),
            _ => None,
        };
        input(ty, leaf.map(|&i| (&graph[i], leaves[&i].as_slice())))
    };
    let made = computed.iter().find(|c| c.record == wanted);
    let parts = made.map_or(&[][..], |c| &c.memory);
    let kept: RefCell<BTreeMap<Value, Vec<f64>>> = RefCell::default();
    let mut observe = |v: Value, t: &Tensor| {
        if parts.contains(&v) {
            let numbers = match t.ints() {
                Ok(ints) => ints.iter().map(|&x| x as f64).collect(),
                Err(_) => t.reals().map(|x| x.to_vec()).unwrap_or_default(),
            };
            kept.borrow_mut().insert(v, numbers);
        }
    };
    let mut interpreter = Interpreter::new(&captured.graph, &weights, WITH_STAND_INS)?;
    interpreter.run_observed(&Bindings::default(), &mut inputs, &mut observe)?;
    let kept = kept.into_inner();
    let all: Option<Vec<&Vec<f64>>> = parts.iter().map(|v| kept.get(v)).collect();
    Ok(all
        .filter(|all| !all.is_empty())
        .map(|all| all.into_iter().flatten().copied().collect()))
}

fn input(ty: &TensorType, leaf: Option<(&Record, &[u8])>) -> Result<Tensor, ExecError> {
    let mut dims = [1; 4];
    for (n, d) in dims.iter_mut().zip(&ty.dims) {
        let size = d.as_const().and_then(|n| usize::try_from(n).ok());
        *n = size.ok_or_else(|| ExecError::Size {
            what: format!("of an input {ty}"),
        })?;
    }
    let data = match leaf {
        Some((t, bytes)) => decoded(t.dtype, bytes).map_err(|what| ExecError::Size { what })?,
        // The op that `with_result` adds.
        None => vec![1.0; dims.iter().product()],
    };
    match ty.dtype.is_integer() {
        true => Tensor::ints_of(dims, data.iter().map(|&x| x as i64).collect()),
        false => Tensor::reals_of(dims, data),
    }
}
