//! Repairs of graphs that ggml refuses: found by saturation, accepted by ggml's rules, equal when executed.

use std::collections::BTreeMap;

use tpc_ggml::capture::{self, Record};
use tpc_ggml::meta::repair::{EQUATIONS, Equation, Limits, RepairedGraph, Stop, repair, witness};
use tpc_ggml::meta::{self, Setup, Verdict};
use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Bindings, Graph, Symbol, TensorType};
use tpc_runtime::{Gelu, Interpreter, MemoryWeights, Options, Tensor};

use super::forms::{FORMS, Form};
use crate::random::Rng;

fn records(form: &Form) -> Vec<Record> {
    capture::records(&form.text()).unwrap_or_else(|e| panic!("{}: {e}", form.name))
}

fn repaired(form: &Form, equations: &[&'static Equation]) -> RepairedGraph {
    repair(&records(form), &Setup::new(2), equations, Limits::default())
}

/// Returns numbers that depend on a name.
fn noise(name: &str, n: usize) -> Vec<f64> {
    let mix = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
    let mut rng = Rng::new(name.bytes().fold(0xcbf2_9ce4_8422_2325, mix));
    (0..n).map(|_| f64::from(rng.real() as f32)).collect()
}

fn weights(graph: &Graph) -> MemoryWeights {
    let mut out = MemoryWeights::new();
    for (_, inst) in graph.insts() {
        let Op::Weight(w) = &inst.op else { continue };
        let dims = &graph.value(inst.results[0]).ty.dims;
        let ne = dims.each_ref().map(|d| d.as_const().expect("constant"));
        let n = ne.iter().product::<u64>() as usize;
        let values: Vec<f32> = noise(&w.tensor, n).iter().map(|&x| x as f32).collect();
        out.insert_f32(w.tensor.clone(), ne, &values);
    }
    out
}

/// Returns a capture's results on random numbers, which depend only on names.
pub(super) fn run(records: &[Record]) -> BTreeMap<String, Vec<f64>> {
    let text = capture::write(records);
    let read = capture::read(&text, "form").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let opaque = read.notes.iter().find(|n| n.code != "TPC0193");
    assert!(opaque.is_none(), "{opaque:?}\n{text}");
    let bind = |b: Bindings, &(s, n): &(Symbol, u64)| b.with(s, n);
    let bindings = read.batch.iter().fold(Bindings::default(), bind);
    let held = weights(&read.graph);
    let options = Options {
        gelu: Gelu::Exact,
        ..Options::default()
    };
    let mut interpreter =
        Interpreter::new(&read.graph, &held, options).unwrap_or_else(|e| panic!("{e}"));
    let mut inputs = |kind: &InputKind, ty: &TensorType| {
        let size = |d: &tpc_ir::Dim| d.eval(&bindings).expect("small") as usize;
        let dims = ty.dims.each_ref().map(size);
        let n = dims.iter().product::<usize>();
        match kind {
            InputKind::Other(name) if !ty.dtype.is_integer() => {
                Tensor::reals_of(dims, noise(name, n))
            }
            _ => Tensor::ints_of(dims, (0..n as i64).collect()),
        }
    };
    let out = interpreter
        .run(&bindings, &mut inputs)
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    let reals = |t: &Tensor| t.reals().expect("real numbers").to_vec();
    out.iter().map(|(n, t)| (n.clone(), reals(t))).collect()
}

pub(super) fn is_close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
}

#[test]
fn every_form_is_refused_and_repaired() {
    for form in FORMS {
        let before = records(form);
        let refused = meta::infer(&before, &Setup::new(2));
        assert_eq!(refused.verdict(), Verdict::Crash, "{}", form.name);
        let after = repaired(form, EQUATIONS);
        assert!(after.failed.is_none(), "{}: {:?}", form.name, after.failed);
        assert!(!after.repairs.is_empty(), "{}", form.name);
        let why = after.inference.faults.last();
        assert_eq!(
            after.inference.verdict(),
            Verdict::Ok,
            "{}: {why:?}",
            form.name
        );
        for c in &after.repairs {
            assert_eq!(
                c.search.stop,
                Stop::Saturated,
                "{}: {:?}",
                form.name,
                c.search
            );
        }
    }
}

#[test]
fn a_repaired_graph_computes_the_same() {
    for form in FORMS {
        let (before, after) = (run(&records(form)), run(&repaired(form, EQUATIONS).records));
        let (a, b): (Vec<_>, Vec<_>) = (before.values().collect(), after.values().collect());
        assert_eq!((a.len(), b.len()), (1, 1), "{}", form.name);
        assert!(is_close(a[0], b[0]), "{}", form.name);
    }
}

#[test]
fn every_equation_is_needed_by_some_form() {
    let is_repaired = |form: &Form, equations: &[&'static Equation]| {
        let found = repaired(form, equations);
        found.failed.is_none() && found.inference.verdict() == Verdict::Ok
    };
    assert!(FORMS.iter().all(|f| is_repaired(f, EQUATIONS)));
    let idle = EQUATIONS.iter().filter(|equation| {
        let others: Vec<&'static Equation> = EQUATIONS
            .iter()
            .copied()
            .filter(|l| l.name != equation.name)
            .collect();
        FORMS.iter().all(|form| is_repaired(form, &others))
    });
    let idle: Vec<&str> = idle.map(|l| l.name).collect();
    assert!(idle.is_empty(), "no form needs {idle:?}");
}

#[test]
fn both_sides_of_an_equation_are_equal_when_executed() {
    let mut applied: BTreeMap<&str, usize> = BTreeMap::new();
    let alone = EQUATIONS.iter().map(std::slice::from_ref);
    // Try each equation alone, and all together: the terms of one equation may match another.
    for equations in alone.chain([EQUATIONS]) {
        for form in FORMS {
            let limits = Limits::default();
            let (all, search) = witness(&records(form), &Setup::new(2), equations, limits);
            for (equation, n) in &search.applied {
                *applied.entry(equation).or_insert(0) += n;
            }
            if search.applied.is_empty() {
                continue;
            }
            let mut first: BTreeMap<String, Vec<f64>> = BTreeMap::new();
            for (name, found) in run(&all) {
                let class = name.split('.').next().unwrap_or(&name).to_owned();
                let expected = first.entry(class).or_insert_with(|| found.clone());
                assert!(
                    is_close(expected, &found),
                    "{}: {name}: {:?}",
                    form.name,
                    search
                );
            }
        }
    }
    let idle: Vec<&str> = EQUATIONS
        .iter()
        .map(|l| l.name)
        .filter(|n| !applied.contains_key(n))
        .collect();
    assert!(idle.is_empty(), "{idle:?}");
}

#[test]
fn the_flattened_rotation_becomes_a_product_of_four_axes() {
    let found = repaired(&FORMS[0], EQUATIONS);
    let diff: Vec<&str> = found.repairs.iter().flat_map(|c| c.diff.lines()).collect();
    assert_eq!(
        diff,
        [
            "- %6 = RESHAPE(%5)  f32 [8, 12]  reshape-5",
            "- %8 = MUL_MAT(rotation, %6)  f32 [8, 12]  mul_mat-7",
            "- %9 = RESHAPE(%8)  f32 [32, 3]  reshape-8",
            "+ %new1 = MUL_MAT(rotation, %5)  f32 [8, 4, 3]  mul_mat-7",
            "+ %9 = RESHAPE(%new1)  f32 [32, 3]  reshape-8",
        ]
    );
}
