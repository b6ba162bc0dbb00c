//! Every capture, planned for several numbers of devices: split programs compute the whole graph. Tensor names do not
//! matter.

use std::path::Path;

use tpc_ir::{Graph, Output};

use super::super::support;
use super::{DEVICES, Whole, divide, infer, read, stem, text};

const FAILING: &[(&str, &str)] = &[];

/// Plans a capture for every number of devices, runs the plans and compares the results.
fn check(path: &Path) -> Result<(), String> {
    let captured = read(&text(path), &stem(path))?;
    infer(&captured.graph)?;
    support::round_trip(&captured.graph);
    let whole = Whole::new(captured)?;
    for devices in DEVICES {
        let divided = divide(&whole.graph, devices)?;
        let compared = whole.compare(&divided.programs);
        compared.map_err(|e| format!("{devices} devices: {e}"))?;
    }
    Ok(())
}

#[test]
fn captures_are_planned_and_run_split_as_whole() {
    let found = tpc_tests::captures();
    assert!(found.len() >= 6, "the repository has some");
    for path in found {
        let known = FAILING.iter().find(|(name, _)| *name == stem(&path));
        match (check(&path), known) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Err(e), None) => panic!("{}: {e}", stem(&path)),
            (Ok(()), Some((name, why))) => panic!("{name} works now: it was said that {why}"),
        }
    }
}

/// Returns the capture with other tensor names and without marks on inputs.
fn anonymous(text: &str) -> String {
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        let mut record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        record["name"] = format!("t{i}").into();
        record["flags"] = (record["flags"].as_u64().expect("a number") & !1).into();
        out.push_str(&record.to_string());
        out.push('\n');
    }
    out
}

fn form(graph: &Graph) -> impl PartialEq {
    let insts: Vec<_> = graph
        .insts()
        .map(|(_, i)| (i.op.name(), i.operands.clone(), i.results.clone(), i.layer))
        .collect();
    let values: Vec<_> = graph
        .values()
        .map(|(_, v)| (v.ty.clone(), v.place, v.sharding.clone()))
        .collect();
    let classes: Vec<_> = graph
        .classes
        .iter()
        .map(|c| (c.size, c.ranges.clone()))
        .collect();
    let outputs: Vec<_> = graph.outputs.iter().map(Output::value).collect();
    (insts, values, classes, outputs)
}

#[test]
fn names_and_marks_of_inputs_decide_nothing() {
    for path in tpc_tests::captures() {
        let name = stem(&path);
        let text = text(&path);
        let plan = |text: &str| {
            let captured = read(text, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
            DEVICES.map(|devices| {
                divide(&captured.graph, devices).unwrap_or_else(|e| panic!("{name}: {e}"))
            })
        };
        let (named, unnamed) = (plan(&text), plan(&anonymous(&text)));
        for ((devices, a), b) in DEVICES.iter().zip(&named).zip(&unnamed) {
            assert!(form(&a.sharded) == form(&b.sharded), "{name} on {devices}");
            assert!(
                form(&a.programs) == form(&b.programs),
                "{name} on {devices}"
            );
        }
    }
}
