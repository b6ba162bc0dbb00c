use std::collections::BTreeMap;

use tpc_ir::{Device, Op, Place, Value};
use tpc_passes::footprint::{Footprint, traffic};
use tpc_passes::machine::DeviceProfile;

use super::bits::BitsReport;
use super::caches::CachesReport;
use super::cluster::ClusterReport;
use super::commands::Commands;
use super::estimate::EstimateReport;
use super::machine::MachineReport;
use super::plan::{
    Collectives, DeviceReport, EngineBuildReport, ModelReport, PlanReport, PoolReport,
    SearchReport, TensorReport,
};
use super::sharding::{devices_at, place_name, sharding_report};
use super::{copies, drafts, rewriting};
use crate::pipeline::CompiledModel;
use crate::placement::{DeviceKind, Placement};
use tpc_diag::{FormatVersion, Verdict};

impl PlanReport {
    /// Creates the report of a plan for the model at `path`, without findings.
    pub fn new(path: &str, placement: &Placement, compiled: &CompiledModel) -> PlanReport {
        let (devices, host) = places(placement, compiled);
        let machine = MachineReport::new(placement);
        let estimate = EstimateReport::new(
            &compiled.estimate,
            &placement.topology,
            placement.devices.len(),
            placement.backend,
            !machine.assumed,
        );
        let model = model(path, compiled);
        let copies = copies::of_weights(compiled);
        let mirrored = copies::by_cause(&copies);
        let choice = compiled.choice();
        PlanReport {
            tpc: FormatVersion,
            copies: copies::explain(compiled, &copies, model.bytes),
            model,
            verdict: Verdict::Ok,
            machine,
            commands: Commands::new(path, &placement.machine_words(), placement, compiled),
            split_mode: compiled.mode.name(),
            devices,
            host,
            tensors: tensors(compiled),
            collectives: Collectives {
                decode: traffic(&compiled.programs, &compiled.decode_batch()).into(),
                prefill: traffic(&compiled.programs, &compiled.request.workload.prefill).into(),
            },
            cluster: ClusterReport::new(placement, compiled),
            caches: CachesReport::new(compiled),
            bits: BitsReport::new(compiled),
            drafts: drafts::drafts(placement, compiled),
            pool: PoolReport::new(placement, compiled),
            beside: placement.beside.clone(),
            estimate,
            step: None,
            mirrored_bytes: mirrored.total(),
            mirrored,
            search: SearchReport {
                distinct: choice.distinct,
                priced: choice.priced,
                optimal: choice.optimal,
                at_most_above: choice.excess(),
            },
            rewriting: rewriting::rewriting(&compiled.rewriting),
            why: Vec::new(),
            considered: compiled.candidates.iter().map(Into::into).collect(),
            left_out: compiled.left_out.iter().map(Into::into).collect(),
            engine_build: EngineBuildReport::new(placement),
            advice: Vec::new(),
            diagnostics: Vec::new(),
        }
    }
}

fn model(path: &str, compiled: &CompiledModel) -> ModelReport {
    let summary = &compiled.model.summary;
    ModelReport {
        path: path.to_owned(),
        arch: summary.arch.to_owned(),
        name: summary.name.clone(),
        n_layer: summary.n_layer,
        n_params: compiled.size.params,
        bytes: compiled.size.bytes,
        n_ctx: compiled.caches.n_ctx,
        unused_bytes: compiled.size.bytes.saturating_sub(used_bytes(compiled)),
    }
}

/// Counts the bytes of used weights. A weight on several stages counts once.
fn used_bytes(compiled: &CompiledModel) -> u64 {
    let batch = compiled.memory_batch();
    let weight = |v: Value| match compiled.sharded.def_op(v) {
        Op::Weight(w) => Some((w.tensor.as_str(), v)),
        _ => None,
    };
    let weights: BTreeMap<&str, Value> =
        compiled.weights().filter_map(|(_, v)| weight(v)).collect();
    weights
        .into_values()
        .map(|v| compiled.sharded.value(v).ty.bytes(&batch).unwrap_or(0))
        .fold(0, u64::saturating_add)
}

