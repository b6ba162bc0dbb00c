use super::super::{CaptureError, CapturedGraph, read};
use crate::capture::codes;
use crate::meta::{Setup, diagnose};
use tpc_ir::Op;

macro_rules! attack {
    ($name:literal) => {
        include_str!(concat!(
            "../../../../../tests/data/attacks/",
            $name,
            ".jsonl"
        ))
    };
}

fn judged(text: &str) -> Result<CapturedGraph, CaptureError> {
    let captured = read(text, "attack")?;
    for devices in [1, 2, 3, 8] {
        diagnose(&captured.records, &Setup::new(devices));
    }
    Ok(captured)
}

#[test]
fn too_few_sources_are_told() {
    for (text, line, op) in [
        (attack!("add1"), 3, "ADD has 1 of 2 required sources"),
        (attack!("mm1"), 3, "MUL_MAT has 1 of 2 required sources"),
        (
            attack!("lint-ggml-meta-panic-1"),
            3,
            "MUL_MAT has 1 of 2 required sources",
        ),
    ] {
        let e = judged(text).expect_err(op);
        assert_eq!((e.code().id, e.line()), (codes::SOURCES.id, Some(line)));
        assert!(e.to_string().contains(op), "{e}");
    }
    let _ = judged(attack!("lint-ggml-meta-panic-2"));
}

#[test]
fn ops_without_a_rule_stay_apart() {
    for text in [attack!("opaque-params"), attack!("opaque-views")] {
        let captured = judged(text).expect("it reads");
        let ops: Vec<_> = captured
            .graph
            .insts()
            .filter(|(_, d)| matches!(d.op, Op::Opaque(_)))
            .map(|(_, d)| (d.op.clone(), d.operands.clone()))
            .collect();
        for (i, a) in ops.iter().enumerate() {
            assert!(!ops[..i].contains(a), "two ops became one: {a:?}");
        }
        assert!(ops.len() >= 2);
    }
}

#[test]
fn a_copy_to_itself_keeps_its_source() {
    let captured = judged(attack!("dream-dense")).expect("it reads");
    for t in captured.records.iter().filter(|t| t.op.name() == "CPY") {
        assert!(t.src.first().is_some_and(Option::is_some), "{}", t.name);
    }
    let lost = |d: &tpc_ir::InstData| match &d.op {
        Op::Opaque(op) => op.name == "uninitialised",
        _ => false,
    };
    assert!(
        !captured.graph.insts().any(|(_, d)| lost(d)),
        "{}",
        captured.graph
    );
}
