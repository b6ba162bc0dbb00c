//! Launches that fail: messages, dumps and replay.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use tpc_cuda::dump::{LaunchDump, parse as parse_dump};
use tpc_cuda::replay::{Replayed, replay};
use tpc_cuda::{Driver, LaunchMode, WatchedDriver};
use tpc_cuda_emulator::{FailingDriver, LaunchFault, PlantedLaunchFault};

/// Rows of a table, doubled.
const ROWS: &str = r#"tpir 1
graph "rows"
device dev0 "cuda:0"

v0 "table": f32[8, 16] @dev0 = weight {tensor = "table"}
v1 "ids": i32[n_tokens] @host = input {name = "ids"}
v2: i32[n_tokens] @dev0 = copy v1
v3 "picked": f32[8, n_tokens] @dev0 = get_rows v0, v2
v4 "doubled": f32[8, n_tokens] @dev0 = add v3, v3
v5: f32[8, n_tokens] @host = copy v4

output "rows" = v5
"#;

fn rows() -> Arc<Program> {
    let parsed = parse(ROWS).unwrap_or_else(|e| panic!("{}", e[0]));
    let graph = Verified::new(parsed.graph).unwrap_or_else(|e| panic!("{e}"));
    let shape = BatchShape {
        most: Bindings::default().with(Symbol::NTokens, 4),
    };
    let program = assemble(&graph, &[shape], &CudaTarget).expect("a small program");
    verify(&program).unwrap_or_else(|e| panic!("{}", e[0]));
    Arc::new(program)
}

