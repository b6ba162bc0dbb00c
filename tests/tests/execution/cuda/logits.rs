//! Golden models on one to four devices.

use tpc_core::golden::distance;
use tpc_ir::DType;
use tpc_tests::goldens;

use super::{Subject, devices};
use crate::cpu::{ALONE, allowed, engine, exact};
use crate::support::{golden, name, placement};

#[test]
fn golden_models_agree_on_emulated_devices() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for (i, path) in goldens().into_iter().enumerate() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let golden = golden(&path);
        let exact = exact(&golden);
        let most = allowed(&name, engine(&path, &golden, &name));
        for count in 1..=4 {
            let what = format!("{name} on {count}");
            let Some(driver) = devices(count, (4 * i + count) as u64) else {
                return;
            };
            let subject = Subject::new(&path, &placement(count, DType::F16), &golden.tokens);
            let subject = subject.expect("it has a plan");
            match subject.logits(driver) {
                Ok((found, alone)) => {
                    let nmse = distance(exact.iter().copied(), found).nmse;
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
    }
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
}
