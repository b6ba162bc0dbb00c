//! The bytes that a batch sends between machines and inside each machine.

use std::collections::BTreeMap;

use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::{Bindings, Graph, InstData, Op, Place, Value, Verified, stage};

use crate::machine::Machines;

/// The bytes of one batch by link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkBytes {
    /// Bytes from the first machine of each pair to the second.
    pub between: BTreeMap<(usize, usize), u64>,
    /// Bytes between the devices of each machine.
    pub inside: Vec<u64>,
}

impl LinkBytes {
    /// Returns the bytes of a batch between and inside these machines.
    ///
    /// A collective reduces inside each machine, sends one value per ordered pair of machines, and broadcasts inside.
    /// Inside a machine it is a ring. Every machine has the inputs of the batch, so their copies do not cross.
    pub fn new(
        programs: &Verified<stage::Programs>,
        machines: &Machines,
        devices: usize,
        batch: &Bindings,
    ) -> LinkBytes {
        let counter = Counter {
            graph: programs,
            machines,
            batch: batch.in_units(programs.cell_unit.0),
        };
        let mut out = LinkBytes {
            between: BTreeMap::new(),
            inside: vec![0; machines.count(devices)],
        };
        for (_, data) in programs.insts() {
            match data.op.category() {
                OpCategory::Collective(kind) => counter.collective(kind, data, &mut out),
                OpCategory::Copy => counter.copy(data, &mut out),
                _ => {}
            }
        }
        out
    }

    /// Returns the bytes between all machines.
    pub fn crossing(&self) -> u64 {
        self.between
            .values()
            .fold(0, |sum, b| sum.saturating_add(*b))
    }

    fn send(&mut self, from: usize, to: usize, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let sum = match from == to {
            true => self.inside.get_mut(from),
            false => Some(self.between.entry((from, to)).or_default()),
        };
        if let Some(sum) = sum {
            *sum = sum.saturating_add(bytes);
        }
    }
}

struct Counter<'a> {
    graph: &'a Graph,
    machines: &'a Machines,
    batch: Bindings,
}

impl Counter<'_> {
    fn bytes(&self, v: Value) -> u64 {
        self.graph
            .value(v)
            .ty
            .bytes(&self.batch)
            .unwrap_or(u64::MAX)
    }

    fn device(&self, v: Value) -> Option<usize> {
        match self.graph.value(v).place {
            Place::Device(d) => Some(d.index()),
            Place::Host | Place::Group(_) => None,
        }
    }

    fn machine(&self, v: Value) -> usize {
        self.device(v).map_or(0, |d| self.machines.of_device(d))
    }

    /// True if a value is a part of an input of the batch.
    fn is_input(&self, mut v: Value) -> bool {
        loop {
            let data = self.graph.inst(self.graph.value(v).def.0);
            match (&data.op, data.operands.as_slice()) {
                (Op::Input(_), _) => return true,
                (_, [of]) => v = *of,
                _ => return false,
            }
        }
    }

    fn copy(&self, data: &InstData, out: &mut LinkBytes) {
        let (from, to) = (data.operands[0], data.results[0]);
        let [source, target] = [from, to].map(|v| self.machine(v));
        let between_devices = self.device(from).is_some() && self.device(to).is_some();
        if between_devices || source != target && !self.is_input(from) {
            out.send(source, target, self.bytes(from));
        }
    }

    fn collective(&self, kind: Collective, data: &InstData, out: &mut LinkBytes) {
        // Per machine: devices, and bytes of operands and of results.
        let mut parts: BTreeMap<usize, (u64, u64, u64)> = BTreeMap::new();
        for (&operand, &result) in data.operands.iter().zip(&data.results) {
            let part = parts.entry(self.machine(operand)).or_default();
            part.0 += 1;
            part.1 = part.1.saturating_add(self.bytes(operand));
            part.2 = part.2.saturating_add(self.bytes(result));
        }
        let participants = data.operands.len() as u64;
        let first = data.operands.first().map_or(0, |&v| self.bytes(v));
        for (&a, &(devices, sent, _)) in &parts {
            let links = devices - 1;
            let ring = match kind {
                Collective::AllReduce => first.saturating_mul(2 * links),
                Collective::AllGather => {
                    let whole = parts.values().map(|p| p.1);
                    whole.fold(0, u64::saturating_add).saturating_mul(links)
                }
                Collective::ReduceScatter => first.saturating_mul(links),
                Collective::AllToAll => (sent / participants.max(1)).saturating_mul(links),
            };
            out.send(a, a, ring);
            for (&b, &(others, _, received)) in parts.iter().filter(|(b, _)| **b != a) {
                let message = match kind {
                    Collective::AllReduce => first,
                    Collective::AllGather => sent,
                    Collective::ReduceScatter => received,
                    Collective::AllToAll => (sent / participants.max(1)).saturating_mul(others),
                };
                out.send(a, b, message);
            }
        }
    }
}
