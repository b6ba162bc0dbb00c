//! Lints of plans, on headers of real models.

use crate::support::verified;
use tpc_core::pipeline::compile_capture;
use tpc_core::placement::{
    HostExperts, Placement, SplitMode, parse_devices, parse_overrides, parse_tensor_split,
};
use tpc_diag::Diagnostic;
use tpc_ggml::capture::CapturedGraph;
use tpc_lint::plan_report;
use tpc_passes::machine::{DeviceProfile, Topology};
use tpc_passes::rewrite::{Limits, Machine, RULES, rewrite};
use tpc_tests::headers;

use super::super::support::plan;
use super::graphs::record;
use super::{Case, codes};

pub(super) fn findings(
    header: &str,
    devices: &str,
    set: impl FnOnce(&mut Placement),
) -> Vec<Diagnostic> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(header))
        .unwrap_or_else(|| panic!("no header of {header}"));
    let mut placement = Placement::on(parse_devices(devices).expect("devices"));
    set(&mut placement);
    let (_, compiled) = plan(&path, &placement).expect("the architecture is known");
    plan_report("x.gguf", &placement, &compiled).diagnostics
}

pub(super) fn override_with(text: &str) -> impl FnOnce(&mut Placement) {
    let given = [text.to_owned()];
    move |p| p.overrides = parse_overrides(&given, &p.devices).expect("overrides")
}

pub(super) fn memory(bytes: f64) -> Topology {
    let device = DeviceProfile {
        name: "d".into(),
        memory: Some(bytes),
        reserve: 0.0,
        beside: 0.0,
        pool: None,
        bandwidth: 1e12,
        flops: 2e14,
        processor: None,
        class: tpc_passes::machine::CardClass::Unknown,
    };
    Topology {
        devices: vec![device],
        ..Topology::default()
    }
}

#[test]
fn a_plain_plan_has_nothing_to_say() {
    let found = findings("llama-3.1-8b", "2", |p| p.ctx_size = Some(8192));
    assert_eq!(codes(&found), [""; 0], "{found:?}");
}

#[test]
fn lints_fire() {
    let small = "qwen3-0.6b";
    let of = |found: Vec<Diagnostic>, code: &str| {
        assert!(codes(&found).contains(&code), "{code}: {found:?}");
        found
            .into_iter()
            .find(|d| d.code == code)
            .expect("it is there")
    };
    of(
        findings(small, "2", |p| p.topology = memory(1e8)),
        "TPC0300",
    );
    of(findings(small, "12", |_| ()), "TPC0302");
    of(findings("phi-4", "8", |_| ()), "TPC0306");
    let shares = |text: &str| {
        let shares = parse_tensor_split(text, 2).expect("shares");
        move |p: &mut Placement| p.tensor_split = Some(shares)
    };
    let layers = |p: &mut Placement| {
        shares("28.05,0.95")(p);
        p.split_mode = SplitMode::Layer;
    };
    of(findings(small, "2", layers), "TPC0307");
    assert!(!codes(&findings("llama-3.1-8b", "2", shares("3,1"))).contains(&"TPC0307"));
    let trips = of(
        findings("llama-3.1-8b", "2", override_with("ffn_down=CPU")),
        "TPC0308",
    );
    assert!(
        trips.message.to_string().starts_with("32 round trips"),
        "{}",
        trips.message
    );
    of(findings(small, "8", |_| ()), "TPC0309");
    let chosen = of(
        findings(small, "2", |p| p.split_mode = SplitMode::Auto),
        "TPC0310",
    );
    assert!(chosen.message.contains("layer"), "{}", chosen.message);
    let unmatched = of(
        findings(small, "2", override_with("ffn_dwn=CPU")),
        "TPC0311",
    );
    assert!(unmatched.help.is_some_and(|h| h.contains("ffn_")));
    let shadowed = override_with("ffn=CPU,ffn_down=dev0");
    let shadowed = of(findings(small, "2", shadowed), "TPC0311");
    assert!(shadowed.message.contains("earlier"), "{}", shadowed.message);
    of(
        findings(small, "1", |p| p.host_experts = HostExperts::First(3)),
        "TPC0311",
    );
    of(
        findings(small, "1", |p| p.ctx_size = Some(1 << 20)),
        "TPC0312",
    );
    let mirrored = of(
        findings(small, "2", override_with("attn=mirrored")),
        "TPC0313",
    );
    assert!(
        mirrored.message.contains("whole tensors"),
        "{}",
        mirrored.message
    );
}

