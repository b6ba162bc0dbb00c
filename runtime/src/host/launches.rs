use tpc_ir::program::{Program, Work};
use tpc_ir::{Bindings, Launch, Op, Output, Value};

use crate::error::ExecError;

/// Returns the op, operands and results of a launch of one instruction.
///
/// # Errors
/// Returns an error if the launch covers several instructions, or does not store a state.
pub fn launch_op(
    program: &Program,
    launch: Launch,
) -> Result<(Op, Vec<Value>, Vec<Value>), ExecError> {
    let graph = &program.graph;
    let inst = match &program.launch(launch).work {
        Work::Store(n) => {
            return match &graph.outputs[*n] {
                Output::State { state, value } => {
                    Ok((Op::Copy(tpc_ir::op::Copy), vec![*value], vec![*state]))
                }
                Output::Named(..) => Err(malformed("it does not store a state")),
            };
        }
        Work::Compute(insts) => match insts.as_slice() {
            [inst] => inst,
            _ => return Err(malformed("it covers several instructions")),
        },
        Work::Transfer(inst) => inst,
    };
    let inst = graph.inst(*inst);
    Ok((inst.op.clone(), inst.operands.clone(), inst.results.clone()))
}

/// Returns the first op of a launch, the operands that the launch does not compute, and the results of its
/// instructions.
///
/// # Errors
/// Returns an error if the launch covers no instruction, or does not store a state.
pub fn launch_values(
    program: &Program,
    launch: Launch,
) -> Result<(Op, Vec<Value>, Vec<Value>), ExecError> {
    let graph = &program.graph;
    let (first, insts) = match program.launch(launch).covered_insts() {
        [] | [_] => return launch_op(program, launch),
        insts => (graph.inst(insts[0]), insts),
    };
    let all = || insts.iter().map(|i| graph.inst(*i));
    let inside = |v: &&Value| insts.contains(&graph.value(**v).def.0);
    let operands = all().flat_map(|i| &i.operands).filter(|v| !inside(v));
    let results = all().flat_map(|i| &i.results);
    Ok((
        first.op.clone(),
        operands.copied().collect(),
        results.copied().collect(),
    ))
}

/// Returns a value's maximum sizes for batches up to these sizes.
///
/// # Errors
/// Returns [`ExecError::Size`] for an unbounded size.
pub fn max_sizes(
    program: &Program,
    value: Value,
    bounds: &Bindings,
) -> Result<[usize; 4], ExecError> {
    let mut out = [0; 4];
    for (out, dim) in out.iter_mut().zip(&program.graph.value(value).ty.dims) {
        let bound = dim
            .upper_bound(bounds)
            .and_then(|n| usize::try_from(n).ok());
        *out = bound.ok_or_else(|| ExecError::Size {
            what: format!("of {value}"),
        })?;
    }
    Ok(out)
}

/// Returns a launch's name for diagnostics: `l7 mul_mat (v12)`.
pub fn launch_label(program: &Program, launch: Launch) -> String {
    let data = program.launch(launch);
    let first = data
        .covered_insts()
        .first()
        .map(|i| program.graph.inst(*i).results[0]);
    match first {
        Some(v) => format!(
            "{launch} {} ({v} {})",
            data.kernel,
            program.graph.value(v).name
        ),
        None => format!("{launch} {}", data.kernel),
    }
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
