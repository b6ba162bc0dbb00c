//! Compares estimates for several machines with a discrete-event simulation of the programs' queues.
//!
//! Kernels take the time of the cost model. Every message between machines occupies the sender's and the receiver's link
//! to the network; collectives wait for all participants.

use std::collections::BTreeMap;
use std::path::Path;

use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::{DeviceList, Machine, Placement, SplitMode};
use tpc_gguf::GgufFile;
use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::program::{FileTarget, Program, Step, Work};
use tpc_ir::{Bindings, Inst, Op, Place, Value};
use tpc_passes::assemble;
use tpc_passes::machine::{EngineProfile, Participants, Topology};
use tpc_passes::plan::timeline;

/// The largest relative difference of an estimate.
const TOLERANCE: f64 = 0.15;

fn compiled(header: &str, devices: &str, mode: SplitMode) -> CompiledModel {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/headers");
    let file = GgufFile::open(path.join(header)).expect("a header");
    let list = DeviceList::parse(devices).expect("machines");
    let machine = Machine::of(&list).expect("machines");
    let mut placement = Placement::on(machine.devices);
    placement.topology = machine.topology;
    placement.split_mode = mode;
    placement.ctx_size = Some(4096);
    compile(&file, &placement).expect("a plan")
}

/// The times at which the machines' links to the network are free, in microseconds.
struct Network<'a> {
    topology: &'a Topology,
    sending: BTreeMap<usize, f64>,
    receiving: BTreeMap<usize, f64>,
}

impl Network<'_> {
    /// Sends a message between two devices or the host (`None`), and returns the time at which it has arrived.
    fn send(&mut self, from: Option<usize>, to: Option<usize>, bytes: f64, start: f64) -> f64 {
        let machine = |d: Option<usize>| d.map_or(0, |d| self.topology.machines.of_device(d));
        let link = self.topology.machines.network();
        let (a, b) = (machine(from), machine(to));
        let free = |of: &BTreeMap<usize, f64>, m| of.get(&m).copied().unwrap_or(0.0);
        let begun = start
            .max(free(&self.sending, a))
            .max(free(&self.receiving, b));
        let sent = begun + bytes / link.bandwidth * 1e6;
        self.sending.insert(a, sent);
        self.receiving.insert(b, sent);
        sent + link.latency_us
    }
}

struct Simulation<'a> {
    compiled: &'a CompiledModel,
    program: &'a Program,
    batch: Bindings,
    profile: EngineProfile,
    /// Microseconds of each instruction that is not a transfer.
    us: BTreeMap<Inst, f64>,
    network: Network<'a>,
}

