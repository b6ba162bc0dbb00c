//! Shrinks a planned model to few layers and small sizes, with the splits of the large model.
//!
//! A plan of a small model would have other splits, so the sharded graph shrinks together with the model's graph:
//!
//! 1. `layers` removes layers whose kind (`kinds`) occurs elsewhere.
//! 2. `joint` infers common factors of both graphs.
//! 3. `sizes` chooses small sizes under `constraints` that preserve divisibility (`units`), and maps the ranges of the
//!    devices.
//! 4. `build` writes both graphs with these sizes, and lowers the sharded graph.
//!
//! `form` then compares small and large programs instruction by instruction. If ops, places or operands differ, results
//! of the small programs do not apply to the large ones. Programs are compared before canonicalisation, which merges
//! different instructions for different sizes. The large programs are also compared with the proved programs.

mod build;
mod constraints;
mod form;
mod joint;
mod kinds;
mod layers;
mod position;
mod sizes;
mod units;

pub use form::Departure;

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::verify::Violations;
use tpc_ir::{DType, Graph, Op, RANK, Verified, Window, stage};
use tpc_passes::canonicalise::canonicalise;
use tpc_passes::lower::lower;

use crate::pipeline::CompiledModel;
use build::OtherTypes;
use joint::Joint;
use sizes::SmallSizes;
use tpc_diag::{Diagnostic, codes};

/// Maximum number of weight elements of a small model, on all devices together.
const MOST_ELEMENTS: u64 = 1 << 29;

const WINDOW: u64 = 3;

/// A shrunk axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResizedAxis {
    /// A tensor with this axis.
    pub tensor: String,
    /// The axis.
    pub axis: usize,
    /// Size in the large model.
    pub from: u64,
    /// Small size.
    pub to: u64,
    /// Small indices per device; empty for a factor that is not split.
    pub parts: Vec<u64>,
}

/// A shrunk model with its programs.
#[derive(Clone, Debug)]
pub struct ShrunkModel {
    /// The small graph.
    pub model: Verified<stage::Model>,
    /// The small sharded graph.
    pub sharded: Verified<stage::Sharded>,
    /// The devices' programs.
    pub programs: Verified<stage::Programs>,
    /// The small window of window layers.
    pub window: Option<Window>,
    /// The layers, each with all layers that it represents, including itself.
    pub layers: Vec<(u32, Vec<u32>)>,
    /// Changed sizes, one entry per kind of tensor.
    pub sizes: Vec<ResizedAxis>,
    /// Replaced weight types.
    pub types: BTreeMap<DType, DType>,
    /// The first difference in form from the large programs, if any.
    pub departure: Option<Departure>,
}

impl ShrunkModel {
    /// Reports a difference in form from the large programs.
    pub fn notes(&self) -> Vec<Diagnostic> {
        let departure = self.departure.as_ref().map(|d| {
            let layer = d.layer.map_or_else(
                || "outside of layers".to_owned(),
                |l| format!("in layer {l}"),
            );
            let message = format!(
                "the small programs differ in form {layer}: `{}` instead of the model's `{}`",
                d.small, d.large
            );
            Diagnostic::new(&codes::OTHER_FORM, &self.programs.name, message)
                .help("the proof covers the model's own programs; report this with the command and the model's header")
        });
        departure.into_iter().collect()
    }
}

fn refusal(entity: impl Into<tpc_diag::Entity>, why: impl std::fmt::Display) -> Diagnostic {
    let message = format!("cannot be shrunk: {why}");
    Diagnostic::new(&codes::CANNOT_SHRINK, entity, message)
        .help("`tpc verify` without --numeric proves the plan at its own size")
}

