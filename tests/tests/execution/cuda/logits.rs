//! Golden models on one to four devices.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tpc_ir::DType;
use tpc_tests::goldens;

use super::{ALONE, Subject, devices, nmse};
use crate::cpu::{allowed, engine, exact};
use crate::support::{golden, name, placement};

/// Returns the faults of a model on one to four devices; `None` without a C++ compiler.
fn check(path: &Path, seed: usize) -> Option<Vec<String>> {
    let mut failed = Vec::new();
    let name = name(path);
    let golden = golden(path);
    let exact = exact(&golden);
    let most = allowed(&name, engine(path, &golden, &name));
    for count in 1..=4 {
        let what = format!("{name} on {count}");
        let driver = devices(count, (4 * seed + count) as u64)?;
        let subject = Subject::new(path, &placement(count, DType::F16), &golden.tokens);
        let subject = subject.expect("it has a plan");
        match subject.logits(&name, driver) {
            Ok((found, alone)) => {
                let nmse = nmse(&name, golden.tokens.len(), &exact, &found);
                println!("{what}: NMSE {nmse:.2e}, {most:.2e} allowed, alone {alone:.2e}");
                if nmse.is_nan() || nmse > most {
                    failed.push(format!("{what}: NMSE {nmse:e}, {most:e} allowed"));
                }
                if alone.is_nan() || alone > ALONE {
                    failed.push(format!("{what}: token by token differs by {alone:e}"));
                }
            }
            Err(e) => failed.push(format!("{what}: {e}")),
        }
    }
    Some(failed)
}

#[test]
fn golden_models_agree_on_emulated_devices() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut models = goldens();
    models.retain(|path| name(path).contains(&only));
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(models.len()) {
            scope.spawn(|| {
                while let Some((i, path)) = models
                    .iter()
                    .enumerate()
                    .nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let Some(wrong) = check(path, i) else { return };
                    failed.lock().expect("no panic before").extend(wrong);
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
}
