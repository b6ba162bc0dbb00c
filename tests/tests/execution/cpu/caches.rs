//! Pairs of K and V cache types.

use std::path::Path;

use tpc_core::golden::distance;
use tpc_core::pipeline::compile;
use tpc_core::placement::Placement;
use tpc_gguf::GgufFile;
use tpc_ir::{DType, Op};
use tpc_runtime::{ExecError, MemoryWeights, WeightData, WeightSource};
use tpc_tests::{Sweep, goldens};

use super::{ALONE, BY_SIZE, Subject};
use crate::random::Random;
use crate::support::{FileWeights, golden, name, placement};

const PAIRS: [(DType, DType); 3] = [
    (DType::Q8_0, DType::Q8_0),
    (DType::Q8_0, DType::Q4_0),
    (DType::Iq4Nl, DType::Iq4Nl),
];
/// The maximum NMSE from the reference. The CPU computes in f32, so a value between two codes may be rounded to either.
const FROM_REFERENCE: f64 = 1e-4;
/// A larger NMSE may be up to this multiple of the model's own change under nudged norms.
const FROM_ITSELF: f64 = 4.0;
/// The relative change of a nudged norm: a few f32 roundings.
const NUDGE: f32 = 1e-6;
/// One placement in this many may have a token whose router chooses another expert because of rounding.
const FLIPPED: usize = 20;

/// Returns the NMSE from `wanted`, with and without the worst token.
fn distances(wanted: &[f64], found: &[f64], tokens: usize) -> [f64; 2] {
    let each = wanted.len() / tokens;
    let lost =
        |(a, b): (&[f64], &[f64])| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum() };
    let lost: Vec<f64> = wanted
        .chunks(each)
        .zip(found.chunks(each))
        .map(lost)
        .collect();
    let squares: f64 = wanted.iter().map(|a| a * a).sum();
    let all: f64 = lost.iter().sum();
    let most = lost.iter().copied().fold(0.0, f64::max);
    [all / squares, (all - most) / squares]
}

/// A file's weights with norms changed by [`NUDGE`].
struct Nudged<'a>(FileWeights<'a>, MemoryWeights);

impl Nudged<'_> {
    fn new(file: &GgufFile) -> Nudged<'_> {
        let whole = FileWeights(file);
        let mut norms = MemoryWeights::new();
        let tensors = file.header().tensors().iter();
        for t in tensors.filter(|t| t.dtype == DType::F32 && t.name.contains("norm")) {
            let bytes = whole.weight(&t.name).expect("it is there").bytes;
            let mut random = Random::new(7);
            let mut nudged = |b: &[u8; 4]| {
                let sign = [-1.0, 1.0][random.below(2)];
                f32::from_le_bytes(*b) * (1.0 + sign * NUDGE)
            };
            let values: Vec<f32> = bytes.as_chunks().0.iter().map(&mut nudged).collect();
            norms.insert_f32(&t.name, t.ne, &values);
        }
        Nudged(whole, norms)
    }
}

impl WeightSource for Nudged<'_> {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        self.1.weight(tensor).or_else(|_| self.0.weight(tensor))
    }
}

#[derive(Default)]
struct Tally {
    ran: usize,
    refused: usize,
    flipped: Vec<String>,
    failed: Vec<String>,
}

impl Tally {
    fn run(&mut self, path: &Path, (k, v): (DType, DType), devices: usize) {
        let what = format!("{} {k}/{v} on {devices}", name(path));
        let tokens = golden(path).tokens;
        let placement = Placement {
            cache_type_v: v,
            ..placement(devices, k)
        };
        let Some(subject) = Subject::new(path, &placement, &tokens) else {
            // The cache's blocks do not divide this head.
            let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
            let refusal = compile(&file, &placement).err();
            let cured = refusal.is_some_and(|d| d[0].help.is_some());
            assert!(cured, "{what}: refused without a cure");
            self.refused += 1;
            return;
        };
        self.ran += 1;
        let executor = subject.executor(2, BY_SIZE);
        let executor = executor.unwrap_or_else(|e| panic!("{what}: {e}"));
        let wanted = subject.reference(executor.rounded_products());
        let found = subject
            .logits(BY_SIZE)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        let [from, others] = distances(&wanted, &found, tokens.len());
        println!("{what}: {from:.2e} from the reference");
        let graph = &subject.program.graph;
        let routed = graph.insts().any(|(_, i)| matches!(i.op, Op::MulMatId(_)));
        let mut most = FROM_REFERENCE;
        if from > most {
            let nudged =
                subject.reference_of(&Nudged::new(&subject.file), executor.rounded_products());
            let itself = distance(wanted.iter().copied(), nudged).nmse;
            println!("{what}: {itself:.2e} between references");
            most = most.max(FROM_ITSELF * itself);
        }
        let near = |distance: f64| distance <= most;
        if !near(from) {
            let far =
                format!("{what}: NMSE {from:e} from the reference, {others:e} without a token");
            match routed && near(others) {
                true => self.flipped.push(far),
                false => self.failed.push(far),
            }
        }
        let alone = subject.alone(&found);
        if alone.is_nan() || alone > ALONE {
            self.failed
                .push(format!("{what}: token by token differs by {alone:e}"));
        }
    }
}

/// The caches round far more than the CPU, so the reference has the same caches and activation rounding.
#[test]
fn models_with_quantised_caches_agree_with_the_reference() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let full = Sweep::asked() == Sweep::Full;
    let mut tally = Tally::default();
    for (i, path) in goldens().into_iter().enumerate() {
        if !name(&path).contains(&only) {
            continue;
        }
        for (j, pair) in PAIRS.into_iter().enumerate() {
            if !full && i % PAIRS.len() != j {
                continue;
            }
            let counts: &[usize] = if full { &[1, 2, 3, 4] } else { &[1 + i % 4] };
            for &devices in counts {
                tally.run(&path, pair, devices);
            }
        }
    }
    let Tally {
        ran,
        refused,
        flipped,
        failed,
    } = tally;
    println!("{ran} ran, {refused} pairs were refused; {flipped:#?}");
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
    assert!(flipped.len() * FLIPPED <= ran.max(FLIPPED), "{flipped:#?}");
    assert!(!only.is_empty() || ran > refused, "{ran}, {refused}");
}
