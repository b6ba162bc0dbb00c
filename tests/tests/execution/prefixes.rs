//! Prefixes that a sequence gets from a store: its logits have the bits of a sequence that runs alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::Placement;
use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_engine::generate::Decoder;
use tpc_engine::prefix::{BLOCK, PrefixStore};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_models::Drafting;
use tpc_runtime::{Batch, Logits, Session, SessionConfig, TokenPos};
use tpc_tests::{Sweep, goldens};

use crate::support::{cpu_session, golden, name, placement};

/// Caches: full, sliding, with sinks, chunked, latent, recurrent, hybrid, and with draft blocks.
const SAMPLE: [&str; 9] = [
    "llama-dense",
    "gemma3",
    "gpt-oss",
    "llama4",
    "deepseek2",
    "mamba2",
    "falcon-h1",
    "qwen35mtp",
    "glm4moe-nextn",
];
/// Cells of a sequence.
const EACH: usize = 192;
/// Tokens of a text that is read, and of a text with the tokens to draft from.
const READ: usize = 150;
const TEXT: usize = READ + 8;
/// Tokens per batch and sequence.
const CHUNK: usize = 16;
const PARTS: usize = 3;
/// A limit that no test reaches.
const AMPLE: u64 = 1 << 30;

type Plan = (GgufFile, CompiledModel);
/// The bits of the logits of a token, and of its drafts.
type TokenBits = (Vec<u64>, Vec<u64>);

fn models() -> Vec<PathBuf> {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let sampled = |p: &Path| SAMPLE.iter().any(|s| name(p).starts_with(s));
    let mut all = goldens();
    all.retain(|p| name(p).contains(&only) && (sampled(p) || Sweep::asked() == Sweep::Full));
    assert!(!all.is_empty());
    all
}

/// Plans a model with its draft blocks; `None` if the cache type does not fit its heads.
fn planned(path: &Path, devices: usize, cache: DType) -> Option<Plan> {
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    let mut tensors = file.header().tensors().iter();
    let drafting = match tensors.any(|t| t.name.contains(".nextn.")) {
        true => Drafting::Mtp,
        false => Drafting::None,
    };
    let placement = Placement {
        drafting,
        ..placement(devices, cache)
    };
    let compiled = compile(&file, &placement).ok()?;
    Some((file, compiled))
}

fn session(plan: &Plan, parts: usize) -> Session<CpuExecutor> {
    let window = plan.1.model.summary.window;
    // If the window is small enough, the session reuses its cells.
    let swa = match window.is_some_and(|w| w.tokens() <= 48) {
        true => 64,
        false => EACH,
    };
    let config = SessionConfig::new(parts * EACH).with_sequences(parts);
    let config = match window {
        Some(window) => config.with_window(window, parts * swa),
        None => config,
    };
    let most = PARTS * CHUNK;
    let config = config.with_parts(parts, swa);
    cpu_session(plan, config, [1, most], CpuOptions::with_threads(2))
}

fn bits(logits: &[f64]) -> Vec<u64> {
    logits.iter().map(|x| x.to_bits()).collect()
}

/// A session that reads texts.
struct Run {
    session: Session<CpuExecutor>,
    texts: BTreeMap<u32, Vec<u32>>,
}

impl Run {
    fn new(plan: &Plan, parts: usize) -> Run {
        Run {
            session: session(plan, parts),
            texts: BTreeMap::new(),
        }
    }

    fn begin(&mut self, seq: u32, text: &[u32]) {
        self.session.remove_sequence(seq);
        self.texts.insert(seq, text.to_vec());
    }

    fn at(&self, seq: u32) -> usize {
        self.session.next_position(seq) as usize
    }