impl<'a> Simulation<'a> {
    fn new(compiled: &'a CompiledModel, program: &'a Program) -> Simulation<'a> {
        let request = &compiled.request;
        let batch = request.decode_batch();
        let events = timeline(&program.graph, request, &batch).into_iter();
        let us = events.map(|e| (e.inst, e.us.first().copied().unwrap_or(0.0)));
        Simulation {
            compiled,
            program,
            batch,
            profile: EngineProfile::on(request.engine, &request.topology),
            us: us.collect(),
            network: Network {
                topology: &request.topology,
                sending: BTreeMap::new(),
                receiving: BTreeMap::new(),
            },
        }
    }

    /// Returns the microseconds of a batch.
    fn run(&mut self) -> f64 {
        let mut now = self.profile.token_us + self.compiled.request.topology.host_link.latency_us;
        for phase in 0..self.program.phases.len() {
            now = self.phase(phase, now);
        }
        now
    }

    fn phase(&mut self, phase: usize, start: f64) -> f64 {
        let queues = &self.program.phases[phase].queues;
        let mut ends: Vec<Vec<f64>> = queues.iter().map(|_| vec![start]).collect();
        loop {
            // The next step is the one that starts first, so that messages are in order of time.
            let mut next: Option<(f64, usize)> = None;
            for (q, queue) in queues.iter().enumerate() {
                let done = ends[q].len() - 1;
                let Some(step) = queue.steps.get(done) else {
                    continue;
                };
                let own = ends[q][done];
                let ready = match step {
                    Step::Wait { queue, steps } => ends[*queue].get(*steps).map(|&t| t.max(own)),
                    Step::Launch(l) => self.ready(phase, *l, &ends),
                };
                if let Some(at) = ready
                    && next.is_none_or(|(best, _)| at < best)
                {
                    next = Some((at, q));
                }
            }
            let Some((at, q)) = next else { break };
            match queues[q].steps[ends[q].len() - 1] {
                Step::Wait { .. } => ends[q].push(at),
                Step::Launch(l) => {
                    let places = self.program.launch(l).places.clone();
                    let finished = self.launch(l, &places, at);
                    for (place, end) in places.iter().zip(finished) {
                        let own = queues.iter().position(|q| q.place == *place);
                        ends[own.expect("a queue")].push(end);
                    }
                }
            }
        }
        for (q, queue) in queues.iter().enumerate() {
            assert_eq!(ends[q].len(), queue.steps.len() + 1, "a queue is stuck");
        }
        let last = ends.iter().filter_map(|e| e.last().copied());
        last.fold(start, f64::max)
    }

    /// Returns the time at which all participants of a launch have reached it; `None` if one has not.
    fn ready(&self, phase: usize, launch: tpc_ir::Launch, ends: &[Vec<f64>]) -> Option<f64> {
        let queues = &self.program.phases[phase].queues;
        let mut out = 0.0_f64;
        for place in &self.program.launch(launch).places {
            let q = queues.iter().position(|q| q.place == *place)?;
            let done = ends[q].len() - 1;
            if queues[q].steps.get(done) != Some(&Step::Launch(launch)) {
                return None;
            }
            out = out.max(ends[q][done]);
        }
        Some(out)
    }

    /// Returns the end of a launch at each of its places.
    fn launch(&mut self, launch: tpc_ir::Launch, places: &[Place], start: f64) -> Vec<f64> {
        let work = self.program.launch(launch).work.clone();
        let insts = match work {
            Work::Compute(insts) => insts,
            Work::Transfer(inst) => vec![inst],
            Work::Store(_) => Vec::new(),
        };
        let mut ends = vec![start; places.len()];
        for inst in insts {
            let data = self.program.graph.inst(inst);
            match data.op.category() {
                OpCategory::Collective(kind) => {
                    let end = self.collective(kind, inst, start);
                    ends.iter_mut().for_each(|e| *e = end);
                }
                OpCategory::Copy => {
                    let end = self.copy(inst, ends[0]);
                    ends[0] = end;
                }
                _ => {
                    let us = self.us.get(&inst).copied().unwrap_or(0.0);
                    let at = self.program.graph.value(data.results[0]).place;
                    if let Some(own) = places.iter().position(|p| *p == at) {
                        ends[own] += us;
                    }
                }
            }
        }
        ends
    }

    fn bytes(&self, v: Value) -> f64 {
        let ty = &self.program.graph.value(v).ty;
        ty.bytes(&self.batch).expect("a size") as f64
    }

    fn device(&self, v: Value) -> Option<usize> {
        match self.program.graph.value(v).place {
            Place::Device(d) => Some(d.index()),
            Place::Host | Place::Group(_) => None,
        }
    }

    fn copy(&mut self, inst: Inst, start: f64) -> f64 {
        let data = self.program.graph.inst(inst);
        let (from, to) = (data.operands[0], data.results[0]);
        let [a, b] = [from, to].map(|v| self.device(v));
        let topology = &self.compiled.request.topology;
        let machine = |d: Option<usize>| d.map_or(0, |d| topology.machines.of_device(d));
        let bytes = self.bytes(from);
        if matches!(self.program.graph.def_op(from), Op::Input(_)) {
            return start + bytes / topology.host_link.bandwidth * 1e6;
        }
        let fixed = match (a, b) {
            (Some(_), Some(_)) => self.profile.handover_us,
            _ => self.profile.host_us,
        };
        if machine(a) != machine(b) {
            return self.network.send(a, b, bytes, start) + fixed;
        }
        let link = match (a, b) {
            (Some(_), Some(_)) => topology.link,
            _ => topology.host_link,
        };
        start + fixed + link.latency_us + bytes / link.bandwidth * 1e6
    }

    /// Reduces inside each machine, exchanges one message per pair of machines, and broadcasts.
    fn collective(&mut self, kind: Collective, inst: Inst, start: f64) -> f64 {
        let data = self.program.graph.inst(inst);
        let devices: Vec<usize> = data
            .operands
            .iter()
            .filter_map(|&v| self.device(v))
            .collect();
        let whole = match kind {
            Collective::AllReduce | Collective::ReduceScatter => self.bytes(data.operands[0]),
            Collective::AllGather | Collective::AllToAll => {
                data.operands.iter().map(|&v| self.bytes(v)).sum()
            }
        };
        let topology = &self.compiled.request.topology;
        let participants = Participants::of(topology, &devices);
        let inside = self.profile.ring_us(kind, participants.ring, whole);
        let Some(exchange) = participants.exchange else {
            return start + inside;
        };
        let machines = topology.machines.group(&devices);
        let message = exchange.sent(kind, whole) / (machines.len() as f64 - 1.0);
        let mut end = start;
        for a in &machines {
            for b in machines.iter().filter(|b| b[0] != a[0]) {
                let sent = self
                    .network
                    .send(Some(a[0]), Some(b[0]), message, start + inside / 2.0);
                end = end.max(sent);
            }
        }
        end + inside / 2.0
    }
}

#[track_caller]
fn close(header: &str, devices: &str, mode: SplitMode) {
    let compiled = compiled(header, devices, mode);
    let program = assemble(&compiled.programs, &compiled.batch_shapes(), &FileTarget);
    let program = program.expect("a program");
    let simulated = Simulation::new(&compiled, &program).run();
    let estimated = compiled.estimate.decode_us;
    let error = (simulated / estimated - 1.0).abs();
    println!(
        "{header} on {devices}, {mode:?}: simulated {simulated:.0} µs, estimated {estimated:.0} µs"
    );
    assert!(
        error < TOLERANCE,
        "{devices} {mode:?}: simulated {simulated:.0} µs, estimated {estimated:.0} µs"
    );
}

const LLAMA_8B: &str = "llama-3.1-8b-instruct-q4_k_m.header.gguf";
const LLAMA_70B: &str = "llama-3.1-70b-instruct-q4_k_m.header.gguf";

#[test]
fn two_machines_over_infiniband() {
    for mode in [SplitMode::Tensor, SplitMode::Hybrid, SplitMode::Layer] {
        close(LLAMA_8B, "2*8xH100-SXM@ib-ndr", mode);
    }
}

#[test]
fn two_machines_over_ethernet() {
    for mode in [SplitMode::Tensor, SplitMode::Hybrid] {
        close(LLAMA_8B, "2*8xH100-SXM@25gbe", mode);
    }
}

#[test]
fn four_machines_over_slow_ethernet() {
    for mode in [SplitMode::Tensor, SplitMode::Hybrid] {
        close(LLAMA_8B, "4*4x3090@10gbe", mode);
    }
}

#[test]
fn eight_machines_with_eight_cards() {
    close(LLAMA_70B, "8*8xH100-SXM@ib-ndr", SplitMode::Hybrid);
}
