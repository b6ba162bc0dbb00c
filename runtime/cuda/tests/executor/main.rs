//! Compares graphs for several devices with the reference: collectives and copies, with and without peer access. The
//! emulator checks every access, in several orders. Skipped without a C++ compiler.

mod best;
mod cells;
mod dumps;
mod faults;

use std::sync::Arc;

use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget, DeviceMap, DriverError, PeerFailure};
use tpc_cuda_emulator::{Build, EmulatedDriver, EmulatedOptions, Links};
use tpc_ir::op::InputKind;
use tpc_ir::program::{BatchShape, Program, verify};
use tpc_ir::text::parse;
use tpc_ir::verify::Verified;
use tpc_ir::{Bindings, Symbol, TensorType};
use tpc_op_cases::Random;
use tpc_passes::assemble;
use tpc_runtime::{
    BatchRun, Data, ExecError, Executor, MemoryWeights, Options, Outputs, ProgramInterpreter,
    Shape, Tensor,
};
use tpc_test_devices::TestDriver;

/// Every collective with uneven parts; copies between host and devices in both directions.
const EXCHANGES: &str = r#"tpir 1
graph "exchanges"
device dev0 "cuda:0"
device dev1 "cuda:1"
device dev2 "cuda:2"

v0 "a": f32[6, 6] @dev0 = weight {tensor = "a"}
v1 "b": f32[6, 6] @dev1 = weight {tensor = "b"}
v2 "c": f32[6, 6] @dev2 = weight {tensor = "c"}
v3 "x": f32[6, n_tokens] @host = input {name = "x"}
v4: f32[6, n_tokens] @dev0 = copy v3
v5: f32[6, n_tokens] @dev1 = copy v3
v6: f32[6, n_tokens] @dev2 = copy v3
v7: f32[6, n_tokens] @dev0 = mul_mat v0, v4
v8: f32[6, n_tokens] @dev1 = mul_mat v1, v5
v9: f32[6, n_tokens] @dev2 = mul_mat v2, v6
v10: f32[6, n_tokens] @dev0, v11: f32[6, n_tokens] @dev1, v12: f32[6, n_tokens] @dev2 = all_reduce v7, v8, v9
v13: f32[6, n_tokens] @dev0 = mul v10, v4
v14: f32[6, n_tokens] @dev1 = mul v11, v8
v15: f32[6, n_tokens] @dev2 = mul v12, v9
v16: f32[2, n_tokens] @dev0, v17: f32[3, n_tokens] @dev1, v18: f32[1, n_tokens] @dev2 = reduce_scatter v13, v14, v15 {axis = 0, counts = [2, 3, 1]}
v19: f32[6, n_tokens] @dev0, v20: f32[6, n_tokens] @dev1, v21: f32[6, n_tokens] @dev2 = all_gather v16, v17, v18 {axis = 0}
v22: f32[6, n_tokens] @dev2 = copy v20
v23: f32[6, n_tokens] @dev2 = add v22, v21
v24: f32[6, n_tokens] @dev0 = copy v23
v25: f32[6, n_tokens] @dev0 = add v24, v19
v26: f32[6, n_tokens] @host = copy v25
v27: f32[18, 1] @dev0, v28: f32[18, 2] @dev1, v29: f32[18, 3] @dev2 = all_to_all v0, v1, v2 {cut = 1, join = 0, counts = [1, 2, 3]}
v30: f32[18, 3] @host = copy v29

output "sums" = v26
output "parts" = v30
"#;

fn program() -> Arc<Program> {
    let parsed = parse(EXCHANGES).unwrap_or_else(|e| panic!("{}", e[0]));
    let graph = Verified::new(parsed.graph).unwrap_or_else(|e| panic!("{e}"));
    let of = |n| BatchShape {
        most: Bindings::default().with(Symbol::NTokens, n),
    };
    let program = assemble(&graph, &[of(1), of(5)], &CudaTarget).expect("a small program");
    verify(&program).unwrap_or_else(|e| panic!("{}", e[0]));
    Arc::new(program)
}

