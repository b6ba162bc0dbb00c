//! Random configurations of all models: tpc must plan and prove each one, or refuse it with a reason that the user can
//! act on. Some small models are also run, whole and divided.
//!
//! A configuration follows from its seed; a failure prints the command line. `TPC_CASES` sets the configurations per
//! test, `TPC_SEED` the first seed, and `TPC_MODEL` selects models by name.

mod case;
mod known;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tpc_core::pipeline::{CompiledModel, compile};
use tpc_gguf::GgufFile;
use tpc_models::ARCHS;
use tpc_numeric::{Feed, compare, shrink};
use tpc_tests::{Sweep, goldens, headers};

use super::random::Rng;
use super::synthetic::try_make;
use case::Case;

/// One configuration in this many is also run.
const RUN_ONE_IN: u64 = 25;
const SHOWN: usize = 40;

enum Outcome {
    Proved,
    Refused(&'static str),
    Fault(String),
}

fn outcome(file: &GgufFile, case: &Case, runs: bool) -> Outcome {
    let Some(placement) = case.placement() else {
        return Outcome::Refused("the options");
    };
    let compiled = match compile(file, &placement) {
        Ok(compiled) => compiled,
        Err(d) if d[0].code == "TPC0390" => return Outcome::Fault(format!("TPC0390: {}", d[0])),
        Err(d) => return Outcome::Refused(d[0].code.id),
    };
    if let Err(r) = &compiled.proof {
        return Outcome::Fault(format!("TPC0391: {r}"));
    }
    match runs {
        true => run(&compiled).map_or(Outcome::Proved, Outcome::Fault),
        false => Outcome::Proved,
    }
}

/// Runs the small model with the same splits, and returns the difference, if any.
fn run(compiled: &CompiledModel) -> Option<String> {
    let shrunk = shrink(compiled).ok().filter(|s| s.departure.is_none())?;
    let feed = Feed::Tokens(shrunk.window);
    let d = compare(&shrunk, &feed).err()?;
    (d.code == "TPC0394").then(|| format!("the numbers differ: {d}"))
}

#[derive(Default)]
struct Tally {
    proved: u64,
    refused: BTreeMap<&'static str, u64>,
    faults: Vec<String>,
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Checks `count` configurations. `open` returns a model and its name for a random number.
fn campaign(
    what: &str,
    count: u64,
    open: &(dyn Fn(&mut Rng) -> Option<(String, GgufFile)> + Sync),
) {
    let asked = number("TPC_CASES");
    let (count, first) = (asked.unwrap_or(count), number("TPC_SEED").unwrap_or(0));
    let tally = Mutex::new(Tally::default());
    let next = AtomicU64::new(first);
    // Only a requested campaign uses all processors.
    let workers = match asked.is_some() || Sweep::asked() == Sweep::Full {
        true => std::thread::available_parallelism().map_or(1, usize::from),
        false => 1,
    };
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return;
            }
            let mut rng = Rng::new(seed.wrapping_mul(0x1234_5677) ^ 0xCA4E);
            let Some((name, file)) = open(&mut rng) else {
                continue;
            };
            let layers = layers(&file);
            let case = Case::random(&mut rng, layers);
            let runs = seed.is_multiple_of(RUN_ONE_IN);
            let found = catch_unwind(AssertUnwindSafe(|| outcome(&file, &case, runs)));
            let found = found.unwrap_or_else(|_| Outcome::Fault("it panics".to_owned()));
            let mut tally = tally.lock().expect("no panic while it is held");
            match found {
                Outcome::Proved => tally.proved += 1,
                Outcome::Refused(code) => *tally.refused.entry(code).or_default() += 1,
                Outcome::Fault(why) => {
                    let said = format!("seed {seed}: {why}\n    {}", case.command(&name));
                    eprintln!("{said}");
                    tally.faults.push(said);
                }
            }
        }
    };
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(work);
        }
    });
    let tally = tally.into_inner().expect("no panic while it is held");
    println!(
        "{what}: {} proved, refused {:?}, {} faults",
        tally.proved,
        tally.refused,
        tally.faults.len()
    );
    let shown: Vec<&String> = tally.faults.iter().take(SHOWN).collect();
    assert!(
        shown.is_empty(),
        "{} faults: {shown:#?}",
        tally.faults.len()
    );
    assert!(
        tally.proved * 2 > count,
        "only {} of {count} were planned",
        tally.proved
    );
}

fn layers(file: &GgufFile) -> u64 {
    let metadata = file.header().metadata();
    let arch = metadata.get_str("general.architecture").ok().flatten();
    let key = format!("{}.block_count", arch.unwrap_or_default());
    metadata.get_u64(&key).ok().flatten().unwrap_or(1)
}

fn pick(rng: &mut Rng, paths: &[PathBuf]) -> (String, GgufFile) {
    let path = rng.pick(paths);
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let name = path.file_name().expect("a file name");
    (name.to_string_lossy().into_owned(), file)
}

fn asked(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let only = std::env::var("TPC_MODEL").unwrap_or_default();
    let is_asked = |p: &PathBuf| p.to_string_lossy().contains(&only);
    paths.into_iter().filter(is_asked).collect()
}

#[test]
fn random_configurations_of_goldens_are_proved() {
    let paths = asked(goldens());
    let count = Sweep::asked().pick(160, 25_000);
    campaign("goldens", count, &|rng| Some(pick(rng, &paths)));
}

#[test]
fn random_configurations_of_headers_are_proved() {
    let paths = asked(headers());
    let count = Sweep::asked().pick(12, 10_000);
    campaign("headers", count, &|rng| Some(pick(rng, &paths)));
}

/// Draws a specification of a small model with awkward sizes.
fn specification(rng: &mut Rng) -> String {
    let arch = ARCHS[(rng.next() % ARCHS.len() as u64) as usize].name;
    let mut spec = format!("{arch}-tiny:layers={}", rng.range(1, 3));
    let types = [
        "f32",
        "f16",
        "q8_0",
        "mixed",
        "mxfp4_moe",
        "iq4_nl",
        "q4_k_m",
    ];
    let options = [
        ("heads", ["2", "6", "8"]),
        ("kv_heads", ["1", "2", "4"]),
        ("ff", ["96", "320", "512"]),
        ("fused", ["1", "1", "1"]),
        ("biases", ["1", "1", "1"]),
        ("tied", ["1", "1", "1"]),
    ];
    for (key, values) in options {
        if rng.one_in(3) {
            spec += &format!(",{key}={}", rng.pick(&values));
        }
    }
    if rng.one_in(2) {
        spec += &format!(",type={}", rng.pick(&types));
    }
    spec
}

#[test]
fn random_configurations_of_synthetic_models_are_proved() {
    let count = Sweep::asked().pick(60, 10_000);
    campaign("synthetic", count, &|rng| {
        // Some architectures do not accept all sizes.
        (0..20).find_map(|_| {
            let spec = specification(rng);
            let file = try_make(&spec).ok()?;
            Some((format!("{spec}.gguf"), file))
        })
    });
}