/// Shrinks a planned model. `writable` returns true for weight types that can be written.
///
/// # Errors
/// Returns TPC0392 if the ops accept no small sizes.
pub fn shrink(
    compiled: &CompiledModel,
    writable: &dyn Fn(DType) -> bool,
) -> Result<ShrunkModel, Diagnostic> {
    let layers = layers::choose([&compiled.model.graph, &compiled.sharded]);
    let unit = compiled.sharded.cell_unit;
    let in_units;
    let mut model: &Graph = &compiled.model.graph;
    if unit != model.cell_unit {
        let converted = model.in_units(unit.0);
        in_units = converted.ok_or_else(|| refusal(&model.name, "the caches are too large"))?;
        model = &in_units;
    }
    let large = layers::keep(model, &layers);
    let large_sharded = layers::keep(&compiled.sharded, &layers);
    let joint = Joint::new(&large, &large_sharded);
    let sizes = SmallSizes::choose(&joint, &large_sharded).map_err(|unfit| {
        let data = joint.graph.inst(unfit.inst);
        let name = &joint.graph.value(data.results[0]).name;
        refusal(name, format!("`{}` has {}", data.op.name(), unfit.why))
    })?;
    let types = other_types(&large, writable).map_err(|t| {
        refusal(
            &large.name,
            format!("tpc cannot write a type with the blocks of {t}"),
        )
    })?;
    let model = build::model(&large, &sizes, &types);
    let sharded = build::shrink_sharded(&large_sharded, &joint, &sizes, &types);
    let invalid = |v: Violations| refusal(&v.graph.name, &v);
    let model = Verified::new(model).map_err(invalid)?;
    let sharded = Verified::new(sharded).map_err(invalid)?;
    let lowered = |sharded| lower(sharded).map_err(|e| refusal(&compiled.model.graph.name, e));
    let (small, large) = (lowered(&sharded)?, lowered(&compiled.sharded)?);
    let kept: Vec<u32> = layers.kept.iter().map(|(l, _)| *l).collect();
    let departure = form::departure(&large, &small, &kept)
        .or_else(|| form::departure(&compiled.programs, &canonicalise(large), &kept));
    let programs = Verified::new(canonicalise(small)).map_err(invalid)?;
    let elements = elements(&programs);
    if elements > MOST_ELEMENTS {
        let why =
            format!("the tensors that keep their form have {elements} elements on all devices");
        return Err(refusal(&model.name, why));
    }
    let window = compiled.model.summary.window.map(|w| match w {
        Window::Sliding(n) => Window::Sliding(n.min(WINDOW)),
        Window::Chunks(n) => Window::Chunks(n.min(WINDOW)),
    });
    Ok(ShrunkModel {
        departure,
        sizes: changes(&large_sharded, &sharded),
        model,
        sharded,
        programs,
        window,
        layers: layers.kept,
        types,
    })
}

/// Maps each type that cannot be written to a writable type whose block length divides the type's. Returns the first
/// type without such a type as an error.
fn other_types(graph: &Graph, writable: &dyn Fn(DType) -> bool) -> Result<OtherTypes, DType> {
    let mut out = OtherTypes::new();
    for (_, data) in graph.insts() {
        let Op::Weight(_) = data.op else { continue };
        let dtype = graph.value(data.results[0]).ty.dtype;
        if writable(dtype) || dtype.is_integer() || out.contains_key(&dtype) {
            continue;
        }
        let block = dtype.block_len();
        let whole = |t: &DType| writable(*t) && block.is_multiple_of(t.block_len());
        let types = DType::ALL.iter().copied().filter(whole);
        let other = types.max_by_key(|t| (t.block_len(), std::cmp::Reverse(*t)));
        out.insert(dtype, other.ok_or(dtype)?);
    }
    Ok(out)
}

fn elements(graph: &Graph) -> u64 {
    let weights = graph
        .insts()
        .filter(|(_, d)| matches!(d.op, Op::Weight(_)))
        .filter_map(|(_, d)| graph.value(d.results[0]).ty.elements()?.as_const());
    weights.fold(0, u64::saturating_add)
}

fn changes(large: &Graph, small: &Graph) -> Vec<ResizedAxis> {
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for ((v, from), (_, to)) in large.values().zip(small.values()) {
        let name = match large.def_op(v) {
            Op::Weight(w) => &w.tensor,
            Op::State(s) => &s.name,
            _ => continue,
        };
        for axis in 0..RANK {
            let (Some(a), Some(b)) = (from.ty.dims[axis].as_const(), to.ty.dims[axis].as_const())
            else {
                continue;
            };
            let ranks = small.ranks(to.place);
            let part = |rank| {
                let ty = to.sharding.local_type(&to.ty, &small.classes, rank)?;
                ty.dims[axis].as_const()
            };
            let parts: Vec<u64> = match to.sharding.axes[axis] {
                Some(_) => (0..ranks).filter_map(part).collect(),
                None => Vec::new(),
            };
            let tensor = crate::report::suffix(name);
            if a != b && seen.insert((tensor.clone(), axis, a, b, parts.clone())) {
                out.push(ResizedAxis {
                    tensor,
                    axis,
                    from: a,
                    to: b,
                    parts,
                });
            }
        }
    }
    out
}
