//! A random part of all models × devices × placements: tensors, caches and experts on the host, pipelines, uneven
//! shares. Some caches are quantised; some devices check every access.

use std::path::Path;

use tpc_core::golden::distance;
use tpc_core::placement::Placement;
use tpc_cuda_emulator::Build;
use tpc_ir::DType;
use tpc_tests::{Sweep, goldens};

use super::{ALONE, Subject, checked, devices, nmse};
use crate::cpu::{allowed, engine, exact};
use crate::random::Random;
use crate::support::{WAYS, golden, name, placed, placement};

/// Runs the model with the placement and returns the faults; `None` if the placement is impossible or there is no C++
/// compiler.
fn run(
    path: &Path,
    (count, way): (usize, &str),
    (seed, build): (u64, Build),
) -> Option<Vec<String>> {
    let golden = golden(path);
    let name = name(path);
    let subject = Subject::new(path, &placed(count, way), &golden.tokens)?;
    let driver = match build {
        Build::Plain => devices(count, seed)?,
        Build::Checked => checked(count, seed)?,
    };
    let (found, alone) = match subject.logits(&name, driver) {
        Ok(found) => found,
        Err(e) => return Some(vec![e.to_string()]),
    };
    let most = allowed(&name, engine(path, &golden, &name));
    let nmse = nmse(&name, golden.tokens.len(), &exact(&golden), &found);
    println!("{name} on {count} with {way:?} ({build:?}): NMSE {nmse:.2e}");
    let mut wrong = Vec::new();
    if nmse.is_nan() || nmse > most {
        wrong.push(format!("NMSE {nmse:e}, {most:e} allowed"));
    }
    if alone.is_nan() || alone > ALONE {
        wrong.push(format!("token by token differs by {alone:e}"));
    }
    Some(wrong)
}

/// Every fourth run uses checked devices.
#[test]
fn placed_models_agree_on_emulated_devices() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let every = Sweep::asked().pick(200, 10);
    let mut random = Random::new(29);
    let mut failed = Vec::new();
    let mut ran = 0;
    for path in goldens() {
        for count in 1..=4 {
            for way in WAYS {
                if random.below(every) != 0 || !name(&path).contains(&only) {
                    continue;
                }
                let build = if ran % 4 == 0 {
                    Build::Checked
                } else {
                    Build::Plain
                };
                let what = format!("{} on {count} with {way:?}", name(&path));
                if let Some(wrong) = run(&path, (count, way), (ran, build)) {
                    ran += 1;
                    failed.extend(wrong.iter().map(|w| format!("{what}: {w}")));
                }
            }
        }
    }
    println!("{ran} placements ran");
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
}

#[test]
fn caches_of_blocks_are_near_those_of_numbers() {
    let models = goldens();
    let path = models.iter().find(|p| name(p).starts_with("llama-dense"));
    let Some(path) = path else { return };
    let tokens = golden(path).tokens;
    for (i, (k, v)) in [
        (DType::Q8_0, DType::Q8_0),
        (DType::Q5_1, DType::Q4_0),
        (DType::Iq4Nl, DType::Q5_0),
        (DType::Bf16, DType::Q4_1),
    ]
    .into_iter()
    .enumerate()
    {
        let of = |k: DType, v: DType| {
            let placement = Placement {
                cache_type_v: v,
                ..placement(2, k)
            };
            let subject = Subject::new(path, &placement, &tokens).expect("a plan");
            let driver = devices(2, i as u64)?;
            Some(
                subject
                    .logits(&name(path), driver)
                    .unwrap_or_else(|e| panic!("{k}/{v}: {e}")),
            )
        };
        let (Some((exact, _)), Some((found, alone))) = (of(DType::F32, DType::F32), of(k, v))
        else {
            return;
        };
        let nmse = distance(exact, found).nmse;
        println!("{k}/{v}: NMSE {nmse:.2e}");
        assert!(nmse > 0.0 && nmse < 2e-2, "{k}/{v}: NMSE {nmse:e}");
        // Products of prompts round otherwise than those of a token, which moves some codes of the caches.
        assert!(
            alone <= ALONE.max(nmse),
            "{k}/{v}: token by token differs by {alone:e}"
        );
    }
}
