//! Caches divided by cells on executors: long texts agree with undivided caches, also in batches, after truncation and
//! context shift, and in another layout.

use std::path::{Path, PathBuf};

use tpc_core::golden::distance;
use tpc_core::pipeline::compile;
use tpc_core::placement::{CacheSplit, Placement};
use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_models::CACHE_TYPES;
use tpc_runtime::{Batch, Session};
use tpc_tests::{Sweep, goldens};

use crate::support::{behind, config, cpu_session, name, one_by_one, placement, plan, whole};

/// Kinds: MLA, grouped heads, windows, sinks, ALiBi, soft caps, recurrent layers.
const SAMPLE: [&str; 7] = [
    "deepseek2",
    "llama-dense",
    "gemma3",
    "gpt-oss",
    "bloom",
    "gemma2",
    "qwen35-dense",
];

/// Tokens in three blocks of cells.
const LONG: usize = 150;
/// The maximum NMSE from undivided caches: sums have another order, in f32.
const NEAR: f64 = 1e-6;

fn models() -> Vec<PathBuf> {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let sampled = |p: &Path| SAMPLE.iter().any(|s| name(p).starts_with(s));
    let mut all = goldens();
    all.retain(|p| name(p).contains(&only) && (sampled(p) || Sweep::asked() == Sweep::Full));
    all
}

fn tokens() -> Vec<u32> {
    (0..LONG as u32).map(|i| (i * 37 + i * i) % 100).collect()
}

fn by_cells(devices: usize, cache: DType) -> Placement {
    Placement {
        cache_split: CacheSplit::Cells,
        ..placement(devices, cache)
    }
}

fn session(path: &Path, placement: &Placement, sequences: usize) -> Session<CpuExecutor> {
    let plan = plan(path, placement);
    let config = config(&plan.1, LONG).with_sequences(sequences);
    cpu_session(&plan, config, [1, LONG], CpuOptions::with_threads(1))
}

fn near(name: &str, what: &str, want: &[f64], got: &[f64]) {
    let d = distance(want.iter().copied(), got.iter().copied());
    // A mixture may choose other experts for a token whose scores are nearly equal.
    let most = if name.contains("-moe-") { 1e-2 } else { NEAR };
    assert!(d.nmse <= most, "{name}, {what}: NMSE {:e}", d.nmse);
}

#[test]
fn long_texts_agree_with_undivided_caches() {
    let tokens = tokens();
    for (i, path) in models().iter().enumerate() {
        let name = name(path);
        let cache = [DType::F32, DType::F16][i % 2];
        let want = whole(&mut session(path, &placement(1, cache), 1), &tokens);
        let devices = 2 + i % 3;
        let mut divided = session(path, &by_cells(devices, cache), 1);
        let got = whole(&mut divided, &tokens);
        near(&name, "one batch", &want, &got);
        let mut divided = session(path, &by_cells(devices, cache), 1);
        let head = LONG - 5;
        let mut got = behind(&mut divided, &tokens[..head], 0);
        got.extend(one_by_one(&mut divided, &tokens[head..], head));
        near(&name, "token by token", &want, &got);
    }
}

#[test]
fn all_types_of_caches_agree() {
    let tokens = tokens();
    let mut compared = 0;
    for path in goldens() {
        let name = name(&path);
        if !["deepseek2", "llama-dense"]
            .iter()
            .any(|s| name.starts_with(s))
        {
            continue;
        }
        for cache in CACHE_TYPES {
            // Blocks of some types do not divide the model's heads.
            let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
            if compile(&file, &placement(1, cache)).is_err() {
                continue;
            }
            let want = whole(&mut session(&path, &placement(1, cache), 1), &tokens);
            let got = whole(&mut session(&path, &by_cells(2, cache), 1), &tokens);
            let d = distance(want.iter().copied(), got.iter().copied());
            // A value between two codes may be rounded to either.
            let most = match cache {
                DType::F32 if !name.contains("-moe-") => NEAR,
                _ => 1e-2,
            };
            assert!(d.nmse <= most, "{name}, {cache}: NMSE {:e}", d.nmse);
            compared += 1;
        }
    }
    assert!(compared >= 9, "only {compared} pairs");
}

#[test]
fn truncated_and_shifted_texts_agree() {
    let tokens = tokens();
    for path in models() {
        let name = name(&path);
        let run = |placement: &Placement| -> Option<Vec<f64>> {
            let mut s = session(&path, placement, 2);
            let mut out = behind(&mut s, &tokens[..130], 0);
            s.truncate(0, 100).ok()?;
            out.extend(behind(&mut s, &tokens[20..40], 100));
            if s.shift(0, 4, 40).is_ok() {
                out.extend(one_by_one(&mut s, &tokens[..3], 84));
            }
            Some(out)
        };
        let cache = DType::F32;
        match (run(&placement(1, cache)), run(&by_cells(3, cache))) {
            (Some(want), Some(got)) => near(&name, "truncated and shifted", &want, &got),
            (want, got) => assert_eq!(want.is_some(), got.is_some(), "{name}"),
        }
    }
}

#[test]
fn a_saved_session_runs_in_another_layout() {
    let tokens = tokens();
    for path in models() {
        let name = name(&path);
        let cache = DType::F32;
        let layouts = [placement(1, cache), by_cells(2, cache), by_cells(3, cache)];
        let mut reference: Option<Vec<f64>> = None;
        let mut saved: Option<Vec<u8>> = None;
        for layout in &layouts {
            let mut s = session(&path, layout, 1);
            match &saved {
                None => drop(behind(&mut s, &tokens[..140], 0)),
                Some(bytes) => {
                    s.load(7, bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
                }
            }
            let mut file = Vec::new();
            let texts = [(0, tokens[..140].to_vec())];
            if s.save(7, &texts, &mut file).is_err() {
                break;
            }
            saved = Some(file);
            let got = one_by_one(&mut s, &tokens[140..145], 140);
            match &reference {
                None => reference = Some(got),
                Some(want) => near(&name, "another layout", want, &got),
            }
        }
    }
}

#[test]
fn other_sequences_keep_the_bits() {
    let tokens = tokens();
    for path in models() {
        let name = name(&path);
        let run = |company: bool| {
            let plan = plan(&path, &by_cells(2, DType::F16));
            let config = config(&plan.1, 4 * LONG).with_sequences(2);
            let config = config
                .with_parts(2, 4 * LONG)
                .in_units(plan.1.programs.cell_unit);
            let options = CpuOptions::with_threads(1);
            let mut s = cpu_session(&plan, config, [1, LONG], options);
            if company {
                let batch = Batch::sequence(&tokens[..70], 0, 1);
                s.decode(&batch).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            let mut out = behind(&mut s, &tokens[..100], 0);
            out.extend(one_by_one(&mut s, &tokens[100..104], 100));
            out
        };
        assert!(run(false) == run(true), "{name}");
    }
}
