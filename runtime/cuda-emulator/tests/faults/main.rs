//! Faults planted in kernels and graphs: the checks find and locate each fault. The correct kernels run without errors
//! in many orders.

mod blocks;
mod devices;
mod early;
mod graphs;
mod memory;
#[path = "../support/mod.rs"]
mod support;

use tpc_cuda::{DriverError, Fault, FaultKind, GraphSpec};
use tpc_cuda_emulator::{Build, EmulatedOptions};

use support::{Rig, rig};

struct Planted {
    right: &'static str,
    change: (&'static str, &'static str),
    /// A text in the source line that the diagnostic must name.
    line: &'static str,
    kinds: &'static [FaultKind],
    /// The minimum number of orders in which the fault must appear.
    orders: usize,
}

const ORDERS: usize = 12;

fn checked(devices: usize, seed: u64) -> EmulatedOptions {
    EmulatedOptions {
        devices,
        seed,
        build: Build::Checked,
        ..EmulatedOptions::default()
    }
}

fn run(
    source: &str,
    options: EmulatedOptions,
    graph: &dyn Fn(&mut Rig) -> GraphSpec,
) -> Option<Result<(), Fault>> {
    let mut rig = rig(source, options)?;
    let spec = graph(&mut rig);
    Some(match rig.run(spec) {
        Ok(()) => Ok(()),
        Err(DriverError::Fault(fault)) => Err(*fault),
        Err(other) => panic!("{other}"),
    })
}

/// Checks that the fault is found, and that the correct source runs without faults.
fn found(planted: &Planted, devices: usize, graph: &dyn Fn(&mut Rig) -> GraphSpec) {
    let Planted {
        right,
        change: (from, to),
        line,
        kinds,
        orders,
    } = planted;
    let wrong = right.replacen(from, to, 1);
    assert_ne!(*right, wrong, "the change applies");
    let mut shown = 0;
    for seed in 0..ORDERS as u64 {
        match run(right, checked(devices, seed), graph) {
            None => return,
            Some(result) => result.unwrap_or_else(|f| panic!("seed {seed}, without a fault: {f}")),
        }
        let Some(Err(fault)) = run(&wrong, checked(devices, seed), graph) else {
            continue;
        };
        shown += 1;
        assert!(kinds.contains(&fault.kind), "seed {seed}: {fault}");
        let told = fault.to_string();
        let lines = wrong.lines().enumerate().filter(|(_, l)| l.contains(line));
        let mut named = lines.map(|(i, _)| format!("test.cu:{}", i + 1));
        assert!(named.any(|at| told.contains(&at)), "seed {seed}: {told}");
        assert!(!fault.kernel.is_empty() && told.contains(&fault.kernel));
    }
    assert!(shown >= *orders, "found in {shown} orders of {ORDERS}");
}
