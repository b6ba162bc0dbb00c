//! Faults between devices: flags and peer memory.

use tpc_cuda::{Args, Device, Driver, FaultKind, GraphSpec, Memory};

use crate::support::Rig;
use crate::{ORDERS, Planted, checked, found, run};

/// A sum over two devices. Each device writes its values to the other device's buffer, sets a flag that counts calls,
/// and adds the values it received. Calls alternate between two buffer sets.
const REDUCE: &str = r"
KERNEL(reduce, float *const *buffers, u32 *const *flags, float *x, u32 rank, u32 call) {
    u32 set = call % 2, other = 1 - rank;
    float *mine = buffers[rank] + set * 64, *theirs = buffers[other] + set * 64;
    theirs[threadIdx.x] = x[threadIdx.x]; // push
    __syncthreads(); // all have pushed
    if (threadIdx.x == 0) {
        store_release(flags[other], call); // tell
        while ((int)(load_acquire(flags[rank]) - call) < 0) {}
    }
    __syncthreads(); // all have heard
    x[threadIdx.x] += mine[threadIdx.x]; // add
}
";

fn table(rig: &mut Rig, device: u32, of: &[Memory]) -> Memory {
    let bytes: Vec<u8> = of.iter().flat_map(|m| m.address.to_le_bytes()).collect();
    rig.bytes(device, &bytes)
}

/// Returns a graph that calls the sum `count` times on each of two devices. `first` is the number of the first call.
fn calls(first: u32, count: u32) -> impl Fn(&mut Rig) -> GraphSpec {
    move |rig| {
        let buffers = [0, 1].map(|d| rig.floats(d, &[0.0; 128]));
        let flags = [0, 1].map(|d| rig.bytes(d, &first.wrapping_sub(1).to_le_bytes()));
        let mut spec = GraphSpec::default();
        for d in 0..2 {
            rig.driver.grant(Device(d), Device(1 - d)).expect("peers");
            let x = rig.floats(d, &[1.0; 64]);
            let (b, f) = (table(rig, d, &buffers), table(rig, d, &flags));
            let mut last = None;
            for call in 0..count {
                let args = Args::new().u64(b.address).u64(f.address).u64(x.address);
                let args = args.u32(d).u32(first.wrapping_add(call));
                let work = rig.kernel(d, "reduce", 1, 64, args);
                let label = format!("reduce {call} on {d}");
                last = Some(spec.push(label, work, last.as_slice()));
            }
        }
        spec
    }
}

fn planted(change: (&'static str, &'static str), line: &'static str, kinds: &'static [FaultKind]) {
    let right = REDUCE;
    // If one device is far ahead, the fault may not appear.
    found(
        &Planted {
            right,
            change,
            line,
            kinds,
            orders: ORDERS / 3,
        },
        2,
        &calls(1, 5),
    );
}

#[test]
fn signal_before_the_barrier() {
    planted(
        ("    __syncthreads(); // all have pushed\n", ""),
        "// push",
        &[FaultKind::Race],
    );
}

#[test]
fn use_before_the_barrier() {
    planted(
        ("    __syncthreads(); // all have heard\n", ""),
        "// add",
        &[FaultKind::Race],
    );
}

#[test]
fn lost_store() {
    let plain = (
        "store_release(flags[other], call);",
        "*(volatile u32 *)flags[other] = call;",
    );
    planted(plain, "// tell", &[FaultKind::Race]);
}

#[test]
fn stale_double_buffer() {
    planted(("call % 2", "call * 0"), "// push", &[FaultKind::Race]);
}

