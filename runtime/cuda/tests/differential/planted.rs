//! Kernels with one fault each. Checked devices find every fault. On a card nothing checks a launch, so there a test runs
//! only the fault in `TPC_TEST_PLANTED`, under a sanitizer that must find it.

use tpc_cuda::{Args, Device, Driver, DriverError, FaultKind, GraphSpec, KernelNode, Module, Work};
use tpc_cuda_emulator::Build;

use super::rig;

struct Planted {
    name: &'static str,
    body: &'static str,
    kind: FaultKind,
}

const PLANTED: [Planted; 3] = [
    Planted {
        name: "memcheck",
        body: "y[threadIdx.x + 1] = 1.0f;",
        kind: FaultKind::OutOfBounds,
    },
    Planted {
        name: "racecheck",
        body: "SHARED(float, s, 64); s[threadIdx.x] = y[threadIdx.x]; y[threadIdx.x] = s[63 - threadIdx.x];",
        kind: FaultKind::Race,
    },
    Planted {
        name: "synccheck",
        body: "if (threadIdx.x % 32 < 8) { __syncthreads(); y[threadIdx.x] = 1.0f; }\nelse { y[threadIdx.x] = 2.0f; __syncthreads(); }",
        kind: FaultKind::Divergence,
    },
];

fn launch(planted: &Planted) -> Option<Result<(), DriverError>> {
    const THREADS: u32 = 64;
    let mut rig = rig(3, Build::Checked)?;
    let entry = format!("planted_{}", planted.name);
    let text = format!("KERNEL({entry}, float *y) {{ {} }}\n", planted.body);
    let bytes = vec![0; THREADS as usize * 4];
    let y = rig.memory(&bytes);
    let driver = &mut rig.driver;
    let module = driver.load(Device(0), &Module::new("planted", text));
    let function = driver.function(module.expect("the module compiles"), &entry);
    let mut spec = GraphSpec::default();
    let node = KernelNode {
        function: function.expect("the kernel"),
        grid: [1, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: 0,
        args: Args::new().u64(y.address),
    };
    spec.push(entry, Work::Kernel(node), &[]);
    let graph = driver.instantiate(spec).expect("a graph");
    driver.launch(graph).expect("the graph starts");
    Some(driver.synchronize())
}

#[test]
fn planted_faults_are_found() {
    let asked = std::env::var("TPC_TEST_PLANTED").unwrap_or_default();
    let Some(rig) = rig(3, Build::Checked) else {
        return;
    };
    if rig.driver.is_card() {
        if let Some(planted) = PLANTED.iter().find(|p| p.name == asked) {
            println!("{}: {:?}", planted.name, launch(planted));
        }
        return;
    }
    for planted in &PLANTED {
        match launch(planted) {
            Some(Err(DriverError::Fault(fault))) => {
                assert_eq!(fault.kind, planted.kind, "{}: {fault}", planted.name);
            }
            other => panic!("{}: {other:?}", planted.name),
        }
    }
}
