//! Sessions on the CPU executor: several sequences, truncation, context shifts, and files.

use std::path::{Path, PathBuf};
use tpc_ir::random::SplitMix64;

use tpc_core::golden::distance;
use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_ir::DType;
use tpc_runtime::{Batch, Checksum, ExecError, Logits, Session, SessionConfig, TokenPos};
use tpc_tests::{Sweep, goldens};

use crate::random::Random;
use crate::support::{config, cpu_session, golden, name, placement, plan};

/// Kinds: plain, window, sinks, recurrent, recurrent with attention, ALiBi, absolute positions, YaRN.
const SAMPLE: [&str; 8] = [
    "llama-dense",
    "gemma3",
    "gpt-oss",
    "mamba2",
    "qwen35-dense",
    "bloom",
    "gpt2",
    "phi3",
];

fn models() -> Vec<PathBuf> {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let sampled = |p: &Path| SAMPLE.iter().any(|s| name(p).starts_with(s));
    let mut all = goldens();
    all.retain(|p| name(p).contains(&only) && (sampled(p) || Sweep::asked() == Sweep::Full));
    assert!(!all.is_empty());
    all
}

fn session(
    path: &Path,
    (devices, cache): (usize, DType),
    (n, sequences): (usize, usize),
) -> Session<CpuExecutor> {
    let plan = plan(path, &placement(devices, cache));
    let config = config(&plan.1, n).with_sequences(sequences);
    cpu_session(&plan, config, [1, n], CpuOptions::with_threads(2))
}

fn decode(s: &mut Session<CpuExecutor>, batch: &Batch) -> Vec<f64> {
    let logits = s.step(batch).unwrap_or_else(|e| panic!("{e}"));
    logits.reals().expect("logits are real").to_vec()
}

fn furthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    distance(a.iter().copied(), b.iter().copied()).max_abs
}

/// Texts that are read concurrently, in batches.
struct Reading<'t> {
    texts: &'t [Vec<u32>],
    done: Vec<usize>,
}

impl Reading<'_> {
    /// Draws a batch of some tokens of some texts, with the positions of its output rows; `None` after the last token.
    fn batch(&mut self, random: &mut Random) -> Option<(Batch, Vec<(usize, usize)>)> {
        let (mut batch, mut rows) = (Batch::default(), Vec::new());
        if self.done.iter().zip(self.texts).all(|(d, t)| *d == t.len()) {
            return None;
        }
        while rows.is_empty() {
            for (i, text) in self.texts.iter().enumerate() {
                let n = [0, 1, 1, 1, 3, 8][random.below(6)];
                let now = self.done[i]..text.len().min(self.done[i] + n);
                for pos in now.clone() {
                    let at = TokenPos {
                        pos: pos as u32,
                        seq: i as u32,
                    };
                    batch.push(text[pos], at, Logits::Requested);
                    rows.push((i, pos));
                }
                self.done[i] = now.end;
            }
        }
        Some((batch, rows))
    }
}

#[test]
fn sequences_side_by_side_have_the_bits_of_each_alone() {
    /// Tokens per text. One text ends inside a block of cells.
    const LENGTHS: [usize; 3] = [90, 70, 20];
    const EACH: usize = 128;
    let mut random = Random::new(11);
    for path in models() {
        let tokens = golden(&path).tokens;
        let text = |(i, n): (usize, usize)| {
            let turned = tokens.iter().copied().cycle().skip(3 * i);
            turned.take(n).collect::<Vec<u32>>()
        };
        let texts: Vec<Vec<u32>> = LENGTHS.into_iter().enumerate().map(text).collect();
        let plan = plan(&path, &placement(2, DType::F16));
        let window = plan.1.model.summary.window;
        // If the window is small enough, the session reuses its cells.
        let swa = match window.is_some_and(|w| w.tokens() <= 48) {
            true => 64,
            false => EACH,
        };
        let session = |n: usize| {
            let config = SessionConfig::new(n * EACH).with_sequences(n);
            let config = match window {
                Some(window) => config.with_window(window, n * swa),
                None => config,
            };
            let config = config.with_parts(n, swa);
            cpu_session(&plan, config, [1, 24], CpuOptions::with_threads(2))
        };
        let alone: Vec<Vec<f64>> = texts
            .iter()
            .map(|text| {
                let mut s = session(1);
                let parts = text.chunks(8).zip((0..).step_by(8));
                let each = parts.map(|(part, at)| decode(&mut s, &Batch::sequence(part, at, 0)));
                each.collect::<Vec<_>>().concat()
            })
            .collect();
        let n_vocab = alone[0].len() / texts[0].len();
        let mut together = session(texts.len());
        let mut reading = Reading {
            texts: &texts,
            done: vec![0; texts.len()],
        };
        while let Some((batch, rows)) = reading.batch(&mut random) {
            let found = decode(&mut together, &batch);
            for ((i, pos), found) in rows.into_iter().zip(found.chunks(n_vocab)) {
                let alone = &alone[i][pos * n_vocab..][..n_vocab];
                let d = distance(alone.iter().copied(), found.iter().copied());
                assert!(alone == found, "{}: text {i} at {pos}: {d:?}", name(&path));
            }
        }
    }
}

