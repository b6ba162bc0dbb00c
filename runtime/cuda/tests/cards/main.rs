//! Tests the card driver with a fake `libcuda`: passed arguments, and errors.
//!
//! The loader finds the library only at process start, so each test runs itself again. Skipped without a C compiler, or
//! if a real driver is installed.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tpc_cuda::{
    Args, CopyNode, Cubin, CudaDriver, Device, Driver, DriverError, Edge, EdgeKind, Endpoint,
    GraphSpec, KernelNode, Memory, Module, PeerFailure, SetNode, Side, Work,
};

const INSIDE: &str = "TPC_FAKE_DRIVER";

fn library(test: &str, lacking: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-{test}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = include_str!("fake.c");
    let source = match lacking {
        "" => source.to_owned(),
        name => source.replace(&format!("R {name}("), &format!("R other_{name}(")),
    };
    let path = folder.join("fake.c");
    std::fs::write(&path, source).expect("a file");
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-w", "-o"])
        .arg(folder.join("libcuda.so"))
        .arg(&path)
        .status();
    match made {
        Ok(status) => assert!(status.success()),
        Err(e) => {
            tpc_op_cases::skip(format!("no C compiler: {e}"));
            return None;
        }
    }
    Some(folder)
}

/// Runs the test `name` again in a process with the library, which calls `test`.
fn with(name: &str, lacking: &str, variables: &[(&str, &str)], test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    let Some(folder) = library(name, lacking) else {
        return;
    };
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", folder);
    command.envs(variables.iter().copied());
    let out = command.output().expect("this test runs");
    let text = String::from_utf8_lossy(&out.stdout) + String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.contains("1 passed"), "{text}");
}

fn driver() -> Result<CudaDriver, DriverError> {
    CudaDriver::new(
        &[0, 1],
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("cards"),
    )
}

