//! Advice for plans that do not fit. Each suggestion must fit when planned as typed, and appear once. No alternative
//! that is over a tenth faster may be missing.

use std::fmt::Write as _;

use tpc_core::advice::{Advice, Advisor, Change, Counsel, Limits};
use tpc_core::pipeline::{CompiledModel, Origin};
use tpc_core::placement::{CacheSplit, HostExperts, Placement, SplitMode, parse_devices};
use tpc_core::report::PlanReport;
use tpc_diag::{Diagnostic, Severity};
use tpc_gguf::GgufFile;
use tpc_ir::DType;
use tpc_lint::plan_report_with_advice;
use tpc_passes::machine::{DeviceProfile, Topology, Workload};
use tpc_tests::{Sweep, headers};

use super::synthetic::make;

const LIMITS: Limits = Limits {
    steps: u64::MAX / 2,
};

fn machine(gigabytes: &[f64]) -> Topology {
    let device = |gb: &f64| DeviceProfile {
        name: "d".into(),
        memory: Some(gb * 1e9),
        reserve: 0.0,
        beside: 0.0,
        pool: None,
        bandwidth: 9e11,
        flops: 7e13,
        processor: None,
        class: tpc_passes::machine::CardClass::Unknown,
    };
    Topology {
        devices: gigabytes.iter().map(device).collect(),
        ..Topology::default()
    }
}

/// Eight experts and KV heads on two devices, one with half the memory. Shares by free memory round to halves, which do
/// not fit.
#[test]
fn shares_shift_until_a_plan_fits() {
    let path = headers().into_iter();
    let mut path = path.filter(|p| p.to_string_lossy().contains("mixtral"));
    let file = GgufFile::open(path.next().expect("in the repository")).expect("a header");
    for (gigabytes, room) in [
        (&[24.0, 12.0][..], true),
        (&[12.0, 24.0], true),
        (&[16.0, 8.0, 9.0], true),
        (&[20.0, 9.0], false),
    ] {
        let placement = Placement {
            topology: machine(gigabytes),
            ctx_size: Some(8192),
            ..Placement::on(parse_devices(&gigabytes.len().to_string()).expect("a count"))
        };
        let compiled =
            super::support::compiled(&file, &placement).unwrap_or_else(|d| panic!("{}", d[0]));
        assert_eq!(compiled.fits(), room, "{gigabytes:?} GB");
        let asked = Placement {
            tensor_split: Some(vec![1.0; gigabytes.len()]),
            ..placement
        };
        let compiled =
            super::support::compiled(&file, &asked).unwrap_or_else(|d| panic!("{}", d[0]));
        assert!(!compiled.fits(), "{gigabytes:?} GB in equal shares");
    }
}

fn header(name: &str) -> Option<GgufFile> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(name))?;
    Some(GgufFile::open(path).unwrap_or_else(|e| panic!("{e}")))
}

fn counsel(file: &GgufFile, base: &Placement, limits: Limits) -> (CompiledModel, Counsel) {
    let compiled = super::support::compiled(file, base).expect("the model is planned");
    assert!(!compiled.fits(), "the model fits");
    let advisor = Advisor {
        origin: Origin::File(file),
        limits,
        watch: &|| (),
        engine: base.engine,
        implied_shares: false,
        vet: &|_, _| true,
    };
    let found = advisor.counsel(base, &compiled);
    (compiled, found)
}

fn replaced(words: &[String], options: &str) -> Vec<String> {
    let options: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
    let mut out: Vec<String> = Vec::new();
    for pair in words.chunks(2) {
        if !options.contains(&pair[0]) {
            out.extend_from_slice(pair);
        }
    }
    out.extend(options);
    out
}

fn planned(file: &GgufFile, words: &[String]) -> CompiledModel {
    let placement = tpc::placement(words, DType::F16, SplitMode::Auto);
    let placement = placement.unwrap_or_else(|d| panic!("{words:?}: {}", d[0]));
    super::support::compiled(file, &placement).unwrap_or_else(|d| panic!("{words:?}: {}", d[0]))
}

/// Returns the microseconds of a generated token with its share of prompts.
fn us(decode_tps: f64, prompt_tps: f64) -> f64 {
    1e6 / decode_tps + Workload::PROMPT_WEIGHT * 1e6 / prompt_tps
}

/// True if the advice reduces the context, and if it reduces the caches' precision.
fn gives_up(advice: &Advice) -> [bool; 2] {
    let any = |f: &dyn Fn(&Change) -> bool| advice.changes.iter().any(f);
    [
        any(&|c| matches!(c, Change::Context { .. })),
        any(&|c| matches!(c, Change::Caches { .. })),
    ]
}