    /// Reads the next tokens of some texts in one batch, and drafts after each token. Returns the bits of each token.
    fn read(&mut self, counts: &[(u32, usize)]) -> Vec<TokenBits> {
        // Draft blocks next to recurrent states need batches with as many tokens of each sequence.
        if self.session.is_recurrent() && self.session.n_drafts() > 0 && counts.len() > 1 {
            return counts.iter().flat_map(|c| self.read(&[*c])).collect();
        }
        let mut batch = Batch::default();
        let mut places = Vec::new();
        for &(seq, n) in counts {
            let at = self.at(seq);
            for pos in at..at + n {
                let token = TokenPos {
                    pos: pos as u32,
                    seq,
                };
                batch.push(self.texts[&seq][pos], token, Logits::Requested);
                places.push((seq, pos));
            }
        }
        let logits = self.session.decode(&batch);
        let logits = logits.unwrap_or_else(|e| panic!("{e}"));
        let n_vocab = logits.dims()[0];
        let logits = bits(&logits.reals().expect("real"));
        let mut out: Vec<TokenBits> = logits
            .chunks(n_vocab)
            .map(|c| (c.to_vec(), Vec::new()))
            .collect();
        for ahead in 1..=self.session.n_drafts() {
            let next = |&(seq, pos): &(u32, usize)| self.texts[&seq][pos + ahead];
            let next: Vec<u32> = places.iter().map(next).collect();
            let drafted = self.session.draft(&next);
            let drafted = drafted.unwrap_or_else(|e| panic!("{e}"));
            let drafted = bits(&drafted.reals().expect("real"));
            for (out, drafted) in out.iter_mut().zip(drafted.chunks(n_vocab)) {
                out.1.extend_from_slice(drafted);
            }
        }
        out
    }

    /// Reads the text of `seq` up to `end` together with `n` tokens of `other` per batch, and saves it after each
    /// batch. Returns the bits of the tokens of `seq`.
    fn read_to(
        &mut self,
        (seq, end): (u32, usize),
        (other, n): (u32, usize),
        store: &mut PrefixStore,
    ) -> Vec<TokenBits> {
        let mut out = Vec::new();
        while self.at(seq) < end {
            let own = CHUNK.min(end - self.at(seq));
            let mut read = self.read(&[(other, n), (seq, own)]);
            out.extend(read.drain(n..));
            let text = &self.texts[&seq][..self.at(seq)];
            let stored = store.save(&self.session, seq, text).expect("saved");
            assert!(stored <= text.len());
        }
        out
    }
}

/// Returns a text that begins with the first `shared` tokens of `text`.
fn variant(text: &[u32], shared: usize, by: usize) -> Vec<u32> {
    let rest = text.iter().cycle().skip(shared + by);
    let rest = rest.take(text.len() - shared).copied();
    text[..shared].iter().copied().chain(rest).collect()
}

/// Returns the bits of each token of a text that is read alone.
fn alone(plan: &Plan, text: &[u32]) -> Vec<TokenBits> {
    let mut run = Run::new(plan, 1);
    run.begin(0, text);
    let mut out = Vec::new();
    while run.at(0) < READ {
        // Chunks of another size than in the shared session.
        let n = 7.min(READ - run.at(0));
        out.extend(run.read(&[(0, n)]));
    }
    out
}

#[track_caller]
fn assert_same(what: &str, wanted: &[TokenBits], found: &[TokenBits]) {
    assert_eq!(wanted.len(), found.len(), "{what}");
    for (i, (wanted, found)) in wanted.iter().zip(found).enumerate() {
        assert!(wanted.0 == found.0, "{what}: logits of token {i}");
        assert!(wanted.1 == found.1, "{what}: drafts of token {i}");
    }
}

fn without_drafts(tokens: &[TokenBits]) -> Vec<TokenBits> {
    tokens.iter().map(|t| (t.0.clone(), Vec::new())).collect()
}

struct Texts {
    first: Vec<u32>,
    /// Begins as the first text.
    second: Vec<u32>,
    other: Vec<u32>,
}

