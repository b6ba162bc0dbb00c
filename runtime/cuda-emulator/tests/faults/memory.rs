use tpc_cuda::{Args, Driver, DriverError, FaultKind, GraphSpec};

use crate::support::{Rig, rig};
use crate::{ORDERS, Planted, checked, found};

fn launch(rig: &mut Rig) -> GraphSpec {
    let x = rig.floats(0, &[1.0; 64]);
    let y = rig.floats(0, &[1.0; 64]);
    let mut spec = GraphSpec::default();
    let args = Args::new().u64(x.address).u64(y.address);
    let work = rig.kernel(0, "k", 2, 32, args);
    spec.push("a launch", work, &[]);
    spec
}

fn planted(right: &'static str, change: (&'static str, &'static str), kinds: &'static [FaultKind]) {
    let line = change.1;
    found(
        &Planted {
            right,
            change,
            line,
            kinds,
            orders: ORDERS,
        },
        1,
        &launch,
    );
}

const COPY: &str = r"
CONSTANT int table[4] = {1, 2, 3, 4};
KERNEL(k, const float *x, float *y) {
    SHARED(float, part, 32);
    SHARED(float, more, 32);
    u32 i = blockIdx.x * 32 + threadIdx.x;
    part[threadIdx.x] = more[threadIdx.x] = x[i];
    __syncthreads();
    if (threadIdx.x < 8) ((uint4 *)y)[blockIdx.x * 8 + threadIdx.x] = ((const uint4 *)part)[threadIdx.x];
    __syncthreads();
    if (i == 63) y[i] += table[threadIdx.x & 3];
}
";

#[test]
fn beyond_an_allocation() {
    planted(COPY, ("= x[i];", "= x[i + 1];"), &[FaultKind::OutOfBounds]);
    planted(
        COPY,
        ("(i == 63) y[i]", "(i == 63) y[0 - 1]"),
        &[FaultKind::OutOfBounds],
    );
}

#[test]
fn beyond_shared_memory() {
    planted(
        COPY,
        ("part[threadIdx.x] =", "part[threadIdx.x + 1] ="),
        &[FaultKind::OutOfBounds],
    );
}

#[test]
fn an_address_of_nothing() {
    let change = (
        "more[threadIdx.x] = x[i];",
        "more[threadIdx.x] = x[i] + *(const float *)16ull;",
    );
    planted(COPY, change, &[FaultKind::OutOfBounds]);
}

#[test]
fn memory_that_was_given_back() {
    let Some(mut rig) = rig(COPY, checked(1, 0)) else {
        return;
    };
    let x = rig.floats(0, &[1.0; 64]);
    let y = rig.floats(0, &[1.0; 64]);
    let mut spec = GraphSpec::default();
    let args = Args::new().u64(x.address).u64(y.address);
    let work = rig.kernel(0, "k", 2, 32, args);
    spec.push("a launch", work, &[]);
    let graph = rig.driver.instantiate(spec).expect("a graph");
    rig.driver.launch(graph).expect("a launch");
    rig.driver.synchronize().expect("all kernels are loaded");
    rig.driver.free(x).expect("`x` is allocated");
    assert!(rig.driver.free(x).is_err(), "`x` is already free");
    rig.driver.launch(graph).expect("a launch");
    match rig.driver.synchronize() {
        Err(DriverError::Fault(f)) => assert_eq!(f.kind, FaultKind::OutOfBounds, "{f}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn not_aligned() {
    planted(
        COPY,
        (
            "((const uint4 *)part)[threadIdx.x]",
            "*(const uint4 *)(part + (threadIdx.x + 1) % 8)",
        ),
        &[FaultKind::Misaligned],
    );
}

#[test]
fn constants_are_constant() {
    planted(
        COPY,
        (
            "y[i] += table[threadIdx.x & 3]",
            "*(i == blockDim.x ? (int *)y : (int *)table) = 1",
        ),
        &[FaultKind::ReadOnly],
    );
}

#[test]
fn too_much_is_declared() {
    planted(
        COPY,
        ("SHARED(float, more, 32)", "SHARED(float, more, 64000)"),
        &[FaultKind::Resources],
    );
}

#[test]
fn a_kernel_that_stops_itself() {
    planted(
        COPY,
        ("if (i == 63)", "if (i == 40) __trap(); if (i == 63)"),
        &[FaultKind::Trap],
    );
}