const SMALL: [&str; 2] = [
    "llama:layers=3,embd=256,heads=8,kv_heads=4,head_dim=32,ff=512,vocab=320,ctx=4096,type=q8_0",
    "qwen3moe:layers=3,embd=256,heads=8,kv_heads=4,head_dim=32,ff=256,experts=8,experts_used=2,vocab=320,ctx=4096,type=q8_0",
];

/// Returns the fitting configurations of a small grid with their times. The flags are true for a reduced context and
/// reduced precision of caches.
fn grid(file: &GgufFile, base: &Placement) -> Vec<(f64, [bool; 2], Placement)> {
    let layers = 3_u64;
    let mut host: Vec<(HostExperts, u64)> =
        (0..=layers).map(|n| (HostExperts::First(n), 0)).collect();
    host.extend((1..=layers + 1).flat_map(|n| [(HostExperts::NONE, n), (HostExperts::All, n)]));
    let mut out = Vec::new();
    for split_mode in [SplitMode::Tensor, SplitMode::Layer, SplitMode::None] {
        for ctx in [4096_u64, 2048, 512] {
            for cache in [DType::F16, DType::Q8_0, DType::Q4_0] {
                for kv_on_host in [false, true] {
                    for &(host_experts, on_host) in &host {
                        let placement = Placement {
                            split_mode,
                            ctx_size: Some(ctx),
                            cache_type_k: cache,
                            cache_type_v: cache,
                            kv_on_host,
                            host_experts,
                            n_gpu_layers: Some(layers + 1 - on_host),
                            // Advice is ranked at a quarter of the requested context.
                            depth: 1024.min(ctx),
                            ..base.clone()
                        };
                        let prepared = Origin::File(file).prepare(&placement).expect("a model");
                        let draft = prepared.draft(&placement).expect("a plan");
                        if draft.fits() {
                            let e = draft.estimate();
                            let given = [ctx < 4096, cache != DType::F16];
                            out.push((us(e.decode_tps, e.prompt_tps), given, placement));
                        }
                    }
                }
            }
        }
    }
    out
}

fn needed(file: &GgufFile, base: &Placement) -> f64 {
    let r = report(file, base, LIMITS).1;
    let total = r.devices.iter().map(|d| d.total_bytes).max();
    total.expect("a device") as f64
}

fn report(file: &GgufFile, placement: &Placement, limits: Limits) -> (CompiledModel, PlanReport) {
    let compiled = super::support::compiled(file, placement).expect("the model is planned");
    let advisor = Advisor {
        origin: Origin::File(file),
        limits,
        watch: &|| (),
        engine: placement.engine,
        implied_shares: false,
        vet: &|_, _| true,
    };
    let report = plan_report_with_advice("m", placement, &compiled, &advisor);
    (compiled, report)
}

#[test]
fn nothing_faster_by_more_than_a_tenth_is_missing() {
    let parts = Sweep::asked().pick(&[0.55][..], &[0.9, 0.7, 0.55, 0.4, 0.2]);
    let counts = Sweep::asked().pick(&[2_usize][..], &[1, 2]);
    let mut checked = 0;
    for spec in SMALL {
        let file = make(spec);
        for &devices in counts {
            let mut base = Placement {
                split_mode: SplitMode::Auto,
                ctx_size: Some(4096),
                ubatch_size: 64,
                ..Placement::on(parse_devices(&devices.to_string()).expect("a count"))
            };
            base.split_mode = SplitMode::Layer;
            let all = needed(&file, &base);
            for &part in parts {
                base.topology.devices[0].memory = Some(all * part);
                if super::support::compiled(&file, &base)
                    .expect("a plan")
                    .fits()
                {
                    continue;
                }
                let (_, found) = counsel(&file, &base, LIMITS);
                assert!(found.complete);
                let grid = grid(&file, &base);
                for (time, given, placement) in &grid {
                    let covered = found.advice.iter().any(|a| {
                        let within = gives_up(a).iter().zip(given).all(|(a, g)| !a || *g);
                        within && us(a.decode_tps, a.prompt_tps) <= time * 1.1
                    });
                    let named: Vec<String> = found
                        .advice
                        .iter()
                        .map(|a| format!("{} ({})", a.options, a.worth()))
                        .collect();
                    assert!(
                        covered,
                        "{spec} on {devices} with {part}: {time:.2} µs is missing: {placement:?}\n{named:?}"
                    );
                }
                checked += grid.len();
            }
            base.topology.devices[0].memory = None;
        }
    }
    assert!(checked > 100, "{checked} configurations fit");
}

