//! KV cache types: runs every pair of types for keys and values, on one device and on several.
//!
//! Each pair's error against f16 caches is compared with llama.cpp's (`kv-cache-error.json`): a quantised cache should
//! be at least as accurate. llama.cpp's figures come from one unknown sequence of 128 tokens. Other tokens change a
//! figure by 10 to 20 %, or several times if a router chooses another expert. Bounds on single pairs are therefore
//! wide; bounds on medians and sums are narrower.
//!
//! By default each model takes three pairs, different for each model, on two or three devices. `TPC_KV_TYPES=all` runs
//! all 81 pairs of every model on both and prints the figures.

use crate::support::verified;
use std::collections::BTreeMap;
use std::path::PathBuf;

use tpc_core::golden::distance;
use tpc_core::pipeline::compile_capture;
use tpc_core::placement::Placement;
use tpc_ggml::capture::CapturedGraph;
use tpc_ir::{DType, Op, Value};
use tpc_models::CACHE_TYPES;
use tpc_tests::{data, files, goldens, shared};

use super::support::{placement, plan, run};

/// The maximum NMSE from one device. Another order of sums may round a value to the neighbouring code, or make a router
/// choose another expert.
const AGAINST_UNSHARDED: f64 = 1e-7;
/// The number of tokens in a sequence, as in the measurements.
const TOKENS: usize = 128;
/// An upper bound for the error of f16 against f32. A figure of 0 means that f32 and f16 caches give equal results.
const HALF: f64 = 1e-7;

/// The measured error of each pair (`q8_0/q4_0`: keys, values), by model.
type Figures = BTreeMap<String, BTreeMap<String, f64>>;

fn figures() -> Figures {
    let mut folders = vec![data().join("ggml-meta")];
    folders.extend(shared().map(|s| s.join("peer")));
    let paths = files(&folders, "kv-cache-error.json");
    let text = std::fs::read_to_string(&paths[0]).expect("in the repository");
    serde_json::from_str(&text).expect("figures per model and pair")
}

fn golden_of(model: &str) -> Option<PathBuf> {
    let named = |p: &PathBuf| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned());
        name.is_some_and(|n| n.starts_with(&format!("{model}-")))
    };
    goldens().into_iter().find(named)
}

fn tokens(sequence: u64) -> Vec<u32> {
    let next = |x: &u64| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    let states = std::iter::successors(Some(sequence + 1), next).skip(1);
    let tokens = states.map(|x| ((x >> 33) % 128) as u32);
    tokens.take(TOKENS).collect()
}

fn caches(devices: usize, (k, v): (DType, DType)) -> Placement {
    Placement {
        cache_type_k: k,
        cache_type_v: v,
        ..placement(devices)
    }
}

struct Model {
    path: PathBuf,
    exact: Vec<Vec<f64>>,
}

impl Model {
    /// Opens a golden model; `None` if there is no file, or no plan for the architecture.
    fn open(name: &str, sequences: u64) -> Option<Model> {
        let path = golden_of(name)?;
        plan(&path, &placement(1))?;
        let mut model = Model {
            path,
            exact: Vec::new(),
        };
        let f16 = (DType::F16, DType::F16);
        model.exact = (0..sequences).map(|s| model.whole(f16, s)).collect();
        Some(model)
    }

    fn whole(&self, pair: (DType, DType), sequence: u64) -> Vec<f64> {
        let (file, compiled) = plan(&self.path, &caches(1, pair)).expect("lowered");
        run(&compiled.model.graph, &file, &compiled, &tokens(sequence))
    }

    /// Returns a pair's mean error over the sequences. Also runs the first sequence on these numbers of devices.
    fn error(&self, pair: (DType, DType), devices: &[usize]) -> f64 {
        let mut sum = 0.0;
        for (sequence, exact) in (0..).zip(&self.exact) {
            let whole = self.whole(pair, sequence);
            for &n in devices.iter().filter(|_| sequence == 0) {
                let what = format!("{} {}/{} on {n}", self.path.display(), pair.0, pair.1);
                let (file, compiled) = plan(&self.path, &caches(n, pair)).expect("lowered");
                let caches = compiled
                    .sharded
                    .insts()
                    .filter(|(_, i)| matches!(i.op, Op::State(_)));
                let is_split = |v: Value| compiled.sharded.value(v).sharding.is_split();
                let split = caches.into_iter().all(|(_, i)| is_split(i.results[0]));
                assert!(split, "{what}: a cache is whole");
                let got = run(&compiled.programs, &file, &compiled, &tokens(sequence));
                let d = distance(whole.iter().copied(), got);
                assert!(d.nmse <= AGAINST_UNSHARDED, "{what}: NMSE {:e}", d.nmse);
            }
            sum += distance(exact.iter().copied(), whole).nmse;
        }
        sum / self.exact.len() as f64
    }
}