impl Texts {
    fn of(path: &Path) -> Texts {
        let tokens = golden(path).tokens;
        let first: Vec<u32> = tokens.iter().copied().cycle().take(TEXT).collect();
        Texts {
            second: variant(&first, 3 * BLOCK + 5, 11),
            other: variant(&first, 0, 3),
            first,
        }
    }
}

/// Reads the first text in sequence 0, restores it in sequence 1, and continues with rejected drafts.
fn check(what: &str, plan: &Plan, texts: &Texts) {
    let [first, second] = [&texts.first, &texts.second].map(|text| alone(plan, text));
    let mut run = Run::new(plan, PARTS);
    let mut store = PrefixStore::new(AMPLE);
    run.begin(0, &texts.first);
    run.begin(2, &texts.other);
    let read = run.read_to((0, READ), (2, 3), &mut store);
    assert_same(&format!("{what}: the first sequence"), &first, &read);

    // The same text, while sequence 2 goes on.
    run.begin(1, &texts.first);
    let whole = (READ - 1) / BLOCK * BLOCK;
    assert_eq!(store.longest(&texts.first[..READ]), whole, "{what}");
    let n = store.restore(&mut run.session, 1, &texts.first[..READ]);
    assert_eq!(n.expect("restored"), whole, "{what}");
    assert_eq!(run.at(1), whole);
    reject_drafts(&mut run, 1);
    let read = run.read_to((1, READ), (2, 2), &mut store);
    assert_same(&format!("{what}: restored"), &first[whole..], &read);

    // Another text with the same begin, in the sequence that saved the blocks.
    run.begin(0, &texts.second);
    run.begin(2, &texts.other);
    let n = store.restore(&mut run.session, 0, &texts.second[..READ]);
    assert_eq!(n.expect("restored"), 3 * BLOCK, "{what}");
    let read = run.read_to((0, READ), (2, 1), &mut store);
    let [wanted, found] = [&second[3 * BLOCK..], &read].map(without_drafts);
    assert_same(&format!("{what}: another text"), &wanted, &found);

    // A text restored from the blocks of restored sequences.
    run.begin(1, &texts.second);
    let n = store.restore(&mut run.session, 1, &texts.second[..READ]);
    assert_eq!(n.expect("restored"), whole, "{what}");
    let read = run.read_to((1, READ), (2, 1), &mut store);
    let [wanted, found] = [&second[whole..], &read].map(without_drafts);
    assert_same(&format!("{what}: restored twice"), &wanted, &found);
    let counts = store.statistics();
    let restored = (2 * whole + 3 * BLOCK) as u64;
    assert_eq!((counts.hits, counts.tokens_restored), (3, restored));
    assert_eq!(counts.evictions, 0);
}

/// Reads three wrong tokens after the text so far, and removes them.
fn reject_drafts(run: &mut Run, seq: u32) {
    let at = run.at(seq);
    let text = run.texts[&seq].clone();
    let wrong = variant(&text, at, 5);
    run.texts.insert(seq, wrong);
    run.read(&[(seq, 3)]);
    run.session.truncate(seq, at as u64).expect("it goes back");
    run.texts.insert(seq, text);
}

#[test]
fn a_restored_prefix_gives_the_bits_of_a_computed_one() {
    let mut ran = 0;
    for path in models() {
        let texts = Texts::of(&path);
        for (devices, cache) in [
            (1, DType::F16),
            (2, DType::F16),
            (1, DType::Q8_0),
            (2, DType::Q8_0),
        ] {
            let what = format!("{} {cache} on {devices}", name(&path));
            let Some(plan) = planned(&path, devices, cache) else {
                assert!(cache != DType::F16, "{what}: no plan");
                continue;
            };
            check(&what, &plan, &texts);
            println!("{what}");
            ran += 1;
        }
    }
    assert!(ran > 0);
}

