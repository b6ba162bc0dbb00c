//! The host's work per token: copies, launches and waits.

use std::sync::Arc;

use tpc_cuda::{CudaExecutor, CudaOptions, Device};
use tpc_cuda_emulator::{Build, EmulatedOptions, Links};
use tpc_ir::DType;
use tpc_runtime::{Batch, Predicted, Session};
use tpc_test_devices::{Calls, CountingDriver, GraphOrder, TestDriver};
use tpc_tests::goldens;

use super::{Subject, emulated};
use crate::support::{FileWeights, golden, name, one_by_one, placement, whole};

/// The bytes of a view in a frame.
const VIEW: usize = 56;

/// A model and its number of layers.
const MODELS: [(&str, usize); 2] = [("llama-dense", 2), ("gpt-oss-moe", 2)];

/// The maximum number of views that change between tokens, for a layer.
const VIEWS: usize = 12;

const TOKENS: usize = 5;

/// Returns the driver's calls of each token; `None` without a C++ compiler.
fn calls(subject: &Subject, devices: usize) -> Option<Vec<Calls>> {
    let driver = emulated(devices, 1, Build::Plain)?;
    let (driver, tally) = CountingDriver::new(driver);
    let program = Arc::clone(&subject.program);
    let weights = FileWeights(&subject.file);
    let executor = CudaExecutor::new(program, &weights, driver, CudaOptions::with_threads(1));
    let executor = executor.unwrap_or_else(|e| panic!("{e}"));
    let session = Session::with_executor(Box::new(executor), subject.config);
    let mut session = session.unwrap_or_else(|e| panic!("{e}"));
    tally.take();
    let tokens = subject.tokens.iter().enumerate().take(TOKENS);
    let each = tokens.map(|(i, token)| {
        one_by_one(&mut session, &[*token], i);
        tally.take()
    });
    Some(each.collect())
}

#[test]
fn a_token_copies_only_what_changed() {
    let models = goldens();
    for (model, layers) in MODELS {
        let path = models.iter().find(|p| name(p).starts_with(model));
        let path = path.unwrap_or_else(|| panic!("no golden of {model}"));
        let tokens = golden(path).tokens;
        for devices in [1, 2, 4] {
            let subject = Subject::new(path, &placement(devices, DType::F16), &tokens);
            let subject = subject.expect("it has a plan");
            let Some(tokens) = calls(&subject, devices) else {
                return;
            };
            for (i, calls) in tokens.iter().enumerate() {
                println!("{model} on {devices}, token {i}: {calls:?}");
                assert_eq!(calls.reads, [], "{model}, token {i}");
                // The second graph copies the logits.
                assert_eq!((calls.launches, calls.waits), (2, 1), "{model}, token {i}");
                if i == 0 {
                    continue;
                }
                for device in (0..devices as u32).map(Device) {
                    let writes = calls.writes.iter().filter(|(to, _)| *to == device);
                    let bytes: Vec<usize> = writes.map(|(_, bytes)| *bytes).collect();
                    assert!(bytes.len() <= 1, "{model}, {device}: {bytes:?}");
                    let sum: usize = bytes.iter().sum();
                    assert!(sum <= layers * VIEWS * VIEW, "{model}, {device}: {sum}");
                }
            }
        }
    }
}

/// Returns the two largest logits of each token, from all logits or found by the devices.
fn largest(session: &mut Session<CudaExecutor<TestDriver>>, by_devices: bool) -> Vec<Vec<u64>> {
    const COUNT: usize = 2;
    let bits = |(id, logit): (u32, f32)| u64::from(id) << 32 | u64::from(logit.to_bits());
    let tokens = [1_u32, 5, 2, 7, 1];
    let each = tokens.iter().enumerate().map(|(i, token)| {
        let batch = Batch::sequence(&[*token], i as u32, 0);
        let predicted = match by_devices {
            true => session.step_best(&batch, COUNT),
            false => session.step(&batch).map(Predicted::All),
        };
        let mut row: Vec<(u32, f32)> = match predicted.unwrap_or_else(|e| panic!("{e}")) {
            Predicted::Best(best) => {
                assert!(by_devices && best.rows() == 1);
                best.row(0).to_vec()
            }
            Predicted::All(all) => {
                assert!(!by_devices, "all logits were copied");
                let all = all.reals().expect("reals");
                (0..).zip(all.iter().map(|x| *x as f32)).collect()
            }
        };
        row.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        row.into_iter().take(COUNT).map(bits).collect()
    });
    each.collect()
}