/// Returns the number of the launch with this kernel.
fn launch_of(program: &Program, kernel: &str) -> u32 {
    let found = program.launches.iter().position(|l| l.kernel == kernel);
    found.unwrap_or_else(|| panic!("no launch of {kernel}")) as u32
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

fn executor<D: Driver>(driver: D, mode: LaunchMode) -> CudaExecutor<D> {
    let mut weights = MemoryWeights::new();
    let values: Vec<f32> = (0..128).map(|i| i as f32).collect();
    weights.insert_f32("table", [8, 16, 1, 1], &values);
    let options = CudaOptions {
        mode,
        ..CudaOptions::with_threads(1)
    };
    CudaExecutor::new(rows(), &weights, driver, options).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs a batch with these ids.
fn pick<D: Driver>(executor: &mut CudaExecutor<D>, ids: &[i64]) -> Result<Vec<f64>, ExecError> {
    let sizes = Bindings::default().with(Symbol::NTokens, ids.len() as u64);
    let mut outputs = Outputs::new(executor.interface());
    let mut batch = BatchRun::new(&sizes);
    let mut host = |_: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
        Tensor::new(Shape::of(ty, &sizes)?.dims, Data::Int(ids.to_vec()))
    };
    executor.run_phase(&mut batch, &mut host, &mut outputs)?;
    Ok(outputs.get(0).expect("an output").reals()?.to_vec())
}

fn planted(fault: LaunchFault, launch: u32) -> Option<FailingDriver<TestDriver>> {
    planted_with(Links::Peers, fault, launch)
}

fn planted_with(
    links: Links,
    fault: LaunchFault,
    launch: u32,
) -> Option<FailingDriver<TestDriver>> {
    let driver = devices(links, 0)?;
    Some(FailingDriver::new(
        driver,
        Some(PlantedLaunchFault { fault, launch }),
    ))
}

/// Reads the only dump of a folder.
fn only_dump(folder: &Path) -> LaunchDump {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    let [path] = paths.as_slice() else {
        panic!("{paths:?}");
    };
    let bytes = std::fs::read(path).expect("a dump");
    let dump = parse_dump(bytes).unwrap_or_else(|e| panic!("{e}"));
    dump.check_source().unwrap_or_else(|e| panic!("{e}"));
    dump
}

fn replayed(dump: &LaunchDump) -> Replayed {
    let mut driver = devices(Links::Peers, 0).expect("there is a compiler");
    replay(dump, &mut driver).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn an_index_out_of_range_is_dumped_and_replayed() {
    let Some(driver) = devices(Links::Peers, 0) else {
        return;
    };
    let folder = folder("index");
    let executor = executor(driver, LaunchMode::Stepped);
    let mut executor = executor.with_dump_folder(folder.clone());
    let good = pick(&mut executor, &[1, 15]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        good[..9],
        [16.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 240.0]
    );
    assert!(!folder.exists(), "a dump without a fault");
    let e = pick(&mut executor, &[1, 99]).expect_err("row 99 of 16");
    assert_eq!(e.code().id, "TPC0506");
    let launch = launch_of(&rows(), "get_rows");
    let text = e.to_string();
    for part in [
        &*format!("launch {launch} on cuda:0 (kernel get_rows_"),
        "op get_rows, tensor `picked` (v3), f32 8×2)",
        &format!("which `tpc replay {}", folder.display()),
        "row 99 is out of range: expected 0 to 16",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let dump = only_dump(&folder);
    assert_eq!(
        dump.header.fault,
        "row 99 is out of range: expected 0 to 16, exclusive"
    );
    assert_eq!(replayed(&dump).fault, Some((99, 16)));
    // With good ids, the launch ends.
    let mut cured = dump;
    let bytes = 99_i32.to_ne_bytes();
    let at = cured
        .data
        .windows(4)
        .position(|w| w == bytes)
        .expect("the id");
    cured.data[at..at + 4].copy_from_slice(&2_i32.to_ne_bytes());
    let found = replayed(&cured);
    assert_eq!(found.fault, None);
    assert_eq!(found.results[0].range, Some((8.0, 23.0)));
    assert_eq!(found.results[0].nan, 0);
    // Later batches are right.
    assert_eq!(pick(&mut executor, &[1, 15]), Ok(good));
}

#[test]
fn an_index_out_of_range_in_a_whole_graph_is_named() {
    let Some(driver) = devices(Links::Peers, 0) else {
        return;
    };
    let mut executor = executor(driver, LaunchMode::Whole);
    let e = pick(&mut executor, &[-1]).expect_err("row -1");
    let text = e.to_string();
    let part = "op get_rows, tensor `picked` (v3), f32 8), which `--dump-on-fault DIR` saves";
    assert!(text.contains(part), "{text}");
}

#[test]
fn a_failed_device_names_the_launch_only_with_dumps() {
    let program = rows();
    let kernels = [("get_rows", "get_rows_"), ("add", "binary_")];
    for (fault, code, what) in [
        (
            LaunchFault::IllegalAddress,
            "TPC0558",
            "illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)",
        ),
        (
            LaunchFault::DeviceLost,
            "TPC0559",
            "lost the device (CUDA_ERROR_UNKNOWN)",
        ),
    ] {
        for (op, kernel) in kernels {
            let launch = launch_of(&program, op);
            let Some(driver) = planted(fault, launch) else {
                return;
            };
            let folder = folder(&format!("{code}-{op}"));
            let executor = executor(driver, LaunchMode::Stepped);
            let mut executor = executor.with_dump_folder(folder.clone());
            let e = pick(&mut executor, &[3, 2]).expect_err("the device fails");
            let text = e.to_string();
            assert_eq!(e.code().id, code, "{text}");
            let name = format!("launch {launch} on cuda:0 (kernel {kernel}");
            let op = format!("op {op}, tensor `");
            for part in [&*name, &op, "f32 8×2)", "tpc replay", what] {
                assert!(text.contains(part), "{part}: {text}");
            }
            let found = replayed(&only_dump(&folder));
            assert_eq!((found.fault, found.results.len()), (None, 1));
            // The device stays unusable.
            assert!(pick(&mut executor, &[3, 2]).is_err());
        }
        let driver = planted(fault, launch_of(&program, "add")).expect("a compiler");
        let mut executor = executor(driver, LaunchMode::Whole);
        let e = pick(&mut executor, &[3, 2]).expect_err("the device fails");
        assert_eq!(e.code().id, code);
        let text = e.to_string();
        assert!(text.contains("The launch is unknown"), "{text}");
    }
}

#[test]
fn a_launch_that_does_not_end_is_named() {
    let launch = launch_of(&rows(), "add");
    let Some(driver) = planted(LaunchFault::Hang, launch) else {
        return;
    };
    let driver = WatchedDriver::new(driver, Duration::from_secs(5));
    let folder = folder("hang");
    let executor = executor(driver, LaunchMode::Stepped);
    let mut executor = executor.with_dump_folder(folder.clone());
    let e = pick(&mut executor, &[3]).expect_err("the launch hangs");
    assert_eq!(e.code().id, "TPC0577");
    let text = e.to_string();
    for part in [
        "(kernel binary_",
        "tensor `doubled` (v4), f32 8)",
        "did not end within 5 s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        replayed(&only_dump(&folder)).results[0].range,
        Some((48.0, 62.0))
    );
    let again = pick(&mut executor, &[3]).expect_err("the driver is gone");
    assert_eq!(again.code().id, "TPC0577");
}

#[test]
fn every_launch_of_exchanging_devices_replays_alone() {
    let program = program();
    let launches = 0..program.launches.len() as u32;
    for (launch, links) in launches.flat_map(|l| [(l, Links::Peers), (l, Links::HostOnly)]) {
        let fault = LaunchFault::IllegalAddress;
        let Some(driver) = planted_with(links, fault, launch) else {
            return;
        };
        let folder = folder(&format!("each-{launch}"));
        let options = CudaOptions {
            mode: LaunchMode::Stepped,
            ..CudaOptions::with_threads(1)
        };
        let executor = CudaExecutor::new(Arc::clone(&program), &weights(), driver, options);
        let executor = executor.unwrap_or_else(|e| panic!("{e}"));
        let mut executor = executor.with_dump_folder(folder.clone());
        let sizes = Bindings::default().with(Symbol::NTokens, 3);
        let mut outputs = Outputs::new(executor.interface());
        let mut host = |_: &InputKind, ty: &TensorType| -> Result<Tensor, ExecError> {
            Tensor::new(Shape::of(ty, &sizes)?.dims, Data::F32(vec![1.0; 18]))
        };
        let ran = executor.run_phase(&mut BatchRun::new(&sizes), &mut host, &mut outputs);
        // Host launches do not run kernels, so their faults never occur.
        let Err(e) = ran else { continue };
        assert_eq!(e.code().id, "TPC0558", "{e}");
        let found = replayed(&only_dump(&folder));
        assert_eq!(found.fault, None);
        assert!(
            found.results.iter().all(|r| r.nan == 0),
            "launch {launch}: {found:?}"
        );
    }
}
