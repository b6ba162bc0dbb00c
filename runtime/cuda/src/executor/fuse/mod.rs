//! The ops that a kernel computes at once: which sets of instructions launches should cover, and what the kernel of such a launch is.
//!
//! A file for each family of patterns. `propose` finds sets in a graph, `read` tells what a set is to a kernel: whatever is proposed is
//! read first, so that what covers a launch has a kernel.

mod gated;
mod heads;
mod mixed;
mod norms;
mod products;
mod reduced;
mod router;
mod set;

use tpc_ir::program::{FusionContext, StorageFormat};
use tpc_ir::{Graph, Inst, Place, Value};

use crate::kernels::Fused;
use set::{Set, Up};

/// What a launch of several instructions does, with the values that it reads and those that it writes.
pub(super) struct Together {
    pub(super) fused: Fused,
    pub(super) operands: Vec<Value>,
    /// Which of the operands are activations in terms.
    pub(super) terms: Option<usize>,
    pub(super) results: Vec<Value>,
}

/// What one place does of a launch of several instructions.
pub(super) enum Role {
    /// One kernel computes it.
    Together(Together),
    /// It takes part in a collective, and does no more.
    Share,
}

/// What each place does of instructions, in program order: the one place, or those that take part in the collective that comes first.
/// `None` where some place has no kernel.
pub(super) fn at_places(
    graph: &Graph,
    insts: &[Inst],
    format: &dyn Fn(Value) -> StorageFormat,
    kept: &dyn Fn(Value) -> bool,
) -> Option<Vec<(Place, Role)>> {
    let first = graph.inst(*insts.first()?);
    let place = |v: &Value| graph.value(*v).place;
    if !first.op.is_collective() {
        let all = together(graph, insts, format, kept)?;
        return Some(vec![(place(first.results.first()?), Role::Together(all))]);
    }
    let at = |result: &Value| {
        let here = |i: &&Inst| place(&graph.inst(**i).results[0]) == place(result);
        let rest = insts[1..].iter().filter(here);
        let own: Vec<Inst> = insts[..1].iter().chain(rest).copied().collect();
        let role = match own.len() {
            1 => Role::Share,
            _ => Role::Together(together(graph, &own, format, kept)?),
        };
        Some((place(result), role))
    };
    first.results.iter().map(at).collect()
}

/// The instructions, in program order, as one kernel computes them; `None` where there is none. `kept` says what is read elsewhere. Of a
/// collective among them the kernel is that of the place of the others.
fn together(
    graph: &Graph,
    insts: &[Inst],
    format: &dyn Fn(Value) -> StorageFormat,
    kept: &dyn Fn(Value) -> bool,
) -> Option<Together> {
    let read: [fn(&Set<'_>) -> Option<Together>; 6] = [
        products::read,
        gated::read,
        mixed::read,
        norms::read,
        heads::read,
        router::read,
    ];
    read.into_iter().find_map(|read| {
        let set = Set::new(graph, insts, format, kept);
        let found = read(&set)?;
        let at = graph.value(*found.results.first()?).place;
        let results = insts.iter().flat_map(|i| &graph.inst(*i).results);
        let mut own = results.filter(|v| graph.value(**v).place == at);
        let right = |v: &Value| kept(*v) == found.results.contains(v);
        (set.is_used_up() && own.all(right)).then_some(found)
    })
}

/// The sets of instructions on cards that have a kernel, those that spare most first.
pub(super) fn groups(around: &dyn FusionContext) -> Vec<Vec<Inst>> {
    let up = Up { around };
    let mut out = able(&up, gated::propose(&up));
    let mut gating: Vec<Inst> = out.iter().flatten().copied().collect();
    gating.sort_unstable();
    let families = [
        heads::propose(&up),
        router::propose(&up),
        mixed::propose(&up),
        products::propose(&up, &gating),
        reduced::propose(&up),
        norms::propose(&up),
    ];
    for sets in families {
        out.extend(able(&up, sets));
    }
    out
}

/// Those of the sets that are on cards and have a kernel, in program order.
fn able(up: &Up<'_>, mut sets: Vec<Vec<Inst>>) -> Vec<Vec<Inst>> {
    let graph = up.graph();
    let format = |v: Value| up.around.format(v);
    sets.retain_mut(|insts| {
        insts.sort_unstable();
        insts.dedup();
        let on_host = |i: &Inst| graph.value(graph.inst(*i).results[0]).place == Place::Host;
        let kept = |v: Value| up.is_read_beside(v, insts);
        let several = insts.len() > 1 && !insts.iter().any(on_host);
        several && at_places(graph, insts, &format, &kept).is_some()
    });
    sets
}