const CELLS: u64 = 256;

/// Returns the placement of an advice with one option (besides the mode) a step closer to the request; `None` for other
/// advice.
fn milder(advice: &Advice) -> Option<Placement> {
    let mut changes = advice.changes.iter();
    let mut options = changes.by_ref().filter(|c| !matches!(c, Change::Mode(_)));
    let less = match *options.next()? {
        Change::HostExperts(n) if n > 0 => Change::HostExperts(n - 1),
        Change::GpuLayers { kept, all } if kept < all => Change::GpuLayers {
            kept: kept + 1,
            all,
        },
        Change::Context { asked, ctx_size } if ctx_size + CELLS < asked => Change::Context {
            asked,
            ctx_size: ctx_size + CELLS,
        },
        _ => return None,
    };
    if options.next().is_some() {
        return None;
    }
    let mut out = advice.placement.clone();
    out.split_mode = advice.mode;
    less.apply(&mut out);
    Some(out)
}

#[test]
fn a_cure_of_one_option_is_the_mildest_that_fits() {
    let mut checked = 0;
    for (name, gigabytes, context) in [
        ("llama-3.1-8b", &[10.0, 10.0][..], None),
        ("llama-3.1-8b", &[3.0], Some(8192)),
        ("mixtral", &[9.0, 9.0], Some(8192)),
        ("gpt-oss", &[24.0, 12.0], None),
        ("phi-4", &[12.0], None),
        ("qwen3-14b", &[14.0], None),
    ] {
        let file = header(name).expect("in the repository");
        let base = Placement {
            topology: machine(gigabytes),
            split_mode: SplitMode::Auto,
            ctx_size: context,
            ..Placement::on(parse_devices(&gigabytes.len().to_string()).expect("a count"))
        };
        let (_, found) = counsel(&file, &base, LIMITS);
        assert!(!found.advice.is_empty(), "{name} on {gigabytes:?}");
        for advice in &found.advice {
            let what = format!("{name} on {gigabytes:?} with {}", advice.options);
            let fits = |p: &Placement| {
                let compiled = super::support::compiled(&file, p);
                compiled
                    .unwrap_or_else(|d| panic!("{what}: {}", d[0]))
                    .fits()
            };
            assert!(fits(&advice.placement), "{what} does not fit");
            if let Some(milder) = milder(advice) {
                assert!(!fits(&milder), "{what} is not the mildest");
                checked += 1;
            }
        }
    }
    assert!(checked >= 2, "{checked} cures of one option");
}

const MACHINES: [&str; 12] = [
    "3090",
    "2x3090",
    "3x3090",
    "4x3090",
    "3090,4090",
    "2x4090",
    "4x4090",
    "8x4090",
    "2x5090",
    "4xL40S",
    "8xH100-SXM",
    "8xH200-SXM",
];

const MODELS: [&str; 16] = [
    "deepseek-v3.1",
    "gemma-3-27b",
    "gemma-4-31b",
    "glm-4.5-air-106b-a12b-iq4_xs.header",
    "gpt-oss-120b",
    "llama-3.1-405b",
    "llama-3.1-70b",
    "llama-3.1-8b",
    "mixtral-8x7b",
    "phi-4",
    "qwen3-0.6b",
    "qwen3-14b",
    "qwen3-30b-a3b",
    "qwen3.5-122b",
    "qwen3.5-35b",
    "qwen3.6-27b",
];

