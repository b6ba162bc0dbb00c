//! Drafting blocks, which share the model's weights and caches.

mod by_hand;

use std::path::PathBuf;
use tpc_ir::stage::Executable;

use tpc_core::golden::distance;
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::{Placement, parse_cache_type};
use tpc_core::report::PlanReport;
use tpc_gguf::GgufFile;
use tpc_ir::verify::verify;
use tpc_ir::{Op, Verified};
use tpc_lint::plan_report;
use tpc_models::Drafting;
use tpc_runtime::{Batch, Session, SessionConfig};
use tpc_tests::{Sweep, goldens, headers};

use super::placements::{Way, ways};
use super::random::Rng;
use super::support::{FileWeights, placement, round_trip};
use super::synthetic::make;

/// The maximum NMSE if only the order of sums differs.
const AGAINST_WHOLE: f64 = 1e-10;
/// The maximum NMSE if another order of sums may change the rounding of cached numbers.
const ROUNDED: f64 = 1e-7;

/// Small models with every kind of block: attention with heads, gated and latent; dense and with experts; with a
/// window; next to recurrent layers; several in sequence.
const SYNTHETIC: [&str; 8] = [
    "qwen35-tiny:drafts=1,layers=3,type=q8_0",
    "qwen35moe-tiny:drafts=2,type=q4_0",
    "qwen3next-tiny:drafts=1,layers=4,type=f32,tied=1",
    "glm4moe-tiny:drafts=2,heads=6,kv_heads=2,type=q4_0,biases=1",
    "deepseek2-tiny:drafts=1,experts=4,type=q8_0",
    "mimo2-tiny:drafts=3,window=5,type=q8_0,biases=1",
    "bailingmoe2-tiny:drafts=1,kv_heads=1",
    "nemotron_h_moe-tiny:drafts=1,type=q8_0",
];

const LARGE: &str = "qwen35:layers=64,drafts=1,embd=5120,heads=24,kv_heads=4,head_dim=256,ff=17408,vocab=248320,\
                     ctx=262144,header=1";

/// Returns the files with drafting blocks, and synthetic ones.
fn with_drafts(paths: Vec<PathBuf>, synthetic: &[&str]) -> Vec<(String, GgufFile)> {
    let mut out = Vec::new();
    for path in paths {
        let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
        let mut tensors = file.header().tensors().iter();
        if tensors.any(|t| t.name.contains(".nextn.")) {
            out.push((path.display().to_string(), file));
        }
    }
    out.extend(
        synthetic
            .iter()
            .map(|spec| ((*spec).to_owned(), make(spec))),
    );
    out
}

fn models() -> Vec<(String, GgufFile)> {
    with_drafts(goldens(), &SYNTHETIC)
}

fn drafting(devices: usize) -> Placement {
    Placement {
        drafting: Drafting::Mtp,
        ctx_size: Some(64),
        ubatch_size: 32,
        ..placement(devices)
    }
}

fn planned(name: &str, file: &GgufFile, placement: &Placement) -> CompiledModel {
    crate::support::compiled(file, placement)
        .unwrap_or_else(|d| panic!("{name}: {} {}", d[0].code, d[0]))
}

fn tokens(n: u32, compiled: &CompiledModel) -> Vec<u32> {
    let vocab = compiled.model.summary.n_vocab as u32;
    (0..n).map(|i| (i * 37 + i * i + 3) % vocab).collect()
}

type Logits = Vec<Vec<f64>>;

