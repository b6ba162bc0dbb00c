//! After a first run, decoding makes no allocations: not in the session, the executor, its threads, the sampler or the
//! detokeniser.
//!
//! The allocator of this binary counts the calls of all threads. The test harness has threads, so this test runs
//! without the harness.

#[path = "../execution/support.rs"]
#[expect(dead_code, reason = "the tests of execution need more of it")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_ir::DType;
use tpc_runtime::{Batch, Data, Logits, Session, TokenPos};
use tpc_tests::{Sweep, goldens};
use tpc_text::{Detokenizer, Sampler, Settings, Show, Start, Tokenizer};

use support::{config, cpu_session, golden, name, placement, plan};

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every method forwards to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(ptr, layout, size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        CALLS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The number of tokens decoded before calls are counted, and while they are counted.
const WARM_UP: usize = 4;
const COUNTED: usize = 64;

const SEQUENCES: usize = 2;

struct Lane<'t> {
    sampler: Sampler,
    detokenizer: Option<Detokenizer<'t>>,
    token: u32,
}

fn decode(
    session: &mut Session<CpuExecutor>,
    lanes: &mut [Lane<'_>],
    (pos, batch, text): (usize, &mut Batch, &mut String),
) {
    batch.clear();
    for (seq, lane) in (0..).zip(lanes.iter()) {
        let pos = pos as u32;
        batch.push(lane.token, TokenPos { pos, seq }, Logits::Requested);
    }
    let logits = session.step(batch).unwrap_or_else(|e| panic!("{e}"));
    let Data::F32(all) = logits.data() else {
        panic!("logits of the CPU are f32")
    };
    for (lane, row) in lanes.iter_mut().zip(all.chunks_exact(logits.dims()[0])) {
        lane.token = lane.sampler.sample(row).expect("logits are numbers");
        lane.sampler.accept(lane.token);
        text.clear();
        if let Some(detokenizer) = &mut lane.detokenizer {
            // Test models have more ids than their vocabulary has tokens.
            let _ = detokenizer.push(lane.token, text);
        }
    }
}

fn main() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    let sample = [
        "llama-dense",
        "gemma3",
        "gpt-oss",
        "mamba2",
        "qwen35-dense",
        "deepseek2",
        "jamba",
    ];
    for path in goldens() {
        let name = name(&path);
        let sampled = sample.iter().any(|s| name.starts_with(s));
        if !name.contains(&only) || !(sampled || Sweep::asked() == Sweep::Full) {
            continue;
        }
        let tokens = golden(&path).tokens;
        for devices in [1, 2] {
            let plan = plan(&path, &placement(devices, DType::F16));
            let (file, compiled) = &plan;
            let tokenizer = Tokenizer::from_gguf(file).ok();
            let n = tokens.len() + WARM_UP + COUNTED;
            let config = config(compiled, SEQUENCES * n).with_sequences(SEQUENCES);
            let most = SEQUENCES * tokens.len();
            let options = CpuOptions::with_threads(2);
            let mut session = cpu_session(&plan, config, [SEQUENCES, most], options);
            let n_vocab = compiled.model.summary.n_vocab as usize;
            let mut batch = Batch::default();
            for seq in 0..SEQUENCES as u32 {
                for (pos, &token) in (0..).zip(&tokens) {
                    batch.push(token, TokenPos { pos, seq }, Logits::NotRequested);
                }
            }
            session
                .step(&batch)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let lane = |seed| {
                let settings = Settings {
                    temperature: if seed == 0 { 0.0 } else { 0.8 },
                    repetition: 1.1,
                    seed,
                    ..Settings::default()
                };
                let detokenizer = tokenizer
                    .as_ref()
                    .map(|t| Detokenizer::new(t, Start::Continuation, Show::Special));
                Lane {
                    sampler: Sampler::new(settings, n_vocab).expect("settings are fine"),
                    detokenizer,
                    token: 1,
                }
            };
            let mut lanes: Vec<Lane<'_>> = (0..SEQUENCES as u64).map(lane).collect();
            let mut text = String::with_capacity(1 << 10);
            let mut before = 0;
            for i in 0..WARM_UP + COUNTED {
                if i == WARM_UP {
                    before = CALLS.load(Ordering::SeqCst);
                }
                let io = (tokens.len() + i, &mut batch, &mut text);
                decode(&mut session, &mut lanes, io);
            }
            let calls = CALLS.load(Ordering::SeqCst) - before;
            if calls > 0 {
                failed.push(format!(
                    "{name} on {devices}: {calls} calls in {COUNTED} batches"
                ));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