fn of_capture(name: &str, text: &str, devices: &str) -> Vec<Diagnostic> {
    let captured = tpc_ggml::capture::read(text, name).unwrap_or_else(|e| panic!("{e}"));
    let placement = Placement::on(parse_devices(devices).expect("devices"));
    let compiled = compile_capture(&captured, &placement).expect("it is planned");
    plan_report("x", &placement, &compiled).diagnostics
}

fn of_text(text: &str, devices: &str) -> Vec<Diagnostic> {
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
    let placement = Placement::on(parse_devices(devices).expect("devices"));
    let compiled = compile_capture(&captured, &placement).expect("it is planned");
    plan_report("x", &placement, &compiled).diagnostics
}

const CUT: &str = include_str!("../../../filetests/lint/rotation-cuts-heads.tpir");
const UNCUT: &str = include_str!("../../../filetests/lint/blocks-across-heads.tpir");

/// Returns the findings of a plan. Unless `optimal`, the search ended early.
fn unproven(optimal: bool) -> Vec<Diagnostic> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains("qwen3-0.6b"));
    let placement = Placement::on(parse_devices("2").expect("devices"));
    let (_, mut compiled) = plan(&path.expect("a header"), &placement).expect("it is planned");
    compiled.planned.choice.optimal = optimal;
    plan_report("x", &placement, &compiled).diagnostics
}

/// Returns the findings of a plan after `iterations` rounds of rewriting.
fn rewritten(iterations: usize) -> Vec<Diagnostic> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains("qwen3-0.6b"));
    let placement = Placement::on(parse_devices("2").expect("devices"));
    let (_, mut compiled) = plan(&path.expect("a header"), &placement).expect("it is planned");
    let limits = Limits {
        iterations,
        ..Limits::default()
    };
    let machine = Machine {
        topology: &compiled.request.topology,
        workload: &compiled.request.workload,
    };
    compiled.rewriting = rewrite(&compiled.eager, machine, limits, RULES).report;
    plan_report("x", &placement, &compiled).diagnostics
}

pub(super) fn cases() -> Vec<Case> {
    let small = "qwen3-0.6b";
    let plain = move || findings(small, "2", |_| ());
    let large = || findings("llama-3.1-70b", "2", |_| ());
    vec![
        Case::new(
            "TPC0300",
            move || findings(small, "2", |p| p.topology = memory(1e8)),
            plain,
        ),
        Case::new("TPC0301", whole, plain),
        Case::new("TPC0302", move || findings(small, "12", |_| ()), plain),
        Case::new("TPC0303", || unproven(false), || unproven(true)),
        Case::new("TPC0314", || rewritten(1), || rewritten(100)),
        Case::new("TPC0304", || of_text(CUT, "2"), || of_text(UNCUT, "2")),
        Case::new("TPC0305", opaque, plain),
        Case::new(
            "TPC0306",
            || findings("phi-4", "8", |_| ()),
            || findings("phi-4", "2", |_| ()),
        ),
        Case::new(
            "TPC0308",
            || findings("llama-3.1-8b", "2", override_with("ffn_down=CPU")),
            || findings("llama-3.1-8b", "2", |_| ()),
        ),
        Case::new("TPC0309", move || findings(small, "8", |_| ()), large),
        // The plan for one device would hold the cache itself, so the lint does not compare it.
        Case::new(
            "TPC0309",
            move || findings(small, "8", |_| ()),
            move || findings(small, "8", |p| p.kv_on_host = true),
        ),
        Case::new(
            "TPC0310",
            move || findings(small, "2", |p| p.split_mode = SplitMode::Auto),
            plain,
        ),
        Case::new(
            "TPC0340",
            move || findings(small, "2", override_with("ffn=mirrored")),
            plain,
        ),
        Case::new(
            "TPC0313",
            move || findings(small, "2", override_with("attn=mirrored")),
            plain,
        ),
    ]
}

fn whole() -> Vec<Diagnostic> {
    let path = tpc_tests::data().join("graphs/deepseek2-moe.jsonl");
    let text = std::fs::read_to_string(path).expect("the capture is there");
    of_capture("deepseek2-moe", &text, "2")
}

fn opaque() -> Vec<Diagnostic> {
    let ne = [512, 1, 1, 1];
    let mut x = record(0, "x", "NONE", "f32", ne, &[]);
    x["flags"] = 1.into();
    let records = [
        x,
        record(1, "w", "NONE", "f32", [512, 512, 1, 1], &[]),
        record(2, "y", "MUL_MAT", "f32", ne, &[1, 0]),
        record(3, "z", "RWKV_WKV6", "f32", ne, &[2; 6]),
    ];
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    of_capture("opaque", &lines.join("\n"), "2")
}