/// Returns a row of the matrix. Checks the verdict against the devices' memory, and that all advice fits as typed.
fn row(file: &GgufFile, machine: &str, context: Option<u64>, name: &str) -> String {
    let mut words = vec!["--devices".to_owned(), machine.to_owned()];
    words.extend(
        context
            .into_iter()
            .flat_map(|c| ["-c".to_owned(), c.to_string()]),
    );
    let placement = tpc::placement(&words, DType::F16, SplitMode::Auto);
    let placement = placement.unwrap_or_else(|d| panic!("{words:?}: {}", d[0]));
    let machine = &placement.topology;
    let (compiled, r) = report(file, &placement, LIMITS);
    let fits = r.devices.iter().enumerate().all(|(i, d)| {
        let usable = machine.device(i).usable_memory();
        usable.is_none_or(|m| d.total_bytes as f64 <= m)
    });
    let host = machine
        .host
        .usable_memory()
        .is_none_or(|m| r.host.total_bytes as f64 <= m);
    let errors: Vec<&Diagnostic> = r
        .diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .collect();
    assert_eq!(
        (r.verdict == tpc_diag::Verdict::Ok),
        fits && host,
        "{name}: {errors:?}"
    );
    assert_eq!(fits && host, compiled.fits(), "{name}");
    let context = context.map_or_else(|| "all".to_owned(), |c| c.to_string());
    let mut out = String::new();
    if fits && host {
        let e = &compiled.estimate;
        let _ = writeln!(
            out,
            "| {name} | {context} | fits, {:.1} t/s | |",
            e.decode_tps
        );
        return out;
    }
    assert!(
        r.advice.is_empty() || errors.len() == 1,
        "{name}: {errors:?}"
    );
    let help = errors[0].help.as_ref().expect("a help").to_string();
    assert!(
        !r.advice.is_empty() || help.contains("missing"),
        "{name}: {help}"
    );
    for a in &r.advice {
        let mut typed = replaced(&words, &a.options);
        typed.extend(["--depth".to_owned(), a.depth.to_string()]);
        let again = planned(file, &typed);
        assert!(
            again.fits(),
            "{name} -c {context}: {} does not fit",
            a.options
        );
        let (said, is) = (a.decode_tps, again.estimate.decode_tps);
        assert!(
            (said / is - 1.0).abs() < 1e-6,
            "{name}: {}: {said} t/s, but {is}",
            a.options
        );
        assert!(help.contains(&a.options), "{name}: {help}");
    }
    let all: Vec<String> = r
        .advice
        .iter()
        .map(|a| format!("`{}` {:.1} t/s", a.options, a.decode_tps))
        .collect();
    let more = help
        .lines()
        .find(|l| l.contains("such devices"))
        .unwrap_or_default();
    let more = more.split(" suffice").next().unwrap_or_default();
    let _ = writeln!(out, "| {name} | {context} | {} | {more} |", all.join("; "));
    out
}

#[test]
fn every_verdict_and_all_advice_is_consistent() {
    let (models, contexts) = Sweep::asked().pick(
        (&["llama-3.1-8b", "qwen3-30b", "gpt-oss"][..], &[None][..]),
        (&MODELS[..], &[Some(4096), Some(32768), None][..]),
    );
    let mut table = String::new();
    for model in models {
        let Some(file) = header(model) else {
            continue;
        };
        for (i, name) in MACHINES.into_iter().enumerate() {
            if Sweep::asked() == Sweep::Sample && i % 4 != 0 {
                continue;
            }
            for &context in contexts {
                table += &row(&file, name, context, &format!("{model} | {name}"));
            }
        }
    }
    println!("| model | machine | context | advice | devices |\n|---|---|---|---|---|\n{table}");
    assert!(table.contains("t/s"));
}

/// DeepSeek V3.1 on sixteen cards of 24 GiB.
#[test]
fn experts_of_a_few_layers_on_the_host_are_found() {
    let Some(file) = header("deepseek") else {
        return;
    };
    let base = Placement {
        topology: machine(&[25.769_803_776; 16]),
        split_mode: SplitMode::Auto,
        cache_split: CacheSplit::Heads,
        ctx_size: Some(4096),
        ..Placement::on(parse_devices("16").expect("a count"))
    };
    let (_, found) = counsel(&file, &base, Limits::default());
    let experts = |a: &Advice| {
        let few = |c: &Change| matches!(c, Change::HostExperts(n) if *n <= 6);
        a.changes.iter().any(few)
    };
    assert!(found.advice.iter().any(experts), "{:?}", found.advice);
    assert!(found.growth.is_some_and(|g| g.devices > 16));
}

/// One device cannot hold the cache, two can: only the requested mode does not fit.
#[test]
fn advice_is_not_bound_to_the_mode_that_fails() {
    let file = header("llama-3.1-8b").expect("in the repository");
    let base = Placement {
        topology: machine(&[16.0, 16.0]),
        split_mode: SplitMode::None,
        ..Placement::on(parse_devices("2").expect("a count"))
    };
    let (_, found) = counsel(&file, &base, LIMITS);
    let first = &found.advice[0];
    assert_eq!(first.changes.len(), 1, "{}", first.options);
    assert!(
        matches!(first.changes[0], Change::Mode(_)),
        "{}",
        first.options
    );
    assert_eq!(first.price, "");
}

