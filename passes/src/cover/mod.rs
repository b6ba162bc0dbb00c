//! Cover: the instructions as launches.
//!
//! Every instruction that computes or moves is covered by one launch; leaves and views by none. A launch covers several where the
//! target has a kernel that computes them at once: an instruction, and those before it whose results it alone reads. Such a
//! result has no place in memory.

use std::collections::BTreeMap;

use tpc_ir::program::{LaunchData, Target, Work};
use tpc_ir::{Graph, Inst, Value};

use crate::ahead::tokens_ahead;
use crate::layout::Layouts;
use crate::users::Users;

/// The launches of a graph, in program order of their last instructions.
pub fn cover(graph: &Graph, layouts: &Layouts, target: &dyn Target) -> Vec<LaunchData> {
    let fused = fused(graph, layouts, target);
    graph
        .insts()
        .filter(|(inst, _)| is_launched(graph, layouts, *inst))
        .filter_map(|(inst, _)| match fused.get(&inst) {
            Some(Covered::Before) => None,
            Some(Covered::With(before)) => {
                let mut insts = before.clone();
                insts.push(inst);
                Some(launch(graph, insts))
            }
            None => Some(launch(graph, vec![inst])),
        })
        .collect()
}

/// Whether an instruction computes or moves.
fn is_launched(graph: &Graph, layouts: &Layouts, inst: Inst) -> bool {
    let op = &graph.inst(inst).op;
    let leaf = op.is_stored() || matches!(op, tpc_ir::Op::Input(_));
    !leaf && !layouts.is_view(graph, inst)
}

/// How an instruction is covered that is not alone.
enum Covered {
    /// By the launch of a later one.
    Before,
    /// With these before it.
    With(Vec<Inst>),
}

/// The instructions that share a launch.
fn fused(graph: &Graph, layouts: &Layouts, target: &dyn Target) -> BTreeMap<Inst, Covered> {
    let users = Users::of_graph(graph);
    let ahead = tokens_ahead(graph);
    let computes = |inst: Inst| {
        let op = &graph.inst(inst).op;
        is_launched(graph, layouts, inst) && !op.is_transfer() && !op.is_update()
    };
    let place = |inst: Inst| graph.value(graph.inst(inst).results[0]).place;
    let mut out = BTreeMap::new();
    for (last, data) in graph.insts() {
        if !computes(last) {
            continue;
        }
        // Those that nothing but the last reads, at its place and in its phase.
        let private = |v: &Value| {
            let before = graph.value(*v).def.0;
            let alone = users.of(*v) == [last] && !users.is_output(*v);
            let together =
                place(before) == place(last) && ahead[before.index()] == ahead[last.index()];
            let single = graph.inst(before).results.len() == 1;
            let fits = alone && together && single && computes(before);
            fits.then_some(before)
        };
        let mut before: Vec<Inst> = data.operands.iter().filter_map(private).collect();
        before.sort_unstable();
        before.dedup();
        before.retain(|inst| !out.contains_key(inst));
        let all = std::iter::once(before.clone());
        let each = before.iter().map(|inst| vec![*inst]);
        let candidates = all.chain(each).filter(|c| !c.is_empty());
        let found = candidates.into_iter().find(|before| {
            let mut insts = before.clone();
            insts.push(last);
            target.fuses(graph, &insts, &|v| layouts.format(v))
        });
        if let Some(before) = found {
            out.extend(before.iter().map(|inst| (*inst, Covered::Before)));
            out.insert(last, Covered::With(before));
        }
    }
    out
}

/// The launch that covers these instructions.
fn launch(graph: &Graph, insts: Vec<Inst>) -> LaunchData {
    let names = insts.iter().map(|i| graph.inst(*i).op.name());
    let kernel = names.collect::<Vec<_>>().join("_");
    let last = insts[insts.len() - 1];
    let data = graph.inst(last);
    let mut places: Vec<_> = data.results.iter().map(|v| graph.value(*v).place).collect();
    let work = match data.op.is_transfer() {
        true => Work::Transfer(last),
        false => {
            places.dedup();
            Work::Compute(insts)
        }
    };
    LaunchData {
        kernel,
        places,
        work,
    }
}
