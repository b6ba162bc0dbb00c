//! Every lint of a plan fires where it should, and is silent where it should not.

use tpc::diag::Diagnostic;
use tpc::lint::lints;
use tpc::placement::{Placement, SplitMode, parse_devices, parse_overrides, parse_tensor_split};
use tpc::report::report;
use tpc_passes::plan::{DeviceProfile, Topology};
use tpc_tests::headers;

use super::support::plan;

fn findings(header: &str, devices: &str, set: impl FnOnce(&mut Placement)) -> Vec<Diagnostic> {
    let path = headers()
        .into_iter()
        .find(|p| p.to_string_lossy().contains(header))
        .unwrap_or_else(|| panic!("no header of {header}"));
    let mut placement = Placement::on(parse_devices(devices).expect("devices"));
    set(&mut placement);
    let (_, compiled) = plan(&path, &placement).expect("the architecture is known");
    report("x.gguf", &placement, &compiled).diagnostics
}

fn codes(found: &[Diagnostic]) -> Vec<&'static str> {
    let mut out: Vec<&str> = found.iter().map(|d| d.code).collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn override_with(text: &str) -> impl FnOnce(&mut Placement) {
    let given = [text.to_owned()];
    move |p| p.overrides = parse_overrides(&given, &p.devices).expect("overrides")
}

fn memory(bytes: f64) -> Topology {
    let device = DeviceProfile {
        name: "d".into(),
        memory: Some(bytes),
        bandwidth: 1e12,
        flops: 2e14,
    };
    Topology {
        devices: vec![device],
        ..Topology::default()
    }
}

#[test]
fn a_plain_plan_has_nothing_to_say() {
    let found = findings("llama-3.1-8b", "2", |_| ());
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
        shares("19,1")(p);
        p.split_mode = SplitMode::Layer;
    };
    of(findings(small, "2", layers), "TPC0307");
    assert!(!codes(&findings("llama-3.1-8b", "2", shares("3,1"))).contains(&"TPC0307"));
    let trips = of(
        findings("llama-3.1-8b", "2", override_with("ffn_down=CPU")),
        "TPC0308",
    );
    assert!(
        trips.message.starts_with("32 round trips"),
        "{}",
        trips.message
    );
    of(findings("llama-3.1-8b", "2", shares("99,1")), "TPC0309");
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
    of(findings(small, "1", |p| p.n_cpu_moe = 3), "TPC0311");
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

#[test]
fn every_lint_has_a_code_of_its_own_and_a_cure() {
    let mut seen = std::collections::BTreeSet::new();
    for lint in lints() {
        assert!(seen.insert(lint.doc.code), "{}", lint.doc.code);
        assert!(lint.doc.doc.contains("Cure:"), "{}", lint.doc.code);
    }
}