fn weights() -> MemoryWeights {
    let mut out = MemoryWeights::new();
    for name in ["a", "b", "c"] {
        let random = Random::new(name, 0);
        let values: Vec<f32> = (0..36).map(|_| random.real() as f32).collect();
        out.insert_f32(name, [6, 6, 1, 1], &values);
    }
    out
}

fn run<E: Executor>(executor: &mut E, tokens: u64) -> Vec<f64> {
    let sizes = Bindings::default().with(Symbol::NTokens, tokens);
    let mut outputs = Outputs::new(executor.interface());
    let mut batch = BatchRun::new(&sizes);
    let mut host = |_: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
        let dims = Shape::of(ty, &sizes)?.dims;
        let random = Random::new("x", tokens);
        let values = (0..6 * tokens).map(|_| random.real() as f32).collect();
        Tensor::new(dims, Data::F32(values))
    };
    executor
        .run_phase(&mut batch, &mut host, &mut outputs)
        .unwrap_or_else(|e| panic!("{e}"));
    let output = |i: usize| {
        outputs
            .get(i)
            .expect("an output")
            .reals()
            .expect("reals")
            .to_vec()
    };
    [output(0), output(1)].concat()
}

fn devices(links: Links, seed: u64) -> Option<TestDriver> {
    TestDriver::new(EmulatedOptions {
        devices: 3,
        links,
        seed,
        build: Build::Checked,
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..EmulatedOptions::default()
    })
}

#[test]
fn devices_exchange_with_and_without_links() {
    let (program, weights) = (program(), weights());
    let reference = ProgramInterpreter::new(&program, &weights, Options::default(), 1);
    let mut reference = reference.expect("the program loads");
    for links in [Links::Peers, Links::HostOnly] {
        for seed in 0..4 {
            let Some(driver) = devices(links, seed) else {
                return;
            };
            let options = CudaOptions::with_threads(1);
            let executor = CudaExecutor::new(Arc::clone(&program), &weights, driver, options);
            let mut executor = executor.unwrap_or_else(|e| panic!("{links:?}: {e}"));
            for tokens in [1, 4, 1, 5] {
                let wanted = run(&mut reference, tokens);
                let found = run(&mut executor, tokens);
                assert_eq!(found.len(), wanted.len());
                for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
                    let near = (f - w).abs() <= 1e-5 * w.abs().max(1.0);
                    assert!(
                        near,
                        "{links:?}, seed {seed}, {tokens} tokens, {i}: {f}, not {w}"
                    );
                }
            }
        }
    }
}

#[test]
fn devices_may_be_one_card() {
    let (program, weights) = (program(), weights());
    let reference = ProgramInterpreter::new(&program, &weights, Options::default(), 1);
    let mut reference = reference.expect("the program loads");
    let wanted = run(&mut reference, 5);
    for (cards, links, why) in [
        ([0, 0, 0], Links::HostOnly, PeerFailure::NoLink),
        ([1, 0, 1], Links::HostOnly, PeerFailure::NoLink),
        ([2, 1, 0], Links::HostOnly, PeerFailure::NoLink),
        ([1, 0, 1], Links::WrongData, PeerFailure::WrongData),
    ] {
        let Some(driver) = devices(links, 1) else {
            return;
        };
        let is_card = driver.is_card();
        let driver = DeviceMap::new(driver, &cards).expect("three cards");
        let options = CudaOptions::with_threads(1);
        let executor = CudaExecutor::new(Arc::clone(&program), &weights, driver, options);
        let mut executor = executor.unwrap_or_else(|e| panic!("{cards:?}: {e}"));
        let found = run(&mut executor, 5);
        let near = |(f, w): (&f64, &f64)| (f - w).abs() <= 1e-5 * w.abs().max(1.0);
        assert!(found.iter().zip(&wanted).all(near), "{cards:?}");
        // Cards have other links than the emulated devices.
        if is_card {
            continue;
        }
        let pairs = executor.no_peer_access();
        let other = |((a, b), found): &((u32, u32), PeerFailure)| a != b && *found == why;
        assert!(pairs.iter().all(other), "{pairs:?}");
        assert_eq!(pairs.is_empty(), cards == [0, 0, 0], "{pairs:?}");
    }
    let Some(driver) = devices(Links::Peers, 0) else {
        return;
    };
    let e = DeviceMap::new(driver, &[0, 3])
        .err()
        .expect("there is no fourth device");
    assert_eq!(e.to_string(), "cuda:3 does not exist: 3 devices found");
}

