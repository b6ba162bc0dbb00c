//! Stored tensors and states, grouped by the options that move them.

use std::collections::BTreeSet;

use tpc_ir::{Bindings, TensorType};
use tpc_passes::layers::{Prologue, Section};
use tpc_passes::place::PlaceOverride;

use super::load::Load;
use super::point::Point;
use crate::pipeline::{PlanInput, StoredBytes};
use crate::placement::{HostExperts, Placement, overridden, resolve};
use tpc_diag::Diagnostic;

struct Leaf {
    /// Index of the section: prologue, layer or epilogue.
    unit: usize,
    ty: TensorType,
    sort: StoredKind,
    place: Option<PlaceOverride>,
}

#[derive(Clone, Copy)]
enum StoredKind {
    Expert,
    Weight,
    Cache,
    State,
    /// A weight of the prologue that the epilogue reads, too.
    Copy,
}

/// A model's stored tensors, with caches of one pair of types.
pub(super) struct Leaves {
    all: Vec<Leaf>,
    units: usize,
    window: Option<tpc_ir::Window>,
}

impl Leaves {
    /// Collects the stored tensors of a model. Ignores `-ncmoe`, `-nkvo` and `-ngl`.
    ///
    /// # Errors
    /// Returns TPC0410 if a pattern cannot be matched.
    pub(super) fn new(prepared: &PlanInput, base: &Placement) -> Result<Leaves, Diagnostic> {
        let graph = &prepared.model.graph;
        let n_block = prepared.model.summary.n_block();
        let plain = Placement {
            host_experts: HostExperts::NONE,
            kv_on_host: false,
            n_gpu_layers: None,
            ..base.clone()
        };
        let together = vec![(0..base.devices.len()).collect()];
        let batch = Bindings::default();
        let places = overridden(graph, &plain)?;
        let resolved = resolve(graph, n_block, &plain, &places, together, &[1.0], &batch);
        let overrides = resolved.layer_placement.overrides;
        let experts: BTreeSet<&str> = prepared.experts();
        let prologue = Prologue::of_graph(graph);
        let shared = prologue.shared_weights(graph);
        let n = usize::try_from(n_block).unwrap_or(usize::MAX).min(1 << 16);
        let mut all = Vec::new();
        for (inst, data) in graph.insts().filter(|(_, d)| d.op.is_stored()) {
            let v = data.results[0];
            let ty = graph.value(v).ty.clone();
            let sort = match &data.op {
                tpc_ir::Op::Weight(w) if experts.contains(w.tensor.as_str()) => StoredKind::Expert,
                tpc_ir::Op::Weight(_) => StoredKind::Weight,
                _ if ty.counts_cells() => StoredKind::Cache,
                _ => StoredKind::State,
            };
            let unit = match prologue.section(inst, data.layer) {
                Section::Prologue => 0,
                Section::Layer(l) => (l as usize).min(n.saturating_sub(1)) + 1,
                Section::Epilogue => n + 1,
            };
            let place = overrides.get(&v).copied();
            if shared.contains(&v) && place.is_none() {
                all.push(Leaf {
                    unit: n + 1,
                    ty: ty.clone(),
                    sort: StoredKind::Copy,
                    place,
                });
            }
            all.push(Leaf {
                unit,
                ty,
                sort,
                place,
            });
        }
        Ok(Leaves {
            all,
            units: n + 2,
            window: prepared.model.summary.window,
        })
    }

    pub(super) fn has_experts(&self) -> bool {
        self.all
            .iter()
            .any(|l| matches!(l.sort, StoredKind::Expert) && l.place.is_none())
    }

    pub(super) fn has_caches(&self) -> bool {
        self.all.iter().any(|l| matches!(l.sort, StoredKind::Cache))
    }

    /// Computes the stored bytes for a point's context, sequences and batch size.
    pub(super) fn load(&self, point: &Point, devices: usize) -> Load {
        let batch = crate::pipeline::memory_batch_of(
            point.ctx_size,
            self.window,
            point.ubatch,
            point.parallel,
        );
        let mut out = Load {
            units: vec![StoredBytes::default(); self.units],
            pinned: vec![0.0; devices],
            host: 0.0,
        };
        for leaf in &self.all {
            let bytes = leaf.ty.bytes(&batch).unwrap_or(u64::MAX) as f64;
            match leaf.place {
                Some(PlaceOverride::Host) => out.host += bytes,
                Some(PlaceOverride::Device(d)) => {
                    if let Some(sum) = out.pinned.get_mut(d) {
                        *sum += bytes;
                    }
                }
                Some(PlaceOverride::Mirrored) => {
                    out.pinned.iter_mut().for_each(|sum| *sum += bytes);
                }
                None => {
                    let unit = &mut out.units[leaf.unit];
                    *match leaf.sort {
                        StoredKind::Expert => &mut unit.experts,
                        StoredKind::Weight => &mut unit.weights,
                        StoredKind::Cache => &mut unit.caches,
                        StoredKind::State => &mut unit.states,
                        StoredKind::Copy => &mut unit.copies,
                    } += bytes;
                }
            }
        }
        out
    }
}