#[test]
fn a_sequence_goes_back_and_continues_as_if_it_had_never_gone_on() {
    for path in models() {
        let tokens = golden(&path).tokens;
        let (half, n) = (tokens.len() / 2, tokens.len());
        let room = (2 * n, 1);
        let mut s = session(&path, (1, DType::F16), room);
        decode(&mut s, &Batch::sequence(&tokens[..half], 0, 0));
        let recurrent = s.is_recurrent();
        s.checkpoint(0).expect("the CPU gives its states");
        let wrong: Vec<u32> = tokens[half..].iter().rev().copied().collect();
        decode(&mut s, &Batch::sequence(&wrong, half as u32, 0));
        if recurrent {
            let e = s.truncate(0, half as u64 + 1).expect_err("no checkpoint");
            assert_eq!(e.code(), "TPC0575", "{}", name(&path));
            assert_eq!(s.next_position(0), n as u64, "nothing has changed");
        }
        s.truncate(0, half as u64)
            .unwrap_or_else(|e| panic!("{}: {e}", name(&path)));
        let found = decode(&mut s, &Batch::sequence(&tokens[half..], half as u32, 0));
        let mut fresh = session(&path, (1, DType::F16), room);
        decode(&mut fresh, &Batch::sequence(&tokens[..half], 0, 0));
        let wanted = decode(
            &mut fresh,
            &Batch::sequence(&tokens[half..], half as u32, 0),
        );
        let far = furthest(&wanted, &found);
        assert!(far <= 1e-5, "{}: {far:e}", name(&path));
        s.truncate(0, 0).expect("to the begin");
        let again = decode(&mut s, &Batch::sequence(&tokens[..half], 0, 0));
        assert_eq!(s.next_position(0), half as u64);
        let mut fresh = session(&path, (1, DType::F16), room);
        let wanted = decode(&mut fresh, &Batch::sequence(&tokens[..half], 0, 0));
        let far = furthest(&wanted, &again);
        assert!(far <= 1e-5, "{}: {far:e}", name(&path));
    }
}

/// Rotary embeddings depend only on distances: a shifted text equals one read at the beginning.
#[test]
fn a_context_shift_turns_keys_back() {
    let mut shifted = 0;
    for path in models() {
        let tokens = golden(&path).tokens;
        let (n, by) = (tokens.len() - 1, 7);
        let room = (tokens.len() + by, 1);
        // Cached keys were rounded at other angles, so only f32 caches are comparable.
        let mut s = session(&path, (2, DType::F32), room);
        decode(&mut s, &Batch::sequence(&tokens[..n], by as u32, 0));
        if let Err(e) = s.shift(0, 0, by as u64) {
            assert_eq!(e.code(), "TPC0575", "{}: {e}", name(&path));
            assert_eq!(s.next_position(0), (n + by) as u64, "nothing has changed");
            let cannot = [
                "mamba",
                "qwen35",
                "gpt2",
                "jamba",
                "rwkv",
                "lfm2",
                "falcon-h1",
            ];
            let known = cannot.iter().any(|c| name(&path).starts_with(c));
            assert!(
                known || Sweep::asked() == Sweep::Full,
                "{}: {e}",
                name(&path)
            );
            println!("{}: {e}", name(&path));
            continue;
        }
        shifted += 1;
        assert_eq!(s.next_position(0), n as u64);
        let found = decode(&mut s, &Batch::sequence(&tokens[n..], n as u32, 0));
        let mut at_begin = session(&path, (2, DType::F32), room);
        decode(&mut at_begin, &Batch::sequence(&tokens[..n], 0, 0));
        let wanted = decode(&mut at_begin, &Batch::sequence(&tokens[n..], n as u32, 0));
        let d = distance(wanted, found);
        assert!(d.nmse <= 1e-4, "{}: {:e}", name(&path), d.nmse);
    }
    assert!(shifted > 0);
}