#[test]
fn devices_that_cannot_run_it_are_told_first() {
    let program = program();
    let bytes = |device: usize| -> u64 {
        let place = tpc_ir::Place::Device(tpc_ir::Device::new(device));
        let arenas = program.arenas.iter().filter(|a| a.place == place);
        arenas.map(|a| a.bytes).sum()
    };
    let most = (0..3).map(bytes).max().expect("three");
    for (cards, memory, capability, wanted) in [
        ([0, 1, 2], 1 << 20, (7, 0), Some("TPC0543")),
        ([0, 1, 2], 1 << 20, (13, 0), Some("TPC0543")),
        ([0, 1, 2], most - 1, (8, 6), Some("TPC0548")),
        // Each device fits alone, but the three devices together do not.
        ([1, 1, 1], most + 100, (8, 6), Some("TPC0548")),
        ([0, 1, 2], 1 << 20, (8, 6), None),
    ] {
        let driver = EmulatedDriver::new(EmulatedOptions {
            devices: 3,
            memory,
            capability,
            cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
            ..EmulatedOptions::default()
        });
        let driver = match driver {
            Err(DriverError::NoCompiler { .. }) => return,
            driver => driver.expect("devices"),
        };
        let driver = DeviceMap::new(driver, &cards).expect("three cards");
        let options = CudaOptions::with_threads(1);
        let executor =
            CudaExecutor::new(Arc::clone(&program), &MemoryWeights::new(), driver, options);
        let e = executor.expect_err("there are no weights");
        let none = matches!(e, ExecError::MissingWeight { .. });
        assert_eq!(none, wanted.is_none(), "{e}");
        if let Some(code) = wanted {
            assert_eq!(e.code().id, code, "{e}");
            assert!(e.to_string().contains("emulated device"), "{e}");
        }
    }
}

#[test]
fn fewer_devices_than_the_program_has_are_told() {
    let Some(driver) = devices(Links::Peers, 0) else {
        return;
    };
    drop(driver);
    let driver = EmulatedDriver::new(EmulatedOptions {
        devices: 2,
        ..EmulatedOptions::default()
    });
    let driver = driver.expect("there is a compiler");
    let options = CudaOptions::with_threads(1);
    let e = CudaExecutor::new(program(), &weights(), driver, options);
    let e = e.expect_err("a device is missing").to_string();
    assert!(e.contains("cuda:2") || e.contains("3 devices"), "{e}");
}

#[test]
fn too_little_memory_is_told_before_weights_are_read() {
    let driver = EmulatedDriver::new(EmulatedOptions {
        devices: 3,
        memory: 300,
        ..EmulatedOptions::default()
    });
    let driver = match driver {
        Err(DriverError::NoCompiler { .. }) => return,
        driver => driver.expect("devices"),
    };
    let options = CudaOptions::with_threads(1);
    // Weights are missing, but the memory error comes first.
    let e = CudaExecutor::new(program(), &MemoryWeights::new(), driver, options);
    let e = e.expect_err("not enough memory").to_string();
    assert!(e.contains("not enough memory"), "{e}");
}