#[test]
fn better_shares_are_named() {
    let file = header("llama-3.1-8b").expect("in the repository");
    let base = Placement {
        topology: machine(&[8.0, 2.0]),
        split_mode: SplitMode::Tensor,
        ctx_size: Some(4096),
        tensor_split: Some(vec![1.0, 1.0]),
        ..Placement::on(parse_devices("2").expect("a count"))
    };
    let (_, found) = counsel(&file, &base, LIMITS);
    let shares = |a: &Advice| a.changes.iter().any(|c| matches!(c, Change::Shares(_)));
    assert!(found.advice.iter().any(shares), "{:?}", found.advice);
}

#[test]
fn a_search_that_ends_early_says_so_and_names_what_fits() {
    let file = header("mixtral").expect("in the repository");
    let base = Placement {
        topology: machine(&[9.0, 9.0]),
        split_mode: SplitMode::Auto,
        ctx_size: Some(8192),
        ..Placement::on(parse_devices("2").expect("a count"))
    };
    let few = Limits { steps: 0 };
    let (_, r) = report(&file, &base, few);
    let all: Vec<&Diagnostic> = r
        .diagnostics
        .iter()
        .filter(|d| d.code == "TPC0300")
        .collect();
    assert_eq!(all.len(), 1, "once for the plan");
    let help = all[0].help.as_ref().expect("a help").to_string();
    assert!(help.contains("plans tried"), "{help}");
    let (_, r) = report(&file, &base, LIMITS);
    assert!(!r.advice.is_empty());
}

#[test]
fn so_many_devices_suffice() {
    let file = header("llama-3.1-70b").expect("in the repository");
    let base = Placement {
        topology: machine(&[24.0]),
        split_mode: SplitMode::Auto,
        ctx_size: Some(4096),
        ..Placement::on(parse_devices("1").expect("a count"))
    };
    let (_, found) = counsel(&file, &base, LIMITS);
    let growth = found.growth.expect("more devices suffice");
    assert_eq!(growth.devices, 2);
    let compiled = super::support::compiled(&file, &growth.placement).expect("a plan");
    assert!(compiled.fits());
}

#[test]
fn where_nothing_helps_the_least_that_is_missing_is_told() {
    let file = header("llama-3.1-8b").expect("in the repository");
    let mut base = Placement {
        topology: machine(&[1.0]),
        split_mode: SplitMode::Auto,
        ..Placement::on(parse_devices("1").expect("a count"))
    };
    base.topology.host.memory = Some(1e9);
    let (_, r) = report(&file, &base, LIMITS);
    assert!(r.advice.is_empty(), "{:?}", r.advice);
    let all: Vec<&Diagnostic> = r
        .diagnostics
        .iter()
        .filter(|d| d.code == "TPC0300")
        .collect();
    let help = all[0].help.as_ref().expect("a help").to_string();
    assert!(help.contains("are missing, most of them on"), "{help}");
}

/// Slow links: one device is faster than two. tpc may suggest one device only if it has planned it.
#[test]
fn what_is_faster_is_planned_before_it_is_named() {
    let file = header("qwen3-0.6b").expect("in the repository");
    let mut base = Placement {
        topology: machine(&[24.0, 24.0]),
        split_mode: SplitMode::Tensor,
        ctx_size: Some(4096),
        ..Placement::on(parse_devices("2").expect("a count"))
    };
    base.topology.link.latency_us = 500.0;
    let found = |base: &Placement, code: &str| {
        let (_, r) = report(&file, base, LIMITS);
        r.diagnostics.into_iter().find(|d| d.code == code)
    };
    let help = found(&base, "TPC0309")
        .expect("one is faster")
        .help
        .expect("a help")
        .to_string();
    assert!(help.starts_with("-sm "), "{help}");
    // Too large for one device; two devices in sequence are as slow as in parallel.
    base.topology
        .devices
        .iter_mut()
        .for_each(|d| d.memory = Some(0.8e9));
    assert!(found(&base, "TPC0309").is_none());
    // Experts on the host, with and without enough device memory for them.
    let file = header("qwen3-30b").expect("in the repository");
    let found = |gigabytes: f64, experts: u64| {
        let base = Placement {
            topology: machine(&[gigabytes]),
            split_mode: SplitMode::Auto,
            ctx_size: Some(4096),
            host_experts: HostExperts::First(experts),
            ..Placement::on(parse_devices("1").expect("a count"))
        };
        let (_, r) = report(&file, &base, LIMITS);
        r.diagnostics.into_iter().find(|d| d.code == "TPC0308")
    };
    let needless = found(24.0, 20).expect("round trips");
    assert_eq!(needless.severity, Severity::Warning);
    assert!(needless.help.expect("a help").contains("-ncmoe 0"));
    let needed = found(9.0, 48).expect("round trips");
    assert!(needed.help.is_some());
}
