//! A random part of all models × devices × placements: splits, shares, layers, experts, caches and single tensors on
//! the host or one device.

use std::path::Path;

use tpc_core::golden::distance;
use tpc_tests::{Sweep, TENSOR_NAMES, goldens};

use super::{ALONE, BY_SIZE, Subject, allowed, engine, exact};
use crate::random::Random;
use crate::support::{WAYS, golden, name, placed};

/// Placements in addition to [`WAYS`].
const MORE: [&str; 12] = [
    "-sm none",
    "-sm none -mg 0",
    "-ngl 3",
    "-ngl 99 -nkvo",
    "-ncmoe 2",
    "-cmoe -nkvo",
    "-ncmoe 1 -sm layer",
    "-ts 1,3 -sm layer",
    "-ts 1,0,2 -nkvo",
    "-ot .*exps.*=CPU",
    "-ot .*norm.*=CPU -nkvo",
    "-ngl 1 -sm auto",
];
/// Random overrides per model and number of devices.
const OVERRIDES: usize = 8;

fn overridden(random: &mut Random, devices: usize) -> String {
    let layers = [r"blk\.0\.", r"blk\.1\.", r"blk\.\d*[02468]\.", ""];
    let places: &[&str] = match devices {
        1 => &["CPU", "CPU", "mirrored"],
        _ => &["CPU", "CPU", "CPU", "mirrored", "dev1"],
    };
    let of = |random: &mut Random, all: &[&'static str]| random.of(all).unwrap_or_default();
    let layer = of(random, &layers);
    let name = of(random, &TENSOR_NAMES);
    let place = random.of(places).unwrap_or_default();
    format!("-ot {layer}.*{name}.*={place}")
}

/// Runs the model with the placement and returns the faults; `None` if the placement is impossible.
fn run(path: &Path, devices: usize, way: &str) -> Option<Vec<String>> {
    let golden = golden(path);
    let name = name(path);
    let subject = Subject::new(path, &placed(devices, way), &golden.tokens)?;
    let found = match subject.logits(BY_SIZE) {
        Ok(found) => found,
        Err(e) => return Some(vec![e.to_string()]),
    };
    let most = allowed(&name, engine(path, &golden, &name));
    let nmse = distance(exact(&golden), found.iter().copied()).nmse;
    let mut wrong = Vec::new();
    if nmse.is_nan() || nmse > most {
        wrong.push(format!("NMSE {nmse:e}, {most:e} allowed"));
    }
    let alone = subject.alone(&found);
    if alone.is_nan() || alone > ALONE {
        wrong.push(format!("token by token differs by {alone:e}"));
    }
    Some(wrong)
}

#[test]
fn placed_models_agree_on_the_cpu() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let every = Sweep::asked().pick(150, 10);
    let mut random = Random::new(13);
    let mut failed = Vec::new();
    let (mut ran, mut refused) = (0, 0);
    for path in goldens() {
        for devices in 1..=4 {
            let own: Vec<String> = (0..OVERRIDES)
                .map(|_| overridden(&mut random, devices))
                .collect();
            let ways = WAYS.iter().chain(&MORE).copied();
            for way in ways.chain(own.iter().map(String::as_str)) {
                if random.below(every) != 0 || !name(&path).contains(&only) {
                    continue;
                }
                let what = format!("{} on {devices} with {way:?}", name(&path));
                match run(&path, devices, way) {
                    Some(wrong) => {
                        ran += 1;
                        failed.extend(wrong.iter().map(|w| format!("{what}: {w}")));
                    }
                    None => {
                        println!("{what}: no plan");
                        refused += 1;
                    }
                }
            }
        }
    }
    println!("{ran} placements ran, {refused} have no plan");
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
    assert!(
        !only.is_empty() || ran > 5 && refused * 10 <= ran,
        "{ran}, {refused}"
    );
}