/// Feeds `tokens` in batches of `sizes`; the last tokens are only predicted.
fn run<S: Executable>(
    graph: &Verified<S>,
    file: &GgufFile,
    compiled: &CompiledModel,
    tokens: &[u32],
    sizes: &[usize],
) -> Logits {
    let guesses = compiled.model.summary.n_draft as usize;
    let fed = tokens.len() - guesses;
    let mut config = SessionConfig::new(fed);
    if let Some(window) = compiled.model.summary.window {
        config = config.with_window(window, fed);
    }
    let mut session =
        Session::new(graph, &FileWeights(file), config).unwrap_or_else(|e| panic!("{e}"));
    let mut out = vec![Vec::new(); 1 + guesses];
    let mut at = 0;
    for size in sizes.iter().cycle() {
        let end = (at + size).min(fed);
        let batch = Batch::sequence(&tokens[at..end], at as u32, 0);
        let logits = session.decode(&batch).unwrap_or_else(|e| panic!("{e}"));
        out[0].extend_from_slice(&logits.reals().expect("logits are real"));
        for ahead in 1..=guesses {
            let next = &tokens[at + ahead..end + ahead];
            let logits = session.draft(next).unwrap_or_else(|e| panic!("{e}"));
            out[ahead].extend_from_slice(&logits.reals().expect("logits are real"));
        }
        at = end;
        if at == fed {
            return out;
        }
    }
    out
}

fn assert_close(what: &str, want: &Logits, got: &Logits, tolerance: f64) {
    assert_eq!(want.len(), got.len(), "{what}");
    for (ahead, (want, got)) in want.iter().zip(got).enumerate() {
        assert!(!want.is_empty() && want.len() == got.len(), "{what}");
        assert!(want.iter().all(|x| x.is_finite()), "{what}");
        let d = distance(want.iter().copied(), got.iter().copied());
        assert!(
            d.nmse <= tolerance,
            "{what}: {ahead} ahead: NMSE {:e}",
            d.nmse
        );
    }
}

#[test]
fn drafts_divided_equal_drafts_whole() {
    for (name, file) in models() {
        let whole = planned(&name, &file, &drafting(1));
        let tokens = tokens(19, &whole);
        let want = run(&whole.model.graph, &file, &whole, &tokens, &[32]);
        round_trip(&whole.model.graph);
        for devices in 1..=4 {
            let split = planned(&name, &file, &drafting(devices));
            round_trip(&split.sharded);
            round_trip(&split.programs);
            let got = run(&split.programs, &file, &split, &tokens, &[32]);
            assert_close(&format!("{name} on {devices}"), &want, &got, AGAINST_WHOLE);
        }
    }
}

#[test]
fn logits_do_not_depend_on_drafts() {
    for (name, file) in models() {
        let both = planned(&name, &file, &drafting(1));
        let alone = Placement {
            drafting: Drafting::None,
            ..drafting(1)
        };
        let alone = planned(&name, &file, &alone);
        let tokens = tokens(13, &both);
        let guesses = both.model.summary.n_draft as usize;
        let want = run(
            &alone.programs,
            &file,
            &alone,
            &tokens[..13 - guesses],
            &[4],
        );
        let got = run(&both.programs, &file, &both, &tokens, &[4]);
        assert_eq!((want.len(), got.len()), (1, 1 + guesses));
        assert_eq!(want[0], got[0], "{name}");
    }
}

#[test]
fn drafts_token_by_token_equal_those_of_one_batch() {
    for (name, file) in models() {
        for devices in [1, 3] {
            let compiled = planned(&name, &file, &drafting(devices));
            let tokens = tokens(17, &compiled);
            let run = |sizes: &[usize]| run(&compiled.programs, &file, &compiled, &tokens, sizes);
            let want = run(&[32]);
            for sizes in [&[1][..], &[3, 1, 2]] {
                let what = format!("{name} on {devices} in batches of {sizes:?}");
                assert_close(&what, &want, &run(sizes), AGAINST_WHOLE);
            }
        }
    }
}