fn all_asked() -> bool {
    std::env::var("TPC_KV_TYPES").is_ok_and(|v| v == "all")
}

type Measured = Vec<((DType, DType), f64, f64)>;

/// Returns the maximum ratio of measured to known errors, summed over the pairs with a type on one side.
fn worst_type(measured: &Measured) -> f64 {
    let of = |side: fn(&(DType, DType)) -> DType, t: DType| {
        let pairs = measured.iter().filter(|(pair, ..)| side(pair) == t);
        let (error, figure) = pairs.fold((0.0, 0.0), |(e, f), x| (e + x.1, f + x.2));
        error / f64::max(figure, HALF)
    };
    let sides = CACHE_TYPES
        .iter()
        .flat_map(|&t| [of(|p| p.0, t), of(|p| p.1, t)]);
    sides.fold(0.0, f64::max)
}

#[test]
fn every_pair_of_types_runs_split_and_rounds_no_worse_than_llama_cpp() {
    let mut tried = 0;
    for (m, (name, figures)) in figures().iter().enumerate() {
        let (all, experts) = (all_asked(), name.ends_with("-moe"));
        let Some(model) = Model::open(name, if all { 4 } else { 1 }) else {
            continue;
        };
        let n = CACHE_TYPES.len();
        let pairs: Vec<(usize, usize)> = if all {
            (0..n * n).map(|i| (i / n, i % n)).collect()
        } else {
            (0..3)
                .map(|j| ((m + 3 * j) % n, (2 * m + 4 * j + 4) % n))
                .collect()
        };
        let largest = figures.values().copied().fold(0.0, f64::max);
        let mut measured = Measured::new();
        for (i, j) in pairs {
            let pair = (CACHE_TYPES[i], CACHE_TYPES[j]);
            let figure = figures[&format!("{}/{}", pair.0, pair.1)];
            let devices: &[usize] = if all { &[2, 3] } else { &[2 + (i + j) % 2] };
            let error = model.error(pair, devices);
            println!(
                "{name} {}/{}: {error:.3e}, llama.cpp {figure:.3e}",
                pair.0, pair.1
            );
            // One different expert can change a pair's figure by a multiple.
            let bound = match (experts, all) {
                (true, _) => 2.0 * largest,
                (false, true) => 1.25 * figure,
                (false, false) => 1.5 * figure,
            };
            let what = format!("{name} {}/{}", pair.0, pair.1);
            assert!(
                error <= bound.max(HALF),
                "{what}: {error:e}, not {figure:e}"
            );
            measured.push((pair, error, figure));
        }
        if all {
            let worst = worst_type(&measured);
            println!("{name}: at worst {worst:.2} of llama.cpp's error");
            assert!(worst <= if experts { 2.0 } else { 1.2 }, "{name}: {worst}");
            // Use the median: with one different expert, a pair has hundreds of times the usual error.
            let mut quotients: Vec<f64> =
                measured.iter().map(|(_, e, f)| e / f.max(HALF)).collect();
            quotients.sort_by(f64::total_cmp);
            let median = quotients[quotients.len() / 2];
            assert!(
                median <= if experts { 2.0 } else { 1.1 },
                "{name}: {median}"
            );
        }
        tried += 1;
    }
    assert!(tried >= 4, "the repository has four of the models");
}

/// Quantised rows with heads of 48 elements: a device with an odd number of heads would hold part of a block.
#[test]
fn no_block_of_a_cache_is_cut_where_blocks_run_across_heads() {
    let text = include_str!("../../filetests/lint/blocks-across-heads.tpir");
    let parsed = tpc_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e[0]));
    let captured = CapturedGraph {
        graph: verified(parsed.graph),
        batch: Vec::new(),
        n_layer: 1,
        lines: Vec::new(),
        notes: Vec::new(),
        records: Vec::new(),
        leaves: Vec::new(),
        results: Vec::new(),
    };
    for devices in [2, 3, 4, 5] {
        let compiled = compile_capture(&captured, &placement(devices)).expect("it can be planned");
        let heads = compiled.sharded.classes.iter().find(|c| c.size == 8);
        let ranges = &heads.expect("heads are split").ranges;
        let lens: Vec<u64> = ranges.iter().map(|r| r.len).collect();
        assert_eq!(lens.iter().sum::<u64>(), 8, "{lens:?}");
        assert!(lens.iter().all(|n| n % 2 == 0), "{lens:?}");
        assert!(
            lens.iter().filter(|&&n| n > 0).count() >= devices.min(3),
            "{lens:?}"
        );
    }
}