/// Returns a session that has read a model's first tokens, and the saved bytes.
fn saved(path: &Path, devices: usize, tokens: &[u32]) -> (Session<CpuExecutor>, Vec<u8>) {
    let mut s = session(path, (devices, DType::F16), (2 * tokens.len(), 2));
    decode(&mut s, &Batch::sequence(tokens, 0, 0));
    let mut bytes = Vec::new();
    s.save(7, &[(0, tokens.to_vec())], &mut bytes)
        .unwrap_or_else(|e| panic!("{}: {e}", name(path)));
    (s, bytes)
}

#[test]
fn a_session_goes_on_from_a_file_whatever_the_number_of_devices() {
    for path in models() {
        let tokens = golden(&path).tokens;
        let (first, last) = tokens.split_at(tokens.len() - 2);
        let next = Batch::sequence(last, first.len() as u32, 0);
        let (mut s, bytes) = saved(&path, 2, first);
        let wanted = decode(&mut s, &next);
        for devices in [2, 1] {
            let mut other = session(&path, (devices, DType::F16), (2 * tokens.len(), 2));
            let texts = other.load(7, &bytes);
            let texts = texts.unwrap_or_else(|e| panic!("{}: {e}", name(&path)));
            assert_eq!(texts, [(0, first.to_vec())]);
            let mut again = Vec::new();
            other.save(7, &texts, &mut again).expect("it is loaded");
            assert!(again == bytes, "{}: other bytes", name(&path));
            let found = decode(&mut other, &next);
            if devices == 2 {
                assert!(found == wanted, "{}", name(&path));
                continue;
            }
            let d = distance(wanted.iter().copied(), found);
            assert!(d.nmse <= 1e-4, "{}: {:e}", name(&path), d.nmse);
        }
    }
}

#[test]
fn a_session_of_another_model_is_refused_in_words() {
    let all = models();
    let find = |n: &str| all.iter().find(|p| name(p).starts_with(n));
    let (Some(llama), Some(mamba)) = (find("llama-dense"), find("mamba2")) else {
        return;
    };
    let tokens = golden(llama).tokens;
    let (_, bytes) = saved(llama, 1, &tokens);
    let code = |e: Result<_, ExecError>| e.expect_err("it must be refused").code();
    let mut other = session(mamba, (1, DType::F16), (2 * tokens.len(), 2));
    assert_eq!(code(other.load(7, &bytes)), "TPC0574");
    let mut same = session(llama, (1, DType::F16), (2 * tokens.len(), 2));
    assert_eq!(code(same.load(8, &bytes)), "TPC0574");
    let mut small = session(llama, (1, DType::F16), (tokens.len() - 1, 1));
    assert_eq!(code(small.load(7, &bytes)), "TPC0574");
    let mut exact = session(llama, (1, DType::F32), (2 * tokens.len(), 2));
    assert_eq!(code(exact.load(7, &bytes)), "TPC0574");
    let mut later = bytes.clone();
    later[8] = 2;
    assert_eq!(code(same.load(7, &later)), "TPC0573");
    assert_eq!(code(same.load(7, b"GGUF")), "TPC0572");
    assert!(same.load(7, &bytes).is_ok());
}

#[test]
fn damaged_files_give_diagnostics() {
    let path = models().swap_remove(0);
    let tokens = &golden(&path).tokens[..2];
    let (mut s, bytes) = saved(&path, 1, tokens);
    let known = ["TPC0572", "TPC0573", "TPC0574"];
    for n in 0..bytes.len() {
        // Try every truncation of the description of the cells, and some of their bytes.
        if n < 4096 || n % 61 == 0 {
            let e = s.load(7, &bytes[..n]).expect_err("it is cut");
            assert!(known.contains(&e.code().id), "{n}: {e}");
        }
    }
    let mut random = SplitMix64::new(1);
    let head = bytes.len().min(2048);
    let mut refused = 0;
    for i in 0..10_000 {
        let mut bad = bytes.clone();
        for _ in 0..=random.next_u64() % 3 {
            let at = random.next_u64() as usize % if i % 2 == 0 { bad.len() } else { head };
            bad[at] = random.next_u64() as u8;
        }
        let sealed = i % 2 == 1;
        if sealed {
            // Correct the checksum, so that tpc checks the content.
            let end = bad.len() - 8;
            let sum = Checksum::of(&bad[..end]);
            bad[end..].copy_from_slice(&sum.to_le_bytes());
        }
        match s.load(7, &bad) {
            Ok(_) => assert!(sealed || bad == bytes, "mutation {i} was not found"),
            Err(e) => {
                assert!(known.contains(&e.code().id), "{i}: {e}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5000, "{refused}");
    s.load(7, &bytes).expect("the file itself is fine");
}