/// Two sequences of unequal length in a batch have the same drafts as alone.
#[test]
fn sequences_draft_as_if_alone() {
    for (name, file) in models() {
        let compiled = planned(&name, &file, &drafting(2));
        let guesses = compiled.model.summary.n_draft as usize;
        let long = tokens(9 + guesses as u32, &compiled);
        let short: Vec<u32> = long.iter().rev().copied().take(4 + guesses).collect();
        let alone = |tokens: &[u32]| run(&compiled.programs, &file, &compiled, tokens, &[32]);
        let (first, second) = (alone(&long), alone(&short));
        let mut batch = Batch::sequence(&long[..9], 0, 0);
        let other = Batch::sequence(&short[..4], 0, 1);
        batch.tokens.extend(other.tokens);
        batch.positions.extend(other.positions);
        batch.seq_ids.extend(other.seq_ids);
        batch.output_rows.extend(9..13);
        let mut config = SessionConfig::new(32).with_sequences(2);
        if let Some(window) = compiled.model.summary.window {
            config = config.with_window(window, 32);
        }
        let mut session = Session::new(&compiled.programs, &FileWeights(&file), config)
            .unwrap_or_else(|e| panic!("{e}"));
        session.decode(&batch).unwrap_or_else(|e| panic!("{e}"));
        for ahead in 1..=guesses {
            let next = [&long[ahead..9 + ahead], &short[ahead..4 + ahead]].concat();
            let got = session.draft(&next).unwrap_or_else(|e| panic!("{e}"));
            let got = got.reals().expect("logits are real").to_vec();
            let want = [first[ahead].as_slice(), &second[ahead]].concat();
            assert_close(&name, &vec![want], &vec![got], AGAINST_WHOLE);
        }
        let none_left = session.draft(&[0; 13]).expect_err("all have run");
        assert_eq!(none_left.code(), "TPC0521");
        let few = session.decode(&Batch::sequence(&[1, 2], 20, 0));
        few.unwrap_or_else(|e| panic!("{e}"));
        let few = session.draft(&[1]).expect_err("two tokens");
        assert_eq!(few.code(), "TPC0515");
        let rest = session.draft(&[1, 2]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(rest.dims()[1], 2);
    }
}

#[test]
fn placed_drafts_equal_drafts_whole() {
    let every = Sweep::asked().pick(11, 1);
    let (mut turn, mut ran) = (0, 0);
    for (name, file) in models() {
        let whole = planned(&name, &file, &drafting(1));
        let tokens = tokens(11, &whole);
        let want = run(&whole.model.graph, &file, &whole, &tokens, &[5]);
        let insts = || whole.model.graph.insts();
        let experts = insts().any(|(_, i)| matches!(i.op, Op::MulMatId(_)));
        let mut rng = Rng::new(name.bytes().map(u64::from).sum());
        for devices in [2, 3, 5] {
            let blocks = whole.model.summary.n_block();
            for Way { name: way, set } in ways(&mut rng, blocks, experts, devices) {
                turn += 1;
                if turn % every != 0 {
                    continue;
                }
                let mut asked = drafting(devices);
                set(&mut asked);
                let what = format!("{name} on {devices} devices with {way}");
                let compiled = planned(&what, &file, &asked);
                verify(&compiled.programs).unwrap_or_else(|e| panic!("{what}: {}", e[0]));
                let got = run(&compiled.programs, &file, &compiled, &tokens, &[5]);
                assert_close(&what, &want, &got, AGAINST_WHOLE);
                ran += 1;
            }
        }
    }
    println!("{ran} placements ran");
    assert!(ran > 70, "only {ran} placements ran");
}

#[test]
fn drafts_have_quantised_caches_too() {
    for (name, file) in models() {
        for (k, v) in [("q8_0", "q8_0"), ("q4_0", "f16"), ("bf16", "iq4_nl")] {
            let cached = |devices: usize| {
                let types = [("-ctk", k), ("-ctv", v)];
                let types = types.map(|(option, t)| {
                    parse_cache_type(option, t).unwrap_or_else(|e| panic!("{e}"))
                });
                Placement {
                    cache_type_k: types[0],
                    cache_type_v: types[1],
                    ..drafting(devices)
                }
            };
            // In some models, latent heads are not whole blocks of the cache type. tpc refuses these models with and
            // without drafts.
            let Ok(whole) = crate::support::compiled(&file, &cached(1)) else {
                continue;
            };
            let caches = |compiled: &CompiledModel| {
                let insts = compiled.model.graph.insts();
                let first = compiled.model.summary.n_layer;
                let states = insts.filter(|(_, i)| {
                    matches!(i.op, Op::State(_)) && i.layer.is_some_and(|l| u64::from(l) >= first)
                });
                let value = |v| compiled.model.graph.value(v).ty.dtype.name();
                states.map(|(_, i)| value(i.results[0])).collect::<Vec<_>>()
            };
            assert!(caches(&whole).iter().all(|t| [k, v].contains(t)), "{name}");
            let tokens = tokens(11, &whole);
            let want = run(&whole.model.graph, &file, &whole, &tokens, &[32]);
            let split = planned(&name, &file, &cached(2));
            let got = run(&split.programs, &file, &split, &tokens, &[32]);
            assert_close(&format!("{name} with {k}/{v}"), &want, &got, ROUNDED);
        }
    }
}

fn totals(r: &PlanReport) -> (u64, u64) {
    let places = || r.devices.iter().chain([&r.host]);
    (
        places().map(|p| p.weights_bytes).sum(),
        places().map(|p| p.kv_bytes).sum(),
    )
}

#[test]
fn headers_with_drafts_plan_for_one_to_eight_devices() {
    for (name, file) in with_drafts(headers(), &[LARGE]) {
        for devices in 1..=8 {
            let what = format!("{name} on {devices}");
            let report_of = |drafting| {
                let placement = Placement {
                    drafting,
                    ..placement(devices)
                };
                let compiled = planned(&what, &file, &placement);
                let r = plan_report(&name, &placement, &compiled);
                assert_eq!(
                    r.verdict,
                    tpc_diag::Verdict::Ok,
                    "{what}: {:?}",
                    r.diagnostics
                );
                (compiled, r)
            };
            let (_, alone) = report_of(Drafting::None);
            assert!(alone.drafts.is_none());
            let note = alone.diagnostics.iter().find(|d| d.code == "TPC0330");
            let help = note.and_then(|d| d.help.clone()).unwrap_or_default();
            assert!(help.contains("--spec-type draft-mtp"), "{what}");
            let (compiled, both) = report_of(Drafting::Mtp);
            assert!(both.diagnostics.iter().all(|d| d.code != "TPC0330"));
            // The plan includes every tensor of the file, and reports the added bytes as drafts.
            assert_eq!(both.model.unused_bytes, 0, "{what}");
            let held = totals(&both).0 - both.mirrored_bytes;
            assert_eq!(held, both.model.bytes, "{what}");
            let drafts = both.drafts.as_ref().expect("they are planned");
            assert_eq!(drafts.blocks, compiled.model.summary.n_draft);
            let places = || drafts.devices.iter().chain([&drafts.host]);
            let weights: u64 = places().map(|p| p.weights_bytes).sum();
            let kv: u64 = places().map(|p| p.kv_bytes).sum();
            let added = |a: u64, b: u64| a - b;
            assert_eq!(kv, added(totals(&both).1, totals(&alone).1), "{what}");
            assert!(kv > 0 && weights >= alone.model.unused_bytes, "{what}");
            assert_eq!(weights, added(totals(&both).0, totals(&alone).0), "{what}");
            let reduces = |r: &PlanReport| r.collectives.decode.all_reduce;
            let own = drafts.collectives.decode.all_reduce;
            assert_eq!(own, added(reduces(&both), reduces(&alone)), "{what}");
            // A block reduces after attention, after the feed-forward half, and after the lookup in a divided
            // embedding.
            assert!(
                own <= 3 * drafts.blocks && (devices == 1) == (own == 0),
                "{what}: {own}"
            );
            let mirrored = both.mirrored.whole_bytes as f64 / both.model.bytes as f64;
            assert!(
                mirrored <= 0.03,
                "{what}: {:.2} % mirrored",
                mirrored * 100.0
            );
        }
    }
}