#[test]
fn wrong_peer() {
    // Each of three devices has a slot in every buffer. A device that uses the wrong slot races with the slot's owner.
    let right = r"
KERNEL(gather, float *const *buffers, const float *x, u32 rank, u32 ranks) {
    for (u32 r = 0; r < ranks; r++) buffers[r][rank * 32 + threadIdx.x] = x[threadIdx.x]; // push
}
";
    let graph = |rig: &mut Rig| {
        let buffers = [0, 1, 2].map(|d| rig.floats(d, &[0.0; 96]));
        let mut spec = GraphSpec::default();
        for d in 0..3 {
            (0..3).for_each(|o| rig.driver.grant(Device(d), Device(o)).expect("peers"));
            let (b, x) = (table(rig, d, &buffers), rig.floats(d, &[1.0; 32]));
            let args = Args::new().u64(b.address).u64(x.address).u32(d).u32(3);
            let work = rig.kernel(d, "gather", 1, 32, args);
            spec.push(format!("gather on {d}"), work, &[]);
        }
        spec
    };
    let change = ("rank * 32 +", "rank / 2 * 32 +");
    let planted = Planted {
        right,
        change,
        line: "// push",
        kinds: &[FaultKind::Race],
        orders: ORDERS,
    };
    found(&planted, 3, &graph);
}

#[test]
fn a_signal_to_oneself() {
    let change = (
        "store_release(flags[other], call);",
        "store_release(flags[rank], call);",
    );
    planted(change, "// add", &[FaultKind::Race]);
}

#[test]
fn no_signal() {
    let change = (
        "store_release(flags[other], call); // tell",
        "if (call != 3) store_release(flags[other], call);",
    );
    planted(change, "while ((int)", &[FaultKind::Deadlock]);
}

#[test]
fn counter_wrap() {
    // The count starts just below 2^32. After the wrap, an unsigned comparison takes old flags for later calls.
    let planted = Planted {
        right: REDUCE,
        change: (
            "while ((int)(load_acquire(flags[rank]) - call) < 0) {}",
            "while (load_acquire(flags[rank]) < call) {}",
        ),
        line: "// ",
        kinds: &[FaultKind::Race, FaultKind::Deadlock],
        orders: ORDERS,
    };
    found(&planted, 2, &calls(u32::MAX - 2, 6));
}

#[test]
fn memory_that_was_not_granted() {
    let graph = |rig: &mut Rig| {
        let (x, y) = (rig.floats(1, &[1.0; 32]), rig.floats(0, &[1.0; 32]));
        let mut spec = GraphSpec::default();
        let args = Args::new().u64(x.address).u64(y.address);
        let work = rig.kernel(0, "k", 1, 32, args);
        spec.push("reads a peer", work, &[]);
        spec
    };
    let source = "KERNEL(k, const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }\n";
    let granted = |rig: &mut Rig| {
        rig.driver.grant(Device(0), Device(1)).expect("peers");
        graph(rig)
    };
    let Some(right) = run(source, checked(2, 0), &granted) else {
        return;
    };
    right.expect("access was granted");
    let fault = run(source, checked(2, 0), &graph)
        .expect("a compiler")
        .expect_err("access was not granted");
    assert_eq!(fault.kind, FaultKind::WrongDevice);
    assert!(
        fault
            .to_string()
            .contains("of cuda:1, which was not granted"),
        "{fault}"
    );
    assert!(fault.at.starts_with("test.cu:1"), "{fault}");
}

#[test]
fn blocks_that_wait_for_blocks_that_cannot_start() {
    let source = r"
KERNEL(k, u32 *count) {
    if (threadIdx.x == 0) {
        add_release(count, 1u);
        while (load_acquire(count) < gridDim.x) {} // meet
    }
}
";
    let graph = |rig: &mut Rig| {
        let count = rig.bytes(0, &[0; 4]);
        let mut spec = GraphSpec::default();
        let work = rig.kernel(0, "k", 6, 32, Args::new().u64(count.address));
        spec.push("meets", work, &[]);
        spec
    };
    let few = |max_resident_blocks| tpc_cuda_emulator::EmulatedOptions {
        max_resident_blocks,
        ..checked(1, 4)
    };
    let Some(right) = run(source, few(6), &graph) else {
        return;
    };
    right.expect("all blocks are resident");
    let fault = run(source, few(5), &graph)
        .expect("a compiler")
        .expect_err("one block is not resident");
    assert_eq!(fault.kind, FaultKind::Deadlock);
    assert!(
        fault.to_string().contains("a device runs 5 blocks at once"),
        "{fault}"
    );
    assert!(fault.at.starts_with("test.cu:5"), "{fault}");
}
