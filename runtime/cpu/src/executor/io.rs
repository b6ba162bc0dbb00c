//! Inputs and outputs.
#![allow(unsafe_code)]

use tpc_ir::op::{InputKind, Op};
use tpc_ir::program::Program;
use tpc_ir::{Bindings, DType, Output, Symbol, Value};
use tpc_runtime::{Data, ExecError, Tensor};

use crate::error::KernelError;
use crate::view::View;

/// The inputs, each with the phase at whose start it is known.
pub(super) fn inputs(program: &Program) -> Vec<(usize, Value, InputKind)> {
    let graph = &program.graph;
    let of = |value: Value| match graph.def_op(value) {
        Op::Input(input) => {
            let ahead = match input.kind {
                InputKind::NextTokens(n) => n,
                _ => 0,
            };
            let phase = program.phases.iter().position(|p| p.ahead == ahead)?;
            Some((phase, value, input.kind.clone()))
        }
        _ => None,
    };
    graph.values().filter_map(|(v, _)| of(v)).collect()
}

/// The named outputs, each with the phase that computes it.
pub(super) fn outputs(program: &Program) -> Vec<(usize, Value, String)> {
    let named = program.graph.outputs.iter().filter_map(|o| match o {
        Output::Named(name, value) => Some((program.phase_of(*value), *value, name.clone())),
        Output::State { .. } => None,
    });
    named.collect()
}

/// Writes a tensor to a dense view.
pub(super) fn write(to: &View, tensor: &Tensor) -> Result<(), ExecError> {
    if tensor.dims() != to.ne {
        return Err(ExecError::Shape {
            what: "the input".into(),
            expected: to.ne,
            found: tensor.dims(),
        });
    }
    let n = to.len();
    let wrong = || ExecError::Parameter {
        what: format!("an input of type {} is not supplied so", to.dtype),
    };
    match (to.dtype, tensor.data()) {
        (DType::I32, Data::Int(values)) => {
            for (i, &v) in values.iter().enumerate().take(n) {
                let v = i32::try_from(v).map_err(|_| ExecError::Parameter {
                    what: format!("{v} does not fit i32"),
                })?;
                // SAFETY: a dense view of `n` elements.
                unsafe { to.ptr.cast::<i32>().add(i).write_unaligned(v) };
            }
        }
        (DType::I64, Data::Int(values)) => {
            for (i, &v) in values.iter().enumerate().take(n) {
                // SAFETY: as above.
                unsafe { to.ptr.cast::<i64>().add(i).write_unaligned(v) };
            }
        }
        (DType::F32, Data::F64(values)) => {
            for (i, &v) in values.iter().enumerate().take(n) {
                // SAFETY: as above.
                unsafe { to.ptr.cast::<f32>().add(i).write_unaligned(v as f32) };
            }
        }
        (DType::F32, Data::F32(values)) => {
            for (i, &v) in values.iter().enumerate().take(n) {
                // SAFETY: as above.
                unsafe { to.ptr.cast::<f32>().add(i).write_unaligned(v) };
            }
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

/// A tensor of the f32 that a view holds.
pub(super) fn read(from: &View) -> Result<Tensor, ExecError> {
    if from.dtype != DType::F32 {
        return Err(ExecError::Parameter {
            what: format!("an output of type {}", from.dtype),
        });
    }
    let mut out = Vec::with_capacity(from.len());
    for row in 0..from.rows() {
        let at = from.row(from.indices(row));
        for i in 0..from.ne[0] {
            // SAFETY: an element of the view.
            out.push(unsafe { at.add(i * from.nb[0]).cast::<f32>().read_unaligned() });
        }
    }
    Tensor::new(from.ne, Data::F32(out))
}

/// The error of a kernel.
pub(super) fn error(e: KernelError) -> ExecError {
    match e {
        KernelError::Index { what, index, bound } => ExecError::Index { what, index, bound },
        e => ExecError::Parameter {
            what: e.to_string(),
        },
    }
}

/// The error for a batch that no shape holds.
pub(super) fn too_large(program: &Program, sizes: &Bindings) -> ExecError {
    let most = program.shapes.last().map(|s| s.most).unwrap_or_default();
    let over = Symbol::ALL
        .into_iter()
        .filter(|s| sizes.get(*s) > most.get(*s));
    let over: Vec<String> = over
        .map(|s| format!("{} {} (at most {})", s.name(), sizes.get(s), most.get(s)))
        .collect();
    ExecError::BadBatch {
        what: format!("the program has no shape for it: {}", over.join(", ")),
    }
}
