//! The bytes in a plan's report equal the bytes of the program's arenas.

use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::Placement;
use tpc_core::report::{DeviceReport, PlanReport};
use tpc_gguf::GgufFile;
use tpc_ir::program::ArenaKind;
use tpc_ir::{Device, Place};
use tpc_passes::assemble;
use tpc_tests::{Sweep, goldens, headers};

use crate::support::{WAYS, name, placed};

fn difference(placement: &Placement, compiled: &CompiledModel) -> Option<String> {
    let shapes = compiled.batch_shapes();
    let program = match assemble(&compiled.programs, &shapes, placement.storage) {
        Ok(program) => program,
        Err(e) => return Some(e.to_string()),
    };
    let report = PlanReport::new("model", placement, compiled);
    let devices = report.devices.iter().enumerate();
    let devices = devices.map(|(i, d)| (Place::Device(Device::new(i)), d));
    let mut all = 0;
    for (place, told) in devices.chain([(Place::Host, &report.host)]) {
        let arena = |kind| -> u64 {
            let of = program.arenas.iter();
            let of = of.filter(|a| a.place == place && a.kind == kind);
            of.map(|a| a.bytes).sum()
        };
        let [weights, states, work] = ArenaKind::ALL.map(arena);
        let has = [weights + states, work];
        let DeviceReport {
            weights_bytes,
            kv_bytes,
            state_bytes,
            layout_bytes,
            compute_bytes,
            total_bytes,
            ..
        } = told;
        let stored = weights_bytes + kv_bytes + state_bytes;
        let says = [stored.saturating_add_signed(*layout_bytes), *compute_bytes];
        if says != has || *total_bytes != has.iter().sum::<u64>() {
            return Some(format!("{place}: {says:?} planned, {has:?} in arenas"));
        }
        all += total_bytes;
    }
    let arenas: u64 = program.arenas.iter().map(|a| a.bytes).sum();
    (all != arenas).then(|| format!("{all} planned, {arenas} in arenas"))
}

#[test]
fn plans_of_golden_models_have_the_bytes_of_their_arenas() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (i, path) in goldens().iter().enumerate() {
        let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
        let all: Vec<(usize, &str)> = (1..=4)
            .flat_map(|n| WAYS.iter().map(move |way| (n, *way)))
            .collect();
        // A sample varies placement and number of devices with the model.
        let some = [0, 1].map(|n| all[(i * 27 + n * 43) % all.len()]);
        for &(devices, way) in Sweep::asked().pick(&some[..], &all[..]) {
            let placement = placed(devices, way);
            let Ok(compiled) = compile(&file, &placement) else {
                continue;
            };
            compared += 1;
            if let Some(what) = difference(&placement, &compiled) {
                wrong.push(format!("{} on {devices} {way}: {what}", name(path)));
            }
        }
    }
    println!("{compared} plans");
    assert!(compared > 0);
    assert!(wrong.is_empty(), "{}\n{wrong:#?}", wrong.len());
}

#[test]
fn plans_of_headers_have_the_bytes_of_their_arenas() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    let sweep = Sweep::asked();
    for (i, path) in headers().iter().enumerate().step_by(sweep.pick(4, 1)) {
        let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
        let devices = [1, 2, 4, 8][i % 4];
        let placement = placed(devices, WAYS[i % 2]);
        let Ok(compiled) = compile(&file, &placement) else {
            continue;
        };
        compared += 1;
        if let Some(what) = difference(&placement, &compiled) {
            wrong.push(format!("{} on {devices}: {what}", name(path)));
        }
    }
    println!("{compared} plans");
    assert!(compared > 0);
    assert!(wrong.is_empty(), "{}\n{wrong:#?}", wrong.len());
}