#[test]
fn evicted_blocks_are_read_again() {
    for path in models() {
        let texts = Texts::of(&path);
        let what = name(&path);
        let plan = planned(&path, 2, DType::F16).expect("a plan");
        let first = alone(&plan, &texts.first);
        let mut run = Run::new(&plan, PARTS);
        let mut store = PrefixStore::new(AMPLE);
        run.begin(0, &texts.first);
        run.begin(2, &texts.other);
        run.read_to((0, READ), (2, 3), &mut store);
        // Room for the whole first text, but not for another one.
        let limit = store.statistics().bytes * 3 / 2;
        let mut store = PrefixStore::new(limit);
        run.begin(0, &texts.first);
        run.begin(2, &texts.other);
        run.read_to((0, READ), (2, 3), &mut store);
        let whole = store.longest(&texts.first[..READ]);
        run.begin(0, &texts.other);
        run.begin(2, &texts.first);
        run.read_to((0, READ), (2, 3), &mut store);
        let counts = store.statistics();
        assert!(
            counts.evictions > 0 && counts.bytes <= limit,
            "{what}: {counts:?}"
        );
        let left = store.longest(&texts.first[..READ]);
        assert!(left < whole, "{what}: {left} of {whole}");
        run.begin(1, &texts.first);
        run.begin(2, &texts.other);
        let n = store.restore(&mut run.session, 1, &texts.first[..READ]);
        assert_eq!(n.expect("restored"), left, "{what}");
        let read = run.read_to((1, READ), (2, 1), &mut store);
        assert_same(&what, &first[left..], &read);
        println!("{what}: {left} of {whole}, {counts:?}");
    }
}

/// The cells after a context shift are not those of a text, and a prefix of another model does not fit.
#[test]
fn a_store_refuses_cells_of_other_texts() {
    let find = |n: &str| goldens().into_iter().find(|p| name(p).starts_with(n));
    let path = find("llama-dense").expect("a golden model");
    let texts = Texts::of(&path);
    let plan = planned(&path, 1, DType::F16).expect("a plan");
    let mut run = Run::new(&plan, PARTS);
    let mut store = PrefixStore::new(AMPLE);
    run.begin(0, &texts.first);
    while run.at(0) < 96 {
        run.read(&[(0, CHUNK)]);
    }
    let saved = store.save(&run.session, 0, &texts.first[..96]);
    assert_eq!(saved.expect("saved"), 96);
    let few = SessionConfig::new(80);
    let mut few = cpu_session(&plan, few, [1, CHUNK], CpuOptions::with_threads(2));
    let full = store.restore(&mut few, 0, &texts.first);
    let full = full.expect_err("96 tokens do not fit");
    assert_eq!(full.diagnostics[0].code.id, "TPC0514");
    assert_eq!(few.next_position(0), 0);
    let n = store.restore(&mut few, 0, &texts.first[..80]);
    assert_eq!(n.expect("restored"), 2 * BLOCK);
    run.session.shift(0, 40, 20).expect("keys are turned");
    let shifted: Vec<u32> = [&texts.first[..40], &texts.first[60..96]].concat();
    let saved = store.save(&run.session, 0, &shifted);
    assert_eq!(saved.expect("saved"), BLOCK, "only the cells before");
    let long = store.save(&run.session, 0, &texts.first);
    let long = long.expect_err("the sequence is shorter");
    assert_eq!(long.diagnostics[0].code.id, "TPC0524");
    let occupied = store.restore(&mut run.session, 0, &texts.first);
    let occupied = occupied.expect_err("the sequence has tokens");
    assert_eq!(occupied.diagnostics[0].code.id, "TPC0524");
    let other = planned(&path, 1, DType::Q8_0).expect("a plan");
    let mut other = session(&other, PARTS);
    let refused = store.restore(&mut other, 1, &texts.first);
    let refused = refused.expect_err("other caches");
    assert_eq!(refused.diagnostics[0].code.id, "TPC0524");
    assert_eq!(Decoder::next_position(&other, 1), 0);
    assert!(store.restore(&mut run.session, 1, &texts.first).is_ok());
    assert_eq!(run.at(1), 96);
}
