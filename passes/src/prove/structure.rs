//! The structure that programs must have before their values mean anything: each value is defined before it is used, each
//! op runs in one place, and a collective takes and gives one part per participant.

use std::collections::HashSet;

use tpc_ir::{Graph, Inst, InstData, Op, Place};

use super::refutation::{Refutation, Unproven};

/// Checks all instructions.
pub(super) fn check(programs: &Graph) -> Result<(), Box<Refutation>> {
    for (inst, data) in programs.insts() {
        let late = data
            .operands
            .iter()
            .find(|&&v| programs.value(v).def.0.index() >= inst.index());
        if let Some(&operand) = late {
            let what = Unproven::Order { operand };
            return Err(Refutation::at(programs, inst, what));
        }
        places(programs, inst, data)?;
    }
    Ok(())
}

fn places(programs: &Graph, inst: Inst, data: &InstData) -> Result<(), Box<Refutation>> {
    let place = |v| programs.value(v).place;
    let operands: Vec<Place> = data.operands.iter().map(|&v| place(v)).collect();
    let results: Vec<Place> = data.results.iter().map(|&v| place(v)).collect();
    let is_group = |p: &Place| matches!(p, Place::Group(_));
    let distinct: HashSet<&Place> = operands.iter().collect();
    let right = match &data.op {
        _ if operands.iter().chain(&results).any(is_group) => false,
        Op::Copy(_) => operands.len() == 1 && results.len() == 1,
        op if op.is_collective() => operands == results && distinct.len() == operands.len(),
        _ => {
            let mut all = operands.iter().chain(&results);
            let first = all.next();
            all.all(|p| Some(p) == first)
        }
    };
    if right {
        Ok(())
    } else {
        Err(Refutation::at(programs, inst, Unproven::Places))
    }
}
