//! With `--deterministic on`, logits have the bits of one device in any company: devices, widths of batches,
//! instruction sets, other sequences, and a prefix that was computed before.

use std::path::Path;

use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::Placement;
use tpc_cpu::product::Isa;
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_gguf::GgufFile;
use tpc_ir::program::{SumOrder, Target};
use tpc_passes::bits::find_differences;
use tpc_runtime::{Batch, Logits, Session, SessionConfig, TokenPos};
use tpc_tests::{Sweep, goldens};

use crate::support::{behind, config, cpu_session, golden, name, one_by_one, placed};

/// Dense, few KV heads, normed heads, mixtures of experts with and without biases, a recurrence.
const SAMPLE: [&str; 6] = [
    "gemma3",
    "gpt-oss",
    "granitemoe",
    "llama-dense",
    "mamba2",
    "olmo2",
];
const WIDTHS: [usize; 6] = [1, 2, 3, 5, 8, 16];

type Plan = (GgufFile, CompiledModel);

/// Plans a model with the sums of one device. `None` if the plan is refused.
fn exact_plan(path: &Path, placement: &Placement) -> Option<Plan> {
    let placement = Placement {
        sums: SumOrder::OneDevice,
        storage: &CpuTarget,
        ..placement.clone()
    };
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    match compile(&file, &placement) {
        Ok(compiled) => {
            assert!(compiled.proof.is_ok(), "{}: not proved", path.display());
            Some((file, compiled))
        }
        Err(d) => {
            assert_eq!(d[0].code.id, "TPC0396", "{}: {}", path.display(), d[0]);
            println!("{}: {}", name(path), d[0]);
            None
        }
    }
}

fn session(plan: &Plan, config: SessionConfig, most: usize) -> Session<CpuExecutor> {
    session_on(plan, config, most, Isa::best())
}

fn session_on(plan: &Plan, config: SessionConfig, most: usize, isa: Isa) -> Session<CpuExecutor> {
    let options = CpuOptions {
        isa,
        ..CpuOptions::with_threads(2)
    };
    cpu_session(plan, config, [1, most], options)
}

fn bits(logits: &[f64]) -> Vec<u64> {
    logits.iter().map(|x| x.to_bits()).collect()
}

/// Returns the logits of tokens in batches of `width`.
fn in_batches(s: &mut Session<CpuExecutor>, tokens: &[u32], width: usize) -> Vec<u64> {
    let batches = tokens.chunks(width).zip((0..).step_by(width));
    let each = batches.map(|(part, at)| bits(&behind(s, part, at)));
    each.collect::<Vec<_>>().concat()
}

fn models() -> Vec<std::path::PathBuf> {
    let only = std::env::var("TPC_MODEL").unwrap_or_default();
    let full = Sweep::asked() == Sweep::Full;
    let chosen = |path: &std::path::PathBuf| {
        let name = name(path);
        name.contains(&only) && (full || SAMPLE.iter().any(|s| name.starts_with(s)))
    };
    goldens().into_iter().filter(chosen).collect()
}

#[test]
fn logits_are_the_same_for_any_devices_widths_and_instruction_sets() {
    let ways: &[&str] = Sweep::asked().pick(&["", "-ts 3,1,2,1"], &["", "-ts 3,1,2,1", "-ncmoe 1"]);
    let isas = Isa::available();
    let (mut all, mut promised) = (0, 0);
    for path in models() {
        let (name, tokens) = (name(&path), golden(&path).tokens);
        let one = exact_plan(&path, &placed(1, "")).expect("one device adds nothing");
        let of_one = config(&one.1, tokens.len());
        let alone = one_by_one(&mut session(&one, of_one, 1), &tokens, 0);
        let alone = bits(&alone);
        for devices in [2, 3, 4, 5, 7, 8] {
            for way in ways {
                all += 1;
                let Some(plan) = exact_plan(&path, &placed(devices, way)) else {
                    continue;
                };
                let programs = &plan.1.programs;
                assert!(find_differences(programs, CpuTarget.company()).is_empty());
                promised += 1;
                // One device in every width, other numbers of devices in one width each.
                let widths: &[usize] = match (devices, *way) {
                    (3, "") => &WIDTHS,
                    _ => &[WIDTHS[devices % WIDTHS.len()]],
                };
                let most = tokens.len();
                let config = config(&plan.1, most);
                for (i, &width) in widths.iter().enumerate() {
                    let isa = isas[(devices + i) % isas.len()];
                    let mut s = session_on(&plan, config, most.min(width), isa);
                    let found = in_batches(&mut s, &tokens, width);
                    let company = format!("{devices} {way}, width {width}, {isa}");
                    assert!(found == alone, "{name} on {company}");
                }
            }
        }
        println!("{name}: {promised} of {all}");
    }
    assert!(all > 0 && promised * 10 >= all * 9, "{promised} of {all}");
}

