//! `--calibrate`: input formats, the fit, and calibrated estimates.

use tpc_core::calibration::{CalibrationFit, calibrate, read};
use tpc_core::pipeline::Origin;
use tpc_core::placement::{DeviceList, Machine, Placement, SplitMode};
use tpc_gguf::GgufFile;
use tpc_passes::machine::Engine;
use tpc_tests::speeds::header;

const SPEC: &str = "llama:layers=32,embd=4096,heads=32,kv_heads=8,ff=14336,vocab=128256,ctx=131072,type=mixed,header=1";

fn placement() -> Placement {
    let list = DeviceList::parse("2x3090").expect("two cards");
    let machine = Machine::of(&list).expect("a machine");
    let mut out = Placement::on(machine.devices);
    out.topology = machine.topology;
    out.engine = Engine::LlamaCpp;
    out.split_mode = SplitMode::Auto;
    out
}

fn file(name: &str) -> String {
    let path = tpc_tests::data().join("calibrate").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"))
}

fn calibrated(model: &GgufFile, name: &str) -> CalibrationFit {
    let reading = read(name, &file(name)).unwrap_or_else(|d| panic!("{name}: {d:?}"));
    calibrate(name, reading, Origin::File(model), &placement())
        .unwrap_or_else(|d| panic!("{name}: {d:?}"))
}

#[test]
fn every_form_calibrates_alike() {
    let model = header(SPEC);
    let first = calibrated(&model, "bench.md");
    assert_eq!(first.rows.len(), 6);
    assert!(first.left_out.is_empty(), "{:?}", first.left_out);
    for name in ["bench.json", "bench.jsonl", "bench.csv"] {
        let other = calibrated(&model, name);
        assert_eq!(other.calibration, first.calibration, "{name}");
    }
}

#[test]
fn measured_rows_are_reproduced() {
    let model = header(SPEC);
    for name in ["bench.md", "server.log"] {
        let found = calibrated(&model, name);
        let c = &found.calibration;
        let (mut before, mut after) = (0.0, 0.0);
        for r in &found.rows {
            let residual = match r.row.name().starts_with("pp") {
                true => c.prompt_residual,
                false => c.residual,
            };
            let error = (r.after / r.row.speed).ln().abs();
            assert!(error <= residual, "{name}: {r:?}: {error} of {residual}");
            before += (r.before / r.row.speed).ln().powi(2);
            after += error * error;
        }
        assert!(after < before, "{name}: {after} of {before}");
        assert!(c.residual < 0.15, "{name}: {c:?}");
    }
}

#[test]
fn a_slow_machine_is_found() {
    let model = header(SPEC);
    let rows = calibrated(&model, "bench.md").rows;
    let mut text = "| params | sm | test | t/s |\n".to_owned();
    for r in &rows {
        let sm = r.row.split_mode.clone().unwrap_or_default();
        text += &format!(
            "| 8.03 B | {sm} | {} | {} |\n",
            r.row.name(),
            r.before * 0.8
        );
    }
    let reading = read("slow", &text).expect("rows");
    let found = calibrate("slow", reading, Origin::File(&model), &placement()).expect("a fit");
    let c = &found.calibration;
    assert!((0.7..0.95).contains(&c.bandwidth), "{c:?}");
    assert!(c.compute < 0.95 && c.residual < 0.12, "{c:?}");
}

#[test]
fn lines_that_cannot_be_used_are_named() {
    let model = header(SPEC);
    let found = calibrated(&model, "bad.md");
    assert_eq!(found.rows.len(), 1);
    let said: Vec<String> = found.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 5, "{said:?}");
    for line in 4..=8 {
        let named = format!("line {line}");
        assert!(said.iter().any(|s| s.contains(&named)), "{named}: {said:?}");
    }
    assert!(found.left_out.iter().all(|d| d.help.is_some()));
}