#[test]
fn devices_find_the_largest_logits_of_models() {
    let models = goldens();
    for (model, _) in MODELS {
        let path = models.iter().find(|p| name(p).starts_with(model));
        let path = path.unwrap_or_else(|| panic!("no golden of {model}"));
        let tokens = golden(path).tokens;
        for devices in [1, 2, 3] {
            let subject = Subject::new(path, &placement(devices, DType::F16), &tokens);
            let subject = subject.expect("it has a plan");
            let Some(driver) = emulated(devices, 1, Build::Plain) else {
                return;
            };
            let mut session = subject.session(driver).unwrap_or_else(|e| panic!("{e}"));
            let all = largest(&mut session, false);
            session.clear().expect("states are cleared");
            let found = largest(&mut session, true);
            assert_eq!(found, all, "{model} on {devices}");
        }
    }
}

/// Returns the graph of a token; `None` without a C++ compiler.
fn token_graph(subject: &Subject, devices: usize, links: Links) -> Option<GraphOrder> {
    let driver = TestDriver::new(EmulatedOptions {
        devices,
        links,
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..EmulatedOptions::default()
    })?;
    let (driver, tally) = CountingDriver::new(driver);
    let program = Arc::clone(&subject.program);
    let weights = FileWeights(&subject.file);
    let executor = CudaExecutor::new(program, &weights, driver, CudaOptions::with_threads(1));
    executor.unwrap_or_else(|e| panic!("{e}"));
    // The graphs of the first batch shape: all logits, the largest logits, the token.
    let graphs = tally.graphs();
    graphs.into_iter().take(3).max_by_key(|graph| graph.kernels)
}

#[test]
fn a_reduction_joins_devices_once() {
    let models = goldens();
    for (model, _) in MODELS {
        let path = models.iter().find(|p| name(p).starts_with(model));
        let path = path.unwrap_or_else(|| panic!("no golden of {model}"));
        let tokens = golden(path).tokens;
        for (devices, links) in [
            (2, Links::Peers),
            (4, Links::Peers),
            (2, Links::HostOnly),
            (3, Links::HostOnly),
        ] {
            let subject = Subject::new(path, &placement(devices, DType::F16), &tokens);
            let subject = subject.expect("it has a plan");
            let Some(graph) = token_graph(&subject, devices, links) else {
                return;
            };
            let launches = &subject.program.launches;
            let reductions = launches.iter().filter(|l| l.places.len() > 1).count();
            println!("{model} on {devices} ({links:?}): {reductions} reductions, {graph:?}");
            // Each device waits for each other device.
            assert!(
                graph.joins <= devices * reductions,
                "{model} on {devices}: {graph:?}"
            );
            let crossings = devices * (devices - 1) * reductions;
            assert!(graph.crossings <= crossings, "{model}: {graph:?}");
        }
    }
}

/// Every access of a token and of a prompt is checked for races between devices, in several orders.
#[test]
fn devices_that_meet_in_reductions_do_not_race() {
    let models = goldens();
    let full = std::env::var("TPC_FULL").is_ok();
    for (i, (devices, links)) in [
        (2, Links::Peers),
        (3, Links::HostOnly),
        (4, Links::Peers),
        (2, Links::HostOnly),
        (3, Links::Peers),
        (4, Links::HostOnly),
    ]
    .into_iter()
    .enumerate()
    .take(if full { 6 } else { 3 })
    {
        let (model, _) = MODELS[i % MODELS.len()];
        let path = models.iter().find(|p| name(p).starts_with(model));
        let path = path.unwrap_or_else(|| panic!("no golden of {model}"));
        let tokens = &golden(path).tokens[..if full { 12 } else { 3 }];
        let subject = Subject::new(path, &placement(devices, DType::F16), tokens);
        let subject = subject.expect("it has a plan");
        let mut first = None;
        for seed in 0..if full { 5 } else { 1 } {
            let driver = TestDriver::new(EmulatedOptions {
                devices,
                links,
                seed,
                build: Build::Checked,
                cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
                ..EmulatedOptions::default()
            });
            let Some(driver) = driver else { return };
            let mut session = subject.session(driver).unwrap_or_else(|e| panic!("{e}"));
            let mut logits = one_by_one(&mut session, tokens, 0);
            session.clear().expect("states are cleared");
            logits.extend(whole(&mut session, tokens));
            let bits: Vec<u64> = logits.into_iter().map(f64::to_bits).collect();
            let known = first.get_or_insert_with(|| bits.clone());
            assert!(
                *known == bits,
                "{model} on {devices}, {links:?}, seed {seed}"
            );
        }
    }
}