fn places(placement: &Placement, compiled: &CompiledModel) -> (Vec<DeviceReport>, DeviceReport) {
    let prints = compiled.footprints();
    let print = |place: Place| prints.get(&place).copied().unwrap_or_default();
    let topology = &placement.topology;
    let devices = placement.devices.iter().enumerate().map(|(i, d)| {
        let kind = match d.kind {
            DeviceKind::Generic => "generic",
            DeviceKind::Cpu | DeviceKind::Numa(_) => "cpu",
            DeviceKind::Cuda(_) => "cuda",
        };
        let print = print(Place::Device(Device::new(i)));
        DeviceReport {
            card: d.card.clone(),
            ..place_report(&d.name, kind, print, topology.device(i))
        }
    });
    let host = place_report("host", "host", print(Place::Host), &topology.host);
    (devices.collect(), host)
}

impl PoolReport {
    /// Reports the memory that the host shares with devices; `None` if it shares none.
    fn new(placement: &Placement, compiled: &CompiledModel) -> Option<PoolReport> {
        let pool = placement.topology.host_pool(placement.devices.len())?;
        let (devices, host) = places(placement, compiled);
        let shared = pool.devices.iter().map(|&d| &devices[d]).chain([&host]);
        Some(PoolReport {
            devices: pool.devices.clone(),
            total_bytes: shared.map(|p| p.total_bytes).fold(0, u64::saturating_add),
            capacity_bytes: pool.memory as u64,
            reserve_bytes: pool.reserve as u64,
        })
    }

    /// Returns the usable bytes of the pool.
    pub const fn usable_bytes(&self) -> u64 {
        self.capacity_bytes.saturating_sub(self.reserve_bytes)
    }
}

fn place_report(
    name: &str,
    kind: &'static str,
    print: Footprint,
    profile: &DeviceProfile,
) -> DeviceReport {
    let Footprint {
        weights,
        kv,
        state,
        layout,
        compute,
        staging,
    } = print;
    DeviceReport {
        name: name.to_owned(),
        kind,
        weights_bytes: weights,
        kv_bytes: kv,
        state_bytes: state,
        layout_bytes: layout,
        compute_bytes: compute,
        staging_bytes: staging,
        beside_bytes: profile.beside as u64,
        total_bytes: print.total().saturating_add(profile.beside as u64),
        capacity_bytes: profile.memory.map(|c| c as u64),
        reserve_bytes: profile.reserve as u64,
        card: None,
    }
}

fn tensors(compiled: &CompiledModel) -> Vec<TensorReport> {
    let mut weights = Vec::new();
    let mut states = Vec::new();
    for (_, i) in compiled.sharded.insts() {
        let v = i.results[0];
        match &i.op {
            Op::Weight(w) => weights.push(tensor(compiled, "weight", &w.tensor, i.layer, v)),
            Op::State(s) => states.push(tensor(compiled, "state", &s.name, i.layer, v)),
            _ => {}
        }
    }
    weights.extend(states);
    weights
}

fn tensor(
    compiled: &CompiledModel,
    kind: &'static str,
    name: &str,
    layer: Option<u32>,
    v: Value,
) -> TensorReport {
    let graph = &compiled.sharded;
    let batch = compiled.memory_batch();
    let data = graph.value(v);
    let bytes = |rank| {
        let local = data.sharding.local_type(&data.ty, &graph.classes, rank);
        local.and_then(|t| t.bytes(&batch)).unwrap_or(0)
    };
    TensorReport {
        name: name.to_owned(),
        dtype: data.ty.dtype.name(),
        ne: std::array::from_fn(|i| data.ty.dims[i].eval(&batch).unwrap_or(0)),
        place: place_name(graph, data.place),
        sharding: sharding_report(graph, v),
        devices: devices_at(graph, data.place),
        bytes: (0..graph.ranks(data.place)).map(bytes).collect(),
        kind,
        layer,
    }
}
