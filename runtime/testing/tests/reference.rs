//! Runs the suite on the reference's interpreter: a graph with one op must give the op's results.

use tpc_ir::op::{InferredTypes, Input, InputKind};
use tpc_ir::{Bindings, DType, Dim, Graph, Output, Place, TensorType, Value, Verified, stage};
use tpc_op_cases::suite::{self, ExecutorUnderTest, Factory, Failure};
use tpc_op_cases::{Case, Stored};
use tpc_runtime::{ExecError, Interpreter, MemoryWeights, Tensor};

const REFERENCE: Factory = Factory {
    executor: "reference",
    cases: 20,
    build: || vec![Box::new(Graphs)],
};

/// Runs each case as its own graph.
struct Graphs;

fn declared(dtype: DType, dims: [usize; 4]) -> TensorType {
    TensorType::new(dtype, dims.map(|n| Dim::constant(n as u64)))
}

/// Builds a graph whose inputs are the operands, named by index. Inputs are i64 or f32, the reference's types for
/// inference; the destination of an update keeps its type.
fn graph(case: &Case) -> Result<Graph, Failure> {
    let mut graph = Graph::new("case");
    let mut types = Vec::new();
    let mut operands: Vec<Value> = Vec::new();
    for (i, operand) in case.operands.iter().enumerate() {
        let dtype = match operand.dtype {
            kept if i == 0 && case.op.is_update() => kept,
            int if int.is_integer() => DType::I64,
            _ => DType::F32,
        };
        let kind = InputKind::Other(i.to_string());
        types.push(declared(dtype, operand.dims));
        let inst = graph.push(
            Input { kind },
            vec![],
            vec![types[i].clone()],
            Place::Host,
            None,
        );
        operands.push(graph.inst(inst).results[0]);
    }
    let inferred = match case.op.infer(&types.iter().collect::<Vec<_>>()) {
        Ok(InferredTypes::Types(types)) => types.iter().map(|t| t.dtype).collect(),
        Ok(InferredTypes::Declared) => case.results.iter().map(|r| r.0).collect::<Vec<_>>(),
        Err(e) => return Err(Failure::Other(e.to_string())),
    };
    let results = inferred.into_iter().zip(&case.results);
    let results = results.map(|(dtype, result)| declared(dtype, result.1));
    let inst = graph.push(
        case.op.clone(),
        operands,
        results.collect(),
        Place::Host,
        None,
    );
    for (i, value) in graph.inst(inst).results.clone().into_iter().enumerate() {
        graph.outputs.push(Output::Named(i.to_string(), value));
    }
    Ok(graph)
}

impl ExecutorUnderTest for Graphs {
    fn run(
        &mut self,
        case: &Case,
        operands: &mut [Stored],
        results: &mut [Stored],
        in_place: Option<(usize, usize)>,
    ) -> Result<(), Failure> {
        let graph = Verified::<stage::Model>::new(graph(case)?);
        let graph = graph.map_err(|e| Failure::Shape(format!("{e:?}")))?;
        let mut interpreter = Interpreter::new(&graph, &MemoryWeights::new(), case.options)?;
        let tensors: Vec<Tensor> = operands.iter().map(Stored::tensor).collect();
        let mut inputs = |kind: &InputKind, _: &TensorType| match kind {
            InputKind::Other(name) => Ok(tensors[name.parse::<usize>().expect("a number")].clone()),
            _ => Err(ExecError::MissingInput {
                input: format!("{kind:?}"),
            }),
        };
        let outputs = interpreter.run(&Bindings::default(), &mut inputs)?;
        for (i, result) in results.iter_mut().enumerate() {
            let found = &outputs[&i.to_string()];
            match in_place {
                Some((operand, result)) if result == i => operands[operand].write(found.data()),
                _ => result.write(found.data()),
            }
        }
        Ok(())
    }

    /// Adds 0.05 for quantised results: encoding twice may move an element by one code.
    fn tolerance(&self, case: &Case) -> f64 {
        let blocks = case.results.iter().any(|r| r.0.block_len() > 1);
        case.tolerance + if blocks { 0.05 } else { 0.0 }
    }
}

#[test]
fn graphs_of_half_the_ops_agree_with_the_ops() {
    suite::agree(&REFERENCE, 0, 2);
}

#[test]
fn graphs_of_the_other_ops_agree_with_the_ops() {
    suite::agree(&REFERENCE, 1, 2);
}

#[test]
fn indices_out_of_range_are_errors() {
    suite::refuse_indices(&REFERENCE);
}

#[test]
fn results_that_do_not_fit_are_errors() {
    suite::refuse_misfits(&REFERENCE);
}
