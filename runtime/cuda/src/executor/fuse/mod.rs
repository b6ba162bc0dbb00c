//! Fusion: the instruction sets that launches should cover, and their kernels.
//!
//! In each file, `propose` finds candidate sets in a graph and `read` converts a set to a fused kernel. Every candidate
//! must pass `read`.

mod all_reduce;
mod heads;
mod matcher;
mod mul_mat_add;
mod mul_mat_glu;
mod mul_mat_id_sum;
mod norm_mul;
mod router;

use tpc_ir::program::{FusionContext, StorageFormat};
use tpc_ir::{Graph, Inst, Place, Value};

use crate::kernels::FusedOp;
use matcher::{DefWalker, Matcher};

pub(super) struct FusedLaunch {
    pub(super) op: FusedOp,
    pub(super) operands: Vec<Value>,
    /// The index of the operand that is read as terms.
    pub(super) terms: Option<usize>,
    pub(super) results: Vec<Value>,
}

pub(super) enum Role {
    Fused(FusedLaunch),
    Share,
}

/// Returns the role of each place in a set of instructions, in program order. The set has one place, or begins with a
/// collective and has its participants. Returns `None` if no kernel matches.
pub(super) fn roles_of(
    graph: &Graph,
    insts: &[Inst],
    format: &dyn Fn(Value) -> StorageFormat,
    kept: &dyn Fn(Value) -> bool,
) -> Option<Vec<(Place, Role)>> {
    let first = graph.inst(*insts.first()?);
    let place = |v: &Value| graph.value(*v).place;
    if !first.op.is_collective() {
        let all = fused_launch(graph, insts, format, kept)?;
        return Some(vec![(place(first.results.first()?), Role::Fused(all))]);
    }
    let at = |result: &Value| {
        let here = |i: &&Inst| place(&graph.inst(**i).results[0]) == place(result);
        let rest = insts[1..].iter().filter(here);
        let own: Vec<Inst> = insts[..1].iter().chain(rest).copied().collect();
        let role = match own.len() {
            1 => Role::Share,
            _ => Role::Fused(fused_launch(graph, &own, format, kept)?),
        };
        Some((place(result), role))
    };
    first.results.iter().map(at).collect()
}

/// Returns the kernel of instructions in program order. `kept` is true for values read elsewhere. After a collective,
/// the kernel belongs to the place of the other instructions.
fn fused_launch(
    graph: &Graph,
    insts: &[Inst],
    format: &dyn Fn(Value) -> StorageFormat,
    kept: &dyn Fn(Value) -> bool,
) -> Option<FusedLaunch> {
    let read: [fn(&Matcher<'_>) -> Option<FusedLaunch>; 6] = [
        mul_mat_add::read,
        mul_mat_glu::read,
        mul_mat_id_sum::read,
        norm_mul::read,
        heads::read,
        router::read,
    ];
    read.into_iter().find_map(|read| {
        let matcher = Matcher::new(graph, insts, format, kept);
        let found = read(&matcher)?;
        let at = graph.value(*found.results.first()?).place;
        let results = insts.iter().flat_map(|i| &graph.inst(*i).results);
        let mut own = results.filter(|v| graph.value(**v).place == at);
        let right = |v: &Value| kept(*v) == found.results.contains(v);
        (matcher.is_complete() && own.all(right)).then_some(found)
    })
}

/// Returns the sets that have a kernel, preferred sets first.
pub(super) fn groups(context: &dyn FusionContext) -> Vec<Vec<Inst>> {
    let defs = DefWalker { context };
    let mut out = on_cards(&defs, mul_mat_glu::propose(&defs));
    let mut gating: Vec<Inst> = out.iter().flatten().copied().collect();
    gating.sort_unstable();
    let families = [
        heads::propose(&defs),
        router::propose(&defs),
        mul_mat_id_sum::propose(&defs),
        mul_mat_add::propose(&defs, &gating),
        all_reduce::propose(&defs),
        norm_mul::propose(&defs),
    ];
    for sets in families {
        out.extend(on_cards(&defs, sets));
    }
    out
}

fn on_cards(defs: &DefWalker<'_>, mut sets: Vec<Vec<Inst>>) -> Vec<Vec<Inst>> {
    let graph = defs.graph();
    let format = |v: Value| defs.context.format(v);
    sets.retain_mut(|insts| {
        insts.sort_unstable();
        insts.dedup();
        let on_host = |i: &Inst| graph.value(graph.inst(*i).results[0]).place == Place::Host;
        let kept = |v: Value| defs.is_read_outside(v, insts);
        let several = insts.len() > 1 && !insts.iter().any(on_host);
        several && roles_of(graph, insts, &format, &kept).is_some()
    });
    sets
}
