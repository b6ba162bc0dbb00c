//! The host's work per token: copies, launches and waits.

use std::sync::Arc;

use tpc_cuda::{CudaExecutor, CudaOptions, Device};
use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_runtime::Session;
use tpc_test_devices::{Calls, CountingDriver};
use tpc_tests::goldens;

use super::{Subject, emulated};
use crate::support::{FileWeights, golden, name, one_by_one, placement};

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
                assert_eq!((calls.launches, calls.waits), (1, 1), "{model}, token {i}");
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
