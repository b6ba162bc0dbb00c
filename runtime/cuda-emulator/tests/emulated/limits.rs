//! Emulated devices have the same limits as real cards.

use tpc_cuda::{Args, Device, Driver, DriverError, Endpoint, GraphSpec, Side};
use tpc_cuda_emulator::{EmulatedOptions, Links};

use crate::support::{at, rig};

const KERNELS: &str = "KERNEL(k, float *x) { x[threadIdx.x] = 1.0f; }\n";

fn few() -> EmulatedOptions {
    EmulatedOptions {
        devices: 2,
        memory: 1000,
        links: Links::HostOnly,
        ..EmulatedOptions::default()
    }
}

#[test]
fn memory_ends() {
    let Some(mut rig) = rig(KERNELS, few()) else {
        return;
    };
    let first = rig.driver.allocate(Device(0), 600).expect("room");
    match rig.driver.allocate(Device(0), 401) {
        Err(
            e @ DriverError::OutOfMemory {
                needed: 401,
                free: 400,
                ..
            },
        ) => {
            assert_eq!(e.code().id, "TPC0548");
            assert!(
                e.to_string().starts_with("cuda:0 has not enough memory"),
                "{e}"
            );
        }
        other => panic!("{other:?}"),
    }
    rig.driver
        .allocate(Device(1), 1000)
        .expect("another device");
    rig.driver.free(first).expect("`first` is allocated");
    assert_eq!(rig.driver.free_memory(Device(0)).expect("a device"), 1000);
}

#[test]
fn links_and_devices_are_missing() {
    let Some(mut rig) = rig(KERNELS, few()) else {
        return;
    };
    rig.driver
        .grant(Device(1), Device(1))
        .expect("access to its own memory");
    let error = rig.driver.grant(Device(1), Device(0)).expect_err("no link");
    assert_eq!(error.code().id, "TPC0547");
    let error = rig
        .driver
        .allocate(Device(2), 1)
        .expect_err("no such device");
    assert_eq!(error.code().id, "TPC0542");
}

#[test]
fn ranges_end_where_memory_does() {
    let Some(mut rig) = rig(KERNELS, few()) else {
        return;
    };
    let memory = rig.driver.allocate(Device(0), 100).expect("room");
    let beyond = Endpoint {
        address: memory.address + 90,
        ..at(memory)
    };
    rig.driver.write(beyond, &[0; 10]).expect("room");
    let mut bytes = [0; 11];
    let error = rig.driver.read(beyond, &mut bytes).expect_err("beyond");
    assert_eq!(error.code().id, "TPC0549");
    let other = Endpoint {
        side: Side::Device(Device(1)),
        ..at(memory)
    };
    rig.driver
        .write(other, &[0; 1])
        .expect_err("memory of another device");
}

#[test]
fn graphs_are_gone_when_they_are_discarded() {
    let Some(mut rig) = rig(KERNELS, few()) else {
        return;
    };
    let memory = rig.driver.allocate(Device(0), 128).expect("room");
    let mut spec = GraphSpec::default();
    let work = rig.kernel(0, "k", 1, 32, Args::new().u64(memory.address));
    spec.push("k", work, &[]);
    let graph = rig.driver.instantiate(spec).expect("a graph");
    rig.driver.discard(graph).expect("once");
    rig.driver.discard(graph).expect_err("twice");
    rig.driver
        .launch(graph)
        .expect_err("the graph was discarded");
}
