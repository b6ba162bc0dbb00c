use tpc_ir::op::{OpCategory, Slot};
use tpc_ir::{Bindings, Graph, Inst, InstData, Op, Place, TensorType, Value};

use super::PlanRequest;
use crate::machine::{
    DeviceProfile, EngineProfile, ExpertLoad, Participants, Parts, Regime, Speed, copy_us, kernel,
    roofline_us, work,
};
use crate::place::group_of;

/// An instruction that takes time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The instruction.
    pub inst: Inst,
    /// Microseconds per device of the instruction's place; one number for a transfer.
    pub us: Vec<f64>,
    /// Bytes of a transfer: one participant's operand for a collective, bytes per link for a copy. Empty for other ops.
    pub bytes: Vec<u64>,
}

pub(super) struct Transfer {
    /// Microseconds, without the latency that all inputs of a batch share.
    pub(super) us: f64,
    pub(super) bytes: Vec<u64>,
}

/// Returns the instructions that take time for a batch, in program order. The first copied input includes the latency
/// that all inputs share.
///
/// Devices wait for each other at every collective. The estimate, in contrast, counts the busiest device over the whole
/// batch.
pub fn timeline(sharded: &Graph, request: &PlanRequest, batch: &Bindings) -> Vec<Event> {
    events(sharded, request, batch, Scale::Engine)
}

/// Returns the timeline by the roofline alone, without fixed engine times. Rewriting uses it as cost.
pub fn roofline(sharded: &Graph, request: &PlanRequest, batch: &Bindings) -> Vec<Event> {
    events(sharded, request, batch, Scale::Roofline)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Engine,
    Roofline,
}

fn events(sharded: &Graph, request: &PlanRequest, batch: &Bindings, scale: Scale) -> Vec<Event> {
    let expert_load = ExpertLoad::default();
    // The first copied input includes the fixed time of a batch.
    let fixed = match scale {
        Scale::Engine => EngineProfile::on(request.engine, &request.topology).token_us,
        Scale::Roofline => 0.0,
    };
    let mut latency = Some(request.topology.host_link.latency_us + fixed);
    let mut out = Vec::new();
    for (inst, data) in sharded.insts() {
        let event = match transfer(sharded, request, inst, batch) {
            Some(Transfer { mut us, bytes }) => {
                if is_copy_of_input(sharded, data) {
                    us += latency.take().unwrap_or(0.0);
                } else if scale == Scale::Engine {
                    us = engine_us(sharded, request, data, us, &bytes);
                }
                Event {
                    inst,
                    us: vec![us],
                    bytes,
                }
            }
            None => Event {
                inst,
                us: work_us(sharded, request, data, (batch, scale), &expert_load),
                bytes: Vec::new(),
            },
        };
        if event.us.iter().any(|&us| us > 0.0) || !event.bytes.is_empty() {
            out.push(event);
        }
    }
    out
}

/// True if an instruction copies an input of the batch.
pub fn is_copy_of_input(sharded: &Graph, data: &InstData) -> bool {
    matches!(data.op, Op::Copy(_)) && matches!(sharded.def_op(data.operands[0]), Op::Input(_))
}

/// Returns the time of a collective, or of a copy other than an input's, with the request's engine.
fn engine_us(
    sharded: &Graph,
    request: &PlanRequest,
    data: &InstData,
    us: f64,
    bytes: &[u64],
) -> f64 {
    let profile = EngineProfile::on(request.engine, &request.topology);
    let place = |v: Value| sharded.value(v).place;
    let ends = [place(data.operands[0]), place(data.results[0])];
    match (data.op.category(), ends) {
        (OpCategory::Collective(collective), [Place::Group(g), _]) => {
            let devices = &request.layer_placement.stages[g.index()];
            let bytes = bytes.first().copied().unwrap_or(0) as f64;
            let participants = Participants::of(&request.topology, devices);
            profile.collective_us(collective, participants, bytes)
        }
        (_, ends) if ends.contains(&Place::Host) => us + profile.host_us,
        _ => us + profile.handover_us,
    }
}

fn work_us(
    sharded: &Graph,
    request: &PlanRequest,
    data: &InstData,
    (batch, scale): (&Bindings, Scale),
    expert_load: &ExpertLoad,
) -> Vec<f64> {
    let Some(&result) = data.results.first() else {
        return Vec::new();
    };
    let topology = &request.topology;
    let profile = &EngineProfile::on(request.engine, topology);
    let on = |rank: usize, speed: Speed<'_>, device: &DeviceProfile| {
        let held = DeviceInst {
            graph: sharded,
            data,
            rank,
            batch,
        };
        if scale == Scale::Roofline {
            return roofline_us(work(&data.op, &held, batch, expert_load), device);
        }
        let kernel = kernel(&data.op, &held, batch, expert_load);
        kernel.map_or(0.0, |k| speed.kernel(&k, Regime::of(batch)).total())
    };
    let on_device = |rank: usize, d: usize| {
        let device = topology.device(d);
        on(rank, Speed::of_device(profile, device), device)
    };
    match sharded.value(result).place {
        Place::Host => vec![on(0, Speed::of_host(profile, topology), &topology.host)],
        Place::Device(d) => vec![on_device(0, d.index())],
        Place::Group(g) => {
            let devices = sharded.group(g).devices.iter().enumerate();
            devices
                .map(|(rank, d)| on_device(rank, d.index()))
                .collect()
        }
    }
}