#[test]
fn other_sequences_and_a_prefix_of_before_change_no_bits() {
    const EACH: usize = 64;
    for path in models() {
        let (name, mut tokens) = (name(&path), golden(&path).tokens);
        tokens.truncate(EACH - 1);
        let others: Vec<u32> = tokens.iter().rev().copied().collect();
        let plan = exact_plan(&path, &placed(3, "")).expect("three devices keep the bits");
        let window = plan.1.model.summary.window;
        let config = |n: usize| {
            let config = SessionConfig::new(n * EACH).with_sequences(n);
            let config = match window {
                Some(window) => config.with_window(window, n * EACH),
                None => config,
            };
            config.with_parts(n, EACH)
        };
        let most = 2 * tokens.len();
        let alone = in_batches(&mut session(&plan, config(1), most), &tokens, tokens.len());
        // Sequence 1 writes first, and both continue in shared batches.
        let mut s = session(&plan, config(2), most);
        let half = tokens.len() / 2;
        behind_of(&mut s, &others[..half], 0, 1);
        let mut batch = Batch::default();
        for (i, (&token, &other)) in tokens.iter().zip(&others[half..]).enumerate() {
            let at = |pos: usize, seq| TokenPos {
                pos: pos as u32,
                seq,
            };
            batch.push(other, at(half + i, 1), Logits::NotRequested);
            batch.push(token, at(i, 0), Logits::Requested);
        }
        let shared = others.len() - half;
        let found = s.decode(&batch).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut found = bits(&found.reals().expect("logits are real"));
        found.extend(bits(&behind_of(&mut s, &tokens[shared..], shared, 0)));
        assert!(found == alone, "{name}: a neighbour changes bits");
        if !s.is_recurrent() && window.is_none() {
            s.truncate(0, half as u64)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let again = bits(&behind_of(&mut s, &tokens[half..], half, 0));
            assert!(alone.ends_with(&again), "{name}: a prefix changes bits");
        }
    }
}

fn behind_of(s: &mut Session<CpuExecutor>, tokens: &[u32], at: usize, seq: u32) -> Vec<f64> {
    let out = s.decode(&Batch::sequence(tokens, at as u32, seq));
    let out = out.unwrap_or_else(|e| panic!("{e}"));
    out.reals().expect("logits are real").to_vec()
}

/// Returns 40 tokens of greedy text after a prompt, and the bits of all logits.
fn greedy(plan: &Plan, prompt: &[u32]) -> (Vec<u32>, Vec<u64>) {
    const TEXT: usize = 40;
    let config = config(&plan.1, prompt.len() + TEXT);
    let mut s = session(plan, config, prompt.len());
    let mut logits = behind(&mut s, prompt, 0);
    let mut all = bits(&logits);
    let mut text = Vec::new();
    let n_vocab = logits.len() / prompt.len();
    for at in prompt.len()..prompt.len() + TEXT {
        let last = &logits[logits.len() - n_vocab..];
        let best = (0..n_vocab).max_by(|&a, &b| last[a].total_cmp(&last[b]));
        let token = best.expect("the vocabulary has tokens") as u32;
        text.push(token);
        logits = behind(&mut s, &[token], at);
        all.extend(bits(&logits));
    }
    (text, all)
}

/// `TPC_TRAINED` names the file of a trained model, such as SmolLM2-135M with 9 heads and 3 KV heads.
#[test]
fn a_trained_model_writes_the_same_text_on_any_devices() {
    let Ok(path) = std::env::var("TPC_TRAINED") else {
        println!("skipped: TPC_TRAINED names no model");
        return;
    };
    let path = Path::new(&path);
    let prompt: Vec<u32> = (0..24).map(|i| 500 + i * 37).collect();
    let one = exact_plan(path, &placed(1, "")).expect("one device adds nothing");
    let (text, alone) = greedy(&one, &prompt);
    for devices in [2, 3, 5] {
        let plan = exact_plan(path, &placed(devices, "")).expect("the bits are kept");
        let found = greedy(&plan, &prompt);
        assert_eq!(found.0, text, "{devices} devices write another text");
        assert!(found.1 == alone, "{devices} devices have other logits");
        println!("{devices} devices: {} logits and {text:?}", found.1.len());
    }
}
