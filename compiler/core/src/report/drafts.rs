use tpc_ir::op::InputKind;
use tpc_ir::{Device, InstData, Op, Place};
use tpc_passes::footprint::traffic_of;

use super::plan::{Collectives, DraftBytes, DraftsReport};
use crate::pipeline::CompiledModel;
use crate::placement::Placement;

pub(super) fn drafts(placement: &Placement, compiled: &CompiledModel) -> Option<DraftsReport> {
    let blocks = compiled.model.summary.n_draft;
    if blocks == 0 {
        return None;
    }
    let drafting = drafting(compiled);
    let batch = compiled.memory_batch();
    let bytes = |name: &str, place: Place| {
        let mut out = DraftBytes {
            name: name.to_owned(),
            weights_bytes: 0,
            kv_bytes: 0,
        };
        for (inst, data) in compiled
            .programs
            .insts()
            .filter(|(i, _)| drafting[i.index()])
        {
            let sum = match data.op {
                Op::Weight(_) => &mut out.weights_bytes,
                Op::State(_) => &mut out.kv_bytes,
                _ => continue,
            };
            let value = compiled
                .programs
                .value(compiled.programs.inst(inst).results[0]);
            if value.place == place {
                let bytes = value.ty.bytes(&batch).unwrap_or(u64::MAX);
                *sum = sum.saturating_add(bytes);
            }
        }
        out
    };
    let devices = placement.devices.iter().enumerate();
    let devices = devices.map(|(i, d)| bytes(&d.name, Place::Device(Device::new(i))));
    let traffic = |batch| traffic_of(&compiled.programs, batch, |i, _| drafting[i.index()]);
    Some(DraftsReport {
        blocks,
        devices: devices.collect(),
        host: bytes("host", Place::Host),
        collectives: Collectives {
            decode: traffic(&compiled.decode_batch()).into(),
            prefill: traffic(&compiled.request.workload.prefill).into(),
        },
    })
}

/// Marks instructions that only drafting needs: in a drafting block, or dependent on further tokens.
fn drafting(compiled: &CompiledModel) -> Vec<bool> {
    let first = compiled.model.summary.n_layer;
    let programs = &compiled.programs;
    let mut out = vec![false; programs.insts().len()];
    let later = |d: &InstData| match &d.op {
        Op::Input(input) => matches!(input.kind, InputKind::NextTokens(_)),
        _ => false,
    };
    for (inst, data) in programs.insts() {
        let needs = |v: &tpc_ir::Value| out[programs.value(*v).def.0.index()];
        out[inst.index()] = data.layer.is_some_and(|l| u64::from(l) >= first)
            || later(data)
            || data.operands.iter().any(needs);
    }
    out
}