pub(super) fn transfer(
    sharded: &Graph,
    request: &PlanRequest,
    inst: Inst,
    batch: &Bindings,
) -> Option<Transfer> {
    let data = sharded.inst(inst);
    if let OpCategory::Collective(collective) = data.op.category() {
        let stage = group_of(sharded, inst).map_or(0, tpc_ir::Group::index);
        let devices = &request.layer_placement.stages[stage];
        let bytes = sharded.value(data.operands[0]).ty.bytes(batch).unwrap_or(0);
        return Some(Transfer {
            us: Participants::of(&request.topology, devices).roofline_us(collective, bytes as f64),
            bytes: vec![bytes],
        });
    }
    matches!(data.op, Op::Copy(_)).then(|| copy(sharded, request, data, batch))
}

fn copy(sharded: &Graph, request: &PlanRequest, data: &InstData, batch: &Bindings) -> Transfer {
    let (from, to) = (data.operands[0], data.results[0]);
    let (source, target) = (sharded.value(from), sharded.value(to));
    let parts = |v: Value| -> Vec<u64> {
        let data = sharded.value(v);
        let part = |rank| {
            let local = (data.sharding).local_type(&data.ty, &sharded.classes, rank)?;
            local.bytes(batch)
        };
        let ranks = 0..sharded.ranks(data.place);
        ranks.map(|rank| part(rank).unwrap_or(0)).collect()
    };
    let (sent, received) = (parts(from), parts(to));
    let largest = |parts: &[u64]| parts.iter().copied().max();
    let ends = [source.place, target.place].map(|place| positions(sharded, place));
    let us = copy_us(
        &request.topology,
        [&ends[0], &ends[1]],
        [largest(&sent), largest(&received)],
        matches!(sharded.def_op(from), Op::Input(_)),
    );
    // A device fetches its part. A place that is not a group gets each part, or a whole value from the first device.
    let bytes = match (target.place, source.sharding.is_split()) {
        (Place::Group(_), _) => received,
        (_, true) => sent,
        (_, false) => sent[..sent.len().min(1)].to_vec(),
    };
    Transfer { us, bytes }
}

/// Returns the positions of a place's devices; an empty list for the host.
pub(super) fn positions(graph: &Graph, place: Place) -> Vec<usize> {
    match place {
        Place::Host => Vec::new(),
        Place::Device(d) => vec![d.index()],
        Place::Group(g) => graph.group(g).devices.iter().map(|d| d.index()).collect(),
    }
}

struct DeviceInst<'a> {
    graph: &'a Graph,
    data: &'a InstData,
    rank: usize,
    batch: &'a Bindings,
}

impl DeviceInst<'_> {
    fn value(&self, slot: Slot) -> &tpc_ir::ValueData {
        self.graph.value(match slot {
            Slot::Operand(i) => self.data.operands[i],
            Slot::Result(i) => self.data.results[i],
        })
    }

    fn local(&self, slot: Slot) -> Option<TensorType> {
        let v = self.value(slot);
        v.sharding.local_type(&v.ty, &self.graph.classes, self.rank)
    }

    fn count(&self, ty: Option<&TensorType>) -> f64 {
        let size = |d: &tpc_ir::Dim| d.eval(self.batch).unwrap_or(0) as f64;
        ty.map_or(0.0, |t| t.dims.iter().map(size).product())
    }
}

impl Parts for DeviceInst<'_> {
    fn ty(&self, slot: Slot) -> &TensorType {
        &self.value(slot).ty
    }

    fn elements(&self, slot: Slot) -> f64 {
        self.count(self.local(slot).as_ref())
    }

    fn whole(&self, slot: Slot) -> f64 {
        self.count(Some(self.ty(slot)))
    }

    fn stored_bytes(&self, operand: usize) -> f64 {
        let slot = Slot::Operand(operand);
        self.elements(slot) * self.ty(slot).dtype.element_bytes()
    }

    fn experts(&self) -> Option<(Vec<u64>, u64)> {
        let v = self.value(Slot::Operand(0));
        let tree = v.sharding.axes[2].as_deref()?;
        let lens: Vec<u64> = (0..self.graph.ranks(v.place))
            .map(|rank| {
                let n = tree.local_size(&self.graph.classes, rank);
                n.and_then(|n| n.as_const()).unwrap_or(0)
            })
            .collect();
        let own = lens.get(self.rank).copied().unwrap_or(0);
        Some((lens, own))
    }
}
