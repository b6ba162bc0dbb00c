//! ggml's ops without a sharding rule, by ggml's name, one file per family.
//!
//! A function receives operands by position in ggml's source list and the words of `op_params`, and returns the
//! result's elements. [`eval`] resolves views first.

mod call;
mod convolution;
mod copy;
mod image;
mod recurrent;
mod rotation;
mod stand_in;
mod system;
#[cfg(test)]
mod tests;
mod training;
mod window;

use tpc_ir::op::Opaque;

use crate::error::ExecError;
use crate::tensor::{Shape, Tensor};
use call::Call;

type Function = fn(&Call<'_>) -> Result<Tensor, ExecError>;

const FAMILIES: &[&[(&str, Function)]] = &[
    convolution::FUNCTIONS,
    copy::FUNCTIONS,
    image::FUNCTIONS,
    recurrent::FUNCTIONS,
    rotation::FUNCTIONS,
    system::FUNCTIONS,
    training::FUNCTIONS,
    window::FUNCTIONS,
];

fn function(name: &str) -> Option<Function> {
    let mut all = FAMILIES.iter().copied().flatten();
    all.find(|(n, _)| *n == name).map(|(_, f)| *f)
}

/// True if this module implements the ggml op with this lower-case name.
pub fn knows(name: &str) -> bool {
    function(name).is_some()
}

/// Treatment of ggml's ops without an implementation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownOps {
    /// An error.
    #[default]
    Refuse,
    /// A stand-in: a fixed linear function of all operands.
    StandIn,
}

pub(super) fn eval(
    op: &Opaque,
    operands: &[&Tensor],
    result: Shape,
    unknown: UnknownOps,
) -> Result<Tensor, ExecError> {
    let known = function(&op.name);
    if known.is_none() && unknown == UnknownOps::Refuse {
        return Err(ExecError::Parameter {
            what: format!("ggml's op `{}` is unknown", op.name),
        });
    }
    let f = |call: &Call<'_>, operands: usize| match known {
        Some(known) => known(call),
        None => stand_in::stand_in(op, call, operands),
    };
    let Some(view) = &op.view else {
        return f(&Call::new(op, operands, result), operands.len());
    };
    if op.name == "view" {
        return copy::through(view, operands, result);
    }
    let Some((old, operands)) = operands.split_first() else {
        return Err(ExecError::Parameter {
            what: format!("`{}` lacks the memory to write to", op.name),
        });
    };
    let part = Shape {
        dtype: view.dtype,
        dims: copy::sizes(view)?,
    };
    let new = f(&Call::new(op, operands, part), operands.len())?;
    copy::written(view, old, &new, result)
}
