//! Checks the structure of both graphs: values are defined before use, with the types that their ops give. Each op of
//! the programs runs at one place. A collective takes and gives one part per participant.
//!
//! The proof repeats these checks so that it does not depend on the verifier. For example, a reshape to another number
//! of elements is not a view of its operand, although the rules would treat it as one.

use std::collections::HashSet;

use tpc_ir::op::InferredTypes;
use tpc_ir::{Graph, Inst, InstData, Op, Place, TensorType};

use super::refutation::{Refutation, RefutationReason};

pub(super) fn check_model(model: &Graph, programs: &Graph) -> Result<(), Box<Refutation>> {
    for (inst, data) in model.insts() {
        let operand = |&&v: &&tpc_ir::Value| model.value(v).def.0.index() >= inst.index();
        if data.operands.iter().any(|v| operand(&v)) || types(model, data).is_err() {
            let first = data.results.first();
            let what = RefutationReason::Model {
                op: data.op.name(),
                value: first.map_or_else(String::new, |&v| model.value(v).name.clone()),
            };
            return Err(Refutation::of_output(programs, None, what));
        }
    }
    Ok(())
}

fn types(graph: &Graph, data: &InstData) -> Result<(), RefutationReason> {
    let ty = |v| &graph.value(v).ty;
    let operands: Vec<&TensorType> = data.operands.iter().map(|&v| ty(v)).collect();
    let found = match data.op.infer(&operands) {
        Ok(InferredTypes::Declared) if data.results.len() == 1 => return Ok(()),
        Ok(InferredTypes::Types(found)) if found.iter().eq(data.results.iter().map(|&v| ty(v))) => {
            return Ok(());
        }
        Ok(InferredTypes::Types(found)) => found.into_iter().next(),
        Ok(InferredTypes::Declared) | Err(_) => None,
    };
    Err(RefutationReason::Type { found })
}

pub(super) fn check(programs: &Graph) -> Result<(), Box<Refutation>> {
    // The last well-typed instruction; devices run the same op one after another.
    let mut right: Option<&InstData> = None;
    for (inst, data) in programs.insts() {
        let late = data
            .operands
            .iter()
            .find(|&&v| programs.value(v).def.0.index() >= inst.index());
        if let Some(&operand) = late {
            let what = RefutationReason::Order { operand };
            return Err(Refutation::at(programs, inst, what));
        }
        places(programs, inst, data)?;
        if !right.is_some_and(|r| programs.is_alike(r, data)) {
            types(programs, data).map_err(|what| Refutation::at(programs, inst, what))?;
            right = Some(data);
        }
    }
    Ok(())
}

fn places(programs: &Graph, inst: Inst, data: &InstData) -> Result<(), Box<Refutation>> {
    let place = |v| programs.value(v).place;
    let operands = || data.operands.iter().map(|&v| place(v));
    let results = || data.results.iter().map(|&v| place(v));
    let is_group = |p: Place| matches!(p, Place::Group(_));
    let right = match &data.op {
        _ if operands().chain(results()).any(is_group) => false,
        Op::Copy(_) => data.operands.len() == 1 && data.results.len() == 1,
        op if op.is_collective() => {
            let distinct: HashSet<Place> = operands().collect();
            operands().eq(results()) && distinct.len() == data.operands.len()
        }
        _ => {
            let mut all = operands().chain(results());
            let first = all.next();
            all.all(|p| Some(p) == first)
        }
    };
    if right {
        Ok(())
    } else {
        Err(Refutation::at(programs, inst, RefutationReason::Places))
    }
}
