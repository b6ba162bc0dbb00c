use std::collections::BTreeMap;

use tpc_ir::{Bindings, DType, Device, Graph, InstData, Op, Place, Value};
use tpc_passes::footprint::Footprint;
use tpc_passes::layers::{Prologue, Section};
use tpc_passes::place::{LayerPlace, LayerPlacement, PlaceOverride};

use super::build::EMBEDDING;
use super::slots::Slots;
use crate::placement::Placement;
use tpc_ggml::engines::{Devices, HeadSizes, MemoryFacts, TensorCut};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Host,
    Stage(usize),
    Device(usize),
}

pub(super) struct Places<'a> {
    pub(super) facts: &'a MemoryFacts,
    pub(super) graph: &'a Graph,
    pub(super) layers: &'a LayerPlacement,
    pub(super) heads: &'a HeadSizes,
    pub(super) prologue: Prologue,
    pub(super) arch: &'a str,
    pub(super) n_layer: u64,
    pub(super) shares: &'a [f64],
    pub(super) states_on_host: bool,
}

impl Places<'_> {
    pub(super) fn section(&self, place: LayerPlace) -> Owner {
        match place {
            LayerPlace::Host => Owner::Host,
            LayerPlace::Stage(s) => Owner::Stage(s.min(self.layers.stages.len().saturating_sub(1))),
        }
    }

    pub(super) fn owner(&self, v: Value) -> Owner {
        match self.layers.overrides.get(&v) {
            Some(PlaceOverride::Host) => return Owner::Host,
            Some(PlaceOverride::Device(d)) => return Owner::Device(*d),
            Some(PlaceOverride::Mirrored) | None => {}
        }
        if self.states_on_host && matches!(self.graph.def_op(v), Op::State(_)) {
            return Owner::Host;
        }
        let inst = self.graph.value(v).def.0;
        let last = LayerPlace::Stage(self.layers.stages.len().saturating_sub(1));
        match self.prologue.section(inst, self.graph.inst(inst).layer) {
            // The host computes the input of the first layer.
            Section::Prologue => Owner::Host,
            Section::Layer(l) => {
                let place = self.layers.layers.get(l as usize).copied();
                self.section(place.unwrap_or(last))
            }
            Section::Epilogue => self.section(self.layers.epilogue),
        }
    }

    pub(super) fn value_width(&self) -> u64 {
        let states = self.graph.insts().filter_map(|(_, d)| self.cache(d));
        let values = states.filter(|c| c.is_value).map(|c| c.row);
        values.max().unwrap_or(1)
    }

    fn cache(&self, data: &InstData) -> Option<Cache> {
        let Op::State(state) = &data.op else {
            return None;
        };
        let ty = &self.graph.value(data.results[0]).ty;
        if !ty.counts_cells() {
            return None;
        }
        let row = ty.dims.iter().filter_map(tpc_ir::Dim::as_const).product();
        Some(Cache {
            row,
            is_value: state.name.starts_with("cache_v"),
            is_plain: state.name.starts_with("cache_v_l") || state.name.starts_with("cache_k_l"),
        })
    }

    pub(super) fn count(
        &self,
        slots: &Slots,
        placement: &Placement,
        out: &mut BTreeMap<Place, Footprint>,
    ) {
        let batch = slots.batch();
        let cut = TensorCut {
            facts: self.facts,
            heads: self.heads,
            arch: self.arch,
            devices: Devices::with_proportions(self.shares),
            layers: self.n_layer,
        };
        let width = self.value_width();
        for (_, data) in self.graph.insts() {
            if !data.op.is_stored() {
                continue;
            }
            let v = data.results[0];
            let ty = &self.graph.value(v).ty;
            let bytes = match self.cache(data) {
                Some(cache) => self.cache_bytes(data, &cache, width, placement, &batch),
                None => ty.bytes(&batch).unwrap_or(u64::MAX),
            };
            let owner = self.owner(v);
            self.add(&cut, data, owner, bytes, out);
            // If the output uses the embedding's table, the engine stores a copy.
            if self.is_tied(v) {
                let owner = self.section(self.layers.epilogue);
                self.add(&cut, data, owner, bytes, out);
            }
        }
    }

    fn is_tied(&self, v: Value) -> bool {
        let is_table = matches!(self.graph.def_op(v), Op::Weight(w) if w.tensor == EMBEDDING);
        let product = |d: &InstData| matches!(d.op, Op::MulMat(_)) && d.operands[0] == v;
        is_table && self.graph.insts().any(|(_, d)| product(d))
    }

    /// Computes a cache's bytes. Without fused attention, rows of all V caches have the same width. Draft caches have
    /// their own types.
    fn cache_bytes(
        &self,
        data: &InstData,
        cache: &Cache,
        width: u64,
        placement: &Placement,
        batch: &Bindings,
    ) -> u64 {
        let options = &placement.engine_options;
        let ty = &self.graph.value(data.results[0]).ty;
        let is_draft = data.layer.is_some_and(|l| u64::from(l) >= self.n_layer);
        let dtype: DType = match is_draft {
            true => options.draft_caches[usize::from(cache.is_value)],
            false => ty.dtype,
        };
        let bytes = ty.with_dtype(dtype).bytes(batch).unwrap_or(u64::MAX);
        match cache.is_value && !placement.flash_attention && cache.row > 0 {
            true => bytes / cache.row * width,
            false => bytes,
        }
    }

    fn add(
        &self,
        cut: &TensorCut<'_>,
        data: &InstData,
        owner: Owner,
        bytes: u64,
        out: &mut BTreeMap<Place, Footprint>,
    ) {
        let mut put = |place: Place, bytes: u64| {
            let print = out.entry(place).or_default();
            let sum = match &data.op {
                Op::Weight(_) => &mut print.weights,
                _ if self.cache(data).is_some() => &mut print.kv,
                _ => &mut print.state,
            };
            *sum = sum.saturating_add(bytes);
        };
        match owner {
            Owner::Host => put(Place::Host, bytes),
            Owner::Device(d) => put(Place::Device(Device::new(d)), bytes),
            Owner::Stage(s) => {
                let devices = &self.layers.stages[s];
                let parts = (devices.len() > 1).then(|| self.parts(cut, data)).flatten();
                for (i, &d) in devices.iter().enumerate() {
                    let part = match &parts {
                        Some(parts) => (bytes as f64 * parts[i]).round() as u64,
                        None => bytes,
                    };
                    put(Place::Device(Device::new(d)), part);
                }
            }
        }
    }

    /// Returns the fraction per device; `None` if each device holds the whole tensor.
    fn parts(&self, cut: &TensorCut<'_>, data: &InstData) -> Option<Vec<f64>> {
        let ty = &self.graph.value(data.results[0]).ty;
        if (self.layers.overrides.get(&data.results[0])) == Some(&PlaceOverride::Mirrored) {
            return None;
        }
        match &data.op {
            Op::Weight(w) => {
                let dims = [0, 1, 2, 3].map(|a| ty.dims[a].as_const().unwrap_or(1));
                cut.weight(&w.tensor, dims)
            }
            _ => match self.cache(data) {
                Some(cache) if cache.is_plain => {
                    Some(cut.cache(data.layer?, cache.is_value, cache.row))
                }
                Some(_) => None,
                None => Some(cut.state(data.layer?)),
            },
        }
    }
}

struct Cache {
    /// Elements per cell.
    row: u64,
    is_value: bool,
    /// True if the cache holds keys or values of heads.
    is_plain: bool,
}