fn at(memory: Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

fn module(code: &[u8]) -> Module {
    let mut module = Module::new("kernels", "");
    module.cubins.push(Cubin {
        target: "sm_90a".into(),
        code: Arc::from(code),
    });
    module
}

#[test]
fn an_old_driver_is_told() {
    with(
        "an_old_driver_is_told",
        "",
        &[("FAKE_VERSION", "12020")],
        || match driver().err() {
            Some(e @ DriverError::TooOld { .. }) => {
                assert_eq!(
                    e.to_string(),
                    "the CUDA driver is too old: it supports CUDA 12.2, tpc needs 12.3"
                );
                assert_eq!(e.code().id, "TPC0541");
            }
            other => panic!("{other:?}"),
        },
    );
}

#[test]
fn a_missing_call_is_told() {
    let name = "cuGraphAddDependencies_v2";
    with("a_missing_call_is_told", name, &[], || {
        match driver().err() {
            Some(DriverError::TooOld { what }) => {
                assert_eq!(what, format!("it supports CUDA 13.0, but lacks {name}"));
            }
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn no_device_is_told() {
    with(
        "no_device_is_told",
        "",
        &[("FAKE_DEVICES", "0")],
        || match driver().err() {
            Some(DriverError::Missing { what }) => {
                assert_eq!(what, "the driver reports 0 devices");
            }
            other => panic!("{other:?}"),
        },
    );
}

#[test]
fn devices_without_links_are_told() {
    with(
        "devices_without_links_are_told",
        "",
        &[("FAKE_PEERS", "0")],
        || {
            let mut driver = driver().expect("two devices");
            driver.grant(Device(0), Device(0)).expect("its own memory");
            let error = driver.grant(Device(0), Device(1)).expect_err("no link");
            assert_eq!(
                error.to_string(),
                "cuda:0 cannot access the memory of cuda:1: the driver reports no peer access"
            );
        },
    );
}

#[test]
fn peers_that_return_wrong_data_are_not_used() {
    with(
        "peers_that_return_wrong_data_are_not_used",
        "",
        &[("FAKE_WRONG_PEERS", "1")],
        || {
            let mut driver = driver().expect("two devices");
            driver.grant(Device(1), Device(1)).expect("its own memory");
            match driver.grant(Device(0), Device(1)) {
                Err(DriverError::NoPeerAccess { why, .. }) => {
                    assert_eq!(why, PeerFailure::WrongData);
                }
                other => panic!("{other:?}"),
            }
            // The test's memory is freed.
            assert_eq!(driver.free_memory(Device(1)).expect("a device"), 1 << 20);
        },
    );
}

/// A write is seen by graphs launched after it and not by graphs launched before, although the stream does not wait for the
/// null stream and copies read their source late.
#[test]
fn writes_are_ordered_with_graphs() {
    let memory = &[("FAKE_MEMORY", "200000000")];
    with("writes_are_ordered_with_graphs", "", memory, || {
        let mut driver = driver().expect("two devices");
        // Longer than the page-locked memory, and not a multiple of it.
        const BYTES: usize = 20_000_001;
        let [written, first, second] =
            [(); 3].map(|()| driver.allocate(Device(1), BYTES as u64).expect("room"));
        let mut copying = |to: Memory| {
            let mut spec = GraphSpec::default();
            let copy = CopyNode {
                from: at(written),
                to: at(to),
                bytes: BYTES as u64,
            };
            spec.push("copy", Work::Copy(copy), &[]);
            driver.instantiate(spec).expect("a graph")
        };
        let graphs = [first, second].map(&mut copying);
        let pattern =
            |salt: usize| -> Vec<u8> { (0..BYTES).map(|i| (i * 31 / 7 + salt) as u8).collect() };
        for round in 0..3 {
            let patterns = [pattern(round), pattern(round + 100)];
            for (graph, bytes) in graphs.into_iter().zip(&patterns) {
                driver.write(at(written), bytes).expect("room");
                driver.launch(graph).expect("a launch");
            }
            let mut back = vec![0; BYTES];
            for (memory, bytes) in [first, second].into_iter().zip(&patterns) {
                driver.read(at(memory), &mut back).expect("room");
                assert!(back == *bytes, "round {round}");
            }
        }
        // Small writes, many in flight.
        for i in 0..1000_u32 {
            let place = Endpoint {
                address: written.address + u64::from(i) * 1000,
                ..at(written)
            };
            driver.write(place, &i.to_le_bytes()).expect("room");
        }
        driver.launch(graphs[0]).expect("a launch");
        driver.synchronize().expect("it ends");
        for i in 0..1000_u32 {
            let place = Endpoint {
                address: first.address + u64::from(i) * 1000,
                ..at(first)
            };
            let mut back = [0; 4];
            driver.read(place, &mut back).expect("room");
            assert_eq!(u32::from_le_bytes(back), i);
        }
    });
}

/// The fake driver's kernels take 3 ms, other nodes 1 ms.
#[test]
fn nodes_are_timed_one_after_another() {
    with("nodes_are_timed_one_after_another", "", &[], || {
        let mut driver = driver().expect("two devices");
        let module = driver.load(Device(0), &module(b"code")).expect("a module");
        let function = driver.function(module, "k").expect("a kernel");
        let told = driver.allocate(Device(0), 32).expect("room");
        let [from, to] = [(); 2].map(|()| driver.allocate(Device(1), 8).expect("room"));
        driver.write(at(from), &[7; 8]).expect("room");
        let copy = Work::Copy(CopyNode {
            from: at(from),
            to: at(to),
            bytes: 8,
        });
        let kernel = Work::Kernel(KernelNode {
            function,
            grid: [2, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
            args: Args::new().u64(told.address).u32(5),
        });
        let mut spec = GraphSpec::default();
        // The kernel comes first.
        spec.push("copy", copy, &[]);
        spec.push("kernel", kernel, &[]);
        spec.edges.push(Edge {
            from: 1,
            to: 0,
            kind: EdgeKind::Full,
        });
        let graph = driver.instantiate_timed(spec).expect("a graph");
        assert!(driver.node_times(graph).is_err(), "it has not run");
        driver.launch(graph).expect("a launch");
        let times = driver.node_times(graph).expect("times");
        assert_eq!(
            times.iter().map(Duration::as_millis).collect::<Vec<_>>(),
            [1, 3]
        );
        let mut back = [0; 8];
        driver.read(at(to), &mut back).expect("room");
        assert_eq!(back, [7; 8]);
        driver.discard(graph).expect("it has ended");
        let plain = driver.instantiate(GraphSpec::default()).expect("a graph");
        assert!(driver.node_times(plain).is_err(), "it is not timed");
    });
}

#[test]
fn code_for_other_devices_is_told() {
    with(
        "code_for_other_devices_is_told",
        "",
        &[("FAKE_MAJOR", "6")],
        || {
            let mut driver = driver().expect("two devices");
            let error = driver
                .load(Device(1), &module(b"code"))
                .expect_err("too old a device");
            assert_eq!(error.code().id, "TPC0543");
            assert!(
                error.to_string().contains("compute capability 6.0"),
                "{error}"
            );
        },
    );
}

/// Returns a cubin's header as NVRTC of this version writes it.
fn cubin(abi: u8, toolkit: &str) -> Vec<u8> {
    let mut code = b"\x7fELF\x02\x01\x01\x41".to_vec();
    code.push(abi);
    code.resize(20, 0);
    code.extend(129_u32.to_le_bytes());
    code.extend(
        format!("ptxas\0Cuda compilation tools, release {toolkit}, V{toolkit}.0\0").bytes(),
    );
    code
}

#[test]
fn code_for_newer_drivers_is_told() {
    with(
        "code_for_newer_drivers_is_told",
        "",
        &[("FAKE_VERSION", "12090"), ("TPC_NVRTC", "none")],
        || {
            let mut driver = driver().expect("two devices");
            let mut load = |abi, toolkit| driver.load(Device(0), &module(&cubin(abi, toolkit)));
            load(7, "12.9").expect("code of CUDA 12");
            load(8, "12.9").expect("the driver's version");
            let error = load(8, "13.0").expect_err("the driver is older");
            assert_eq!(error.code().id, "TPC0541");
            assert_eq!(
                error.to_string(),
                "the code of module kernels for sm_90a needs a driver for CUDA 13.0 (version 580 or newer); this driver \
                 supports CUDA 12.9"
            );
        },
    );
}

#[test]
fn launches_with_too_many_registers_are_told() {
    let limit = &[("FAKE_MAX_THREADS", "96")];
    with(
        "launches_with_too_many_registers_are_told",
        "",
        limit,
        || {
            let mut driver = driver().expect("two devices");
            let module = driver.load(Device(0), &module(b"code")).expect("a module");
            let function = driver.function(module, "k").expect("a kernel");
            let memory = driver.allocate(Device(0), 32).expect("room");
            let mut graph = |threads: u32| {
                let mut spec = GraphSpec::default();
                let kernel = KernelNode {
                    function,
                    grid: [1, 1, 1],
                    block: [threads, 1, 1],
                    shared_bytes: 0,
                    args: Args::new().u64(memory.address).u32(1),
                };
                spec.push("launch", Work::Kernel(kernel), &[]);
                driver.instantiate(spec)
            };
            graph(96).expect("within the registers");
            let error = graph(128).expect_err("too many");
            assert_eq!(
                error.to_string(),
                "a launch of kernel k has 128 threads per block, but its registers allow 96 on this device"
            );
        },
    );
}

#[test]
fn devices_and_memory() {
    with("devices_and_memory", "", &[], || {
        let mut driver = driver().expect("two devices");
        let names: Vec<&str> = driver.devices().iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["first", "second"]);
        let info = &driver.devices()[0];
        assert_eq!(
            (info.capability, info.multiprocessors, info.shared_per_block),
            ((9, 0), 132, 232_448)
        );
        driver.grant(Device(0), Device(1)).expect("a link");
        let memory = driver
            .allocate(Device(0), 1 << 19)
            .expect("half of the memory");
        driver.write(at(memory), &[7; 100]).expect("room");
        let mut back = [0; 100];
        driver.read(at(memory), &mut back).expect("room");
        assert_eq!(back, [7; 100]);
        let beyond = Endpoint {
            address: memory.address + (1 << 19) - 10,
            ..at(memory)
        };
        assert_eq!(
            driver
                .write(beyond, &[0; 11])
                .expect_err("beyond")
                .code()
                .id,
            "TPC0549"
        );
        match driver.allocate(Device(1), 1 << 20) {
            Err(DriverError::OutOfMemory {
                place,
                needed,
                free,
            }) => {
                assert_eq!((place.as_str(), needed, free), ("cuda:1", 1 << 20, 1 << 19));
            }
            other => panic!("{other:?}"),
        }
        driver.free(memory).expect("once");
        driver.free(memory).expect_err("twice");
        assert!(matches!(
            driver.allocate(Device(2), 1),
            Err(DriverError::NoDevice { .. })
        ));
    });
}

#[test]
fn graphs_pass_on_what_they_are_given() {
    with("graphs_pass_on_what_they_are_given", "", &[], || {
        let mut driver = driver().expect("two devices");
        assert!(matches!(
            driver.load(Device(0), &module(b"what")),
            Err(DriverError::Architecture { .. })
        ));
        let module = driver
            .load(Device(1), &module(b"code"))
            .expect("the module loads");
        assert!(matches!(
            driver.function(module, "none"),
            Err(DriverError::NoFunction { .. })
        ));
        let function = driver.function(module, "k").expect("the kernel exists");
        let notes: Vec<Memory> = (0..2)
            .map(|_| driver.allocate(Device(1), 32).expect("room"))
            .collect();
        let host = driver.allocate_host(64).expect("room");
        let kernel = |memory: &Memory, number: u32| {
            Work::Kernel(KernelNode {
                function,
                grid: [3, 1, 1],
                block: [64, 1, 1],
                shared_bytes: 100,
                args: Args::new().u64(memory.address).u32(number),
            })
        };
        let mut spec = GraphSpec::default();
        let first = spec.push("first", kernel(&notes[0], 5), &[]);
        let second = spec.push("second", kernel(&notes[1], 6), &[]);
        let (from, to, kind) = (first, second, EdgeKind::Programmatic);
        spec.edges.push(Edge { from, to, kind });
        let copy = CopyNode {
            from: at(notes[0]),
            to: at(host),
            bytes: 32,
        };
        let copied = spec.push("copy", Work::Copy(copy), &[second]);
        let empty = CopyNode {
            from: at(notes[0]),
            to: at(host),
            bytes: 0,
        };
        spec.push("nothing", Work::Copy(empty), &[second]);
        let end = Endpoint {
            side: Side::Host,
            address: host.address + 32,
        };
        spec.push(
            "set",
            Work::Set(SetNode {
                to: end,
                value: 9,
                bytes: 8,
            }),
            &[copied],
        );
        let (count, counts) = std::sync::mpsc::channel();
        let work = move || match count.send(()) {
            Ok(()) => Ok(()),
            Err(e) => Err(e.into()),
        };
        spec.push("host", Work::Host(Box::new(work)), &[copied]);
        let graph = driver.instantiate(spec).expect("a graph");
        for _ in 0..2 {
            driver.launch(graph).expect("a launch");
            driver.synchronize().expect("the graph ends");
        }
        assert_eq!(counts.try_iter().count(), 2);
        let mut told = [0; 40];
        driver.read(at(host), &mut told).expect("room");
        let words: Vec<u64> = told
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().expect("eight")))
            .collect();
        // The argument, grid with block and shared memory, the context of the second device, and five edges, one of
        // them programmatic.
        assert_eq!(words, [5, 3_064_100, 111, 501, 0x0909_0909_0909_0909]);
        driver.discard(graph).expect("once");
        driver.discard(graph).expect_err("twice");
        driver.launch(graph).expect_err("the graph was discarded");
    });
}

#[test]
fn work_of_the_host_that_fails_or_panics() {
    with("work_of_the_host_that_fails_or_panics", "", &[], || {
        let mut driver = driver().expect("two devices");
        let mut spec = GraphSpec::default();
        spec.push(
            "look up",
            Work::Host(Box::new(|| Err("no such row".into()))),
            &[],
        );
        spec.push("after", Work::Host(Box::new(|| panic!("it ran"))), &[]);
        let graph = driver.instantiate(spec).expect("a graph");
        driver.launch(graph).expect("a launch");
        let error = driver.synchronize().expect_err("the host fails");
        assert_eq!(error.to_string(), "look up: no such row");
        let mut spec = GraphSpec::default();
        spec.push("wild", Work::Host(Box::new(|| panic!("on purpose"))), &[]);
        let graph = driver.instantiate(spec).expect("a graph");
        driver.launch(graph).expect("a launch");
        assert_eq!(
            driver
                .synchronize()
                .expect_err("host work panics")
                .to_string(),
            "wild: host work panicked"
        );
        driver.synchronize().expect("the error is returned once");
    });
}

/// Launches an empty graph on a driver that returns this result for it.
fn failure(result: &str) -> DriverError {
    // The test runs alone in its process.
    let mut driver = driver().expect("two devices");
    let mut spec = GraphSpec::default();
    spec.push("nothing", Work::Join, &[]);
    let graph = driver.instantiate(spec).expect("a graph");
    driver.launch(graph).expect("a launch");
    let error = driver.synchronize().expect_err(result);
    // The failure stays.
    driver.synchronize().expect_err(result);
    error
}

#[test]
fn an_illegal_address_has_its_own_code() {
    let name = "an_illegal_address_has_its_own_code";
    with(name, "", &[("FAKE_SYNCHRONIZE", "700")], || {
        let error = failure("700");
        let expected = "running a graph failed: a kernel accessed an illegal address (CUDA_ERROR_ILLEGAL_ADDRESS)";
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.code().id, "TPC0558");
    });
}

#[test]
fn a_memory_error_of_a_card_has_its_own_code() {
    let name = "a_memory_error_of_a_card_has_its_own_code";
    with(name, "", &[("FAKE_SYNCHRONIZE", "214")], || {
        let error = failure("214");
        assert_eq!(error.code().id, "TPC0559", "{error}");
        assert!(error.to_string().contains("ECC"), "{error}");
    });
}

#[test]
fn a_refused_call_is_not_a_failed_device() {
    let name = "a_refused_call_is_not_a_failed_device";
    with(name, "", &[("FAKE_SYNCHRONIZE", "1")], || {
        assert_eq!(failure("1").code().id, "TPC0552");
    });
}
