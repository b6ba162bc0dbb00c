//! Every kernel against the reference: random sizes, layouts in memory, element types and attributes, one to four
//! workers. A result has the tolerance of its case, and the same bits for any number of workers and on any instruction
//! set; bytes between its elements stay as they were.
//!
//! [`cases::generator`] is the registry: an op without a generator fails [`every_op_has_a_case_or_no_kernel`].

mod cases;
mod random;
mod stored;

use cases::{Arg, Case};
use random::Random;
use stored::Stored;
use tpc_cpu::product::Isa;
use tpc_cpu::{Kernel, KernelError, Sizes, Team, View};
use tpc_ir::op::{AttrReader, Op};
use tpc_ir::{Bindings, DType};
use tpc_runtime::{OpContext, Shape, Tensor, eval};

/// Cases per op.
const CASES: u64 = 40;

/// Runs a kernel on views; every worker has scratch memory of its own, as much as the kernel asks for.
fn launch(
    team: &mut Team,
    kernel: &Kernel,
    operands: &[View],
    results: &[View],
) -> Result<(), KernelError> {
    let sizes = |views: &[View]| -> Vec<Sizes> { views.iter().map(|v| v.ne).collect() };
    let bytes = kernel.scratch_bytes(&sizes(operands), &sizes(results));
    team.run(|worker| {
        let mut scratch = vec![0xa5; bytes];
        // SAFETY: the views are of memory that lives and that nobody else uses; results overlap operands only where the
        // kernel allows it.
        #[allow(unsafe_code)]
        unsafe {
            kernel.run(worker, operands, results, &mut scratch)
        }
    })
}

fn operands_of(case: &Case, random: &Random) -> Vec<Stored> {
    let store = |arg: &Arg| Stored::of(arg.dtype, arg.dims, &arg.data, random);
    case.operands.iter().map(store).collect()
}

/// The reference's results.
fn expected(case: &Case, operands: &[Stored], shapes: &[Shape]) -> Vec<Tensor> {
    let tensors: Vec<Tensor> = operands.iter().map(Stored::tensor).collect();
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let ctx = OpContext {
        bindings: &Bindings::default(),
        options: case.options,
    };
    eval(&case.op, &tensors, shapes, &ctx)
        .unwrap_or_else(|e| panic!("the case does not fit its op: {e}\n{case:?}"))
}

fn numbers(t: &Tensor) -> Vec<f64> {
    match t.ints() {
        Ok(ints) => ints.iter().map(|&i| i as f64).collect(),
        Err(_) => t.reals().expect("real or integer").into_owned(),
    }
}

fn compare(case: &Case, found: &Stored, wanted: &Tensor, what: &str) {
    // What rounds beyond the largest f16 is infinite.
    let largest = if found.dtype() == DType::F16 {
        65520.0
    } else {
        f64::MAX
    };
    let (found, wanted) = (numbers(&found.tensor()), numbers(wanted));
    assert_eq!(found.len(), wanted.len(), "{what}: {case:?}");
    for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
        let w = if largest < w.abs() {
            w.signum() * f64::INFINITY
        } else {
            *w
        };
        let bound = case.tolerance * w.abs().max(case.magnitude);
        let same = *f == w || f.is_nan() && w.is_nan() || (f - w).abs() <= bound;
        assert!(
            same,
            "{what}, element {i}: found {f}, expected {w}\n{case:?}"
        );
    }
}

/// Runs a case with one to four workers, and in place where it may be.
fn check(case: &Case, teams: &mut [Team], random: &Random) {
    let operands = operands_of(case, random);
    let shapes: Vec<Shape> = case
        .results
        .iter()
        .map(|&(dtype, dims)| Shape { dtype, dims })
        .collect();
    let wanted = expected(case, &operands, &shapes);
    let types: Vec<DType> = case.operands.iter().map(|a| a.dtype).collect();
    let result_types: Vec<DType> = case.results.iter().map(|r| r.0).collect();
    let select = || {
        Kernel::select(&case.op, &types, &result_types, case.options)
            .unwrap_or_else(|e| panic!("{e}: {case:?}"))
    };
    let kernel = select();
    let results: Vec<Stored> = shapes.iter().map(|s| Stored::poison(*s, random)).collect();
    let mut first: Option<Vec<Stored>> = None;
    for team in &mut *teams {
        let mut inputs = operands.clone();
        let mut outputs = results.clone();
        let views: Vec<View> = inputs.iter_mut().map(Stored::view).collect();
        let result_views: Vec<View> = outputs.iter_mut().map(Stored::view).collect();
        launch(team, &kernel, &views, &result_views).unwrap_or_else(|e| panic!("{e}: {case:?}"));
        for (input, operand) in inputs.iter().zip(&operands) {
            assert!(input == operand, "an operand has changed: {case:?}");
        }
        for (output, result) in outputs.iter().zip(&results) {
            assert!(
                output.same_gaps(result),
                "bytes beside the result: {case:?}"
            );
        }
        match &first {
            None => {
                for (output, wanted) in outputs.iter().zip(&wanted) {
                    compare(case, output, wanted, "one worker");
                }
                first = Some(outputs);
            }
            Some(first) => assert!(first == &outputs, "bits by number of workers: {case:?}"),
        }
    }
    for isa in Isa::available() {
        let mut inputs = operands.clone();
        let mut outputs = results.clone();
        let views: Vec<View> = inputs.iter_mut().map(Stored::view).collect();
        let result_views: Vec<View> = outputs.iter_mut().map(Stored::view).collect();
        let kernel = select().on(*isa);
        launch(&mut teams[0], &kernel, &views, &result_views)
            .unwrap_or_else(|e| panic!("{e}: {case:?}"));
        assert!(first.as_ref() == Some(&outputs), "bits on {isa}: {case:?}");
    }
    if let Some(&(operand, result)) = case.in_place.as_ref() {
        let mut inputs = operands.clone();
        let views: Vec<View> = inputs.iter_mut().map(Stored::view).collect();
        let mut outputs = results.clone();
        let mut result_views: Vec<View> = outputs.iter_mut().map(Stored::view).collect();
        if views[operand].dtype == result_views[result].dtype {
            result_views[result] = views[operand];
            let team = random.below(teams.len());
            launch(&mut teams[team], &kernel, &views, &result_views)
                .unwrap_or_else(|e| panic!("{e}: {case:?}"));
            compare(case, &inputs[operand], &wanted[result], "in place");
        }
    }
}

fn teams() -> Vec<Team> {
    (1..5).map(|n| Team::new(n).expect("threads")).collect()
}

fn check_ops(names: impl Iterator<Item = &'static str>) {
    let mut teams = teams();
    for name in names {
        let Some(generate) = cases::generator(name) else {
            continue;
        };
        for seed in 0..CASES {
            let random = Random::new(name, seed);
            let case = generate(name, &random);
            assert_eq!(case.op.name(), name, "the generator makes another op");
            check(&case, &mut teams, &random);
        }
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    Op::NAMES.iter().flat_map(|names| names.iter().copied())
}

#[test]
fn kernels_of_half_the_ops_agree_with_the_reference() {
    check_ops(names().step_by(2));
}

#[test]
fn kernels_of_the_other_ops_agree_with_the_reference() {
    check_ops(names().skip(1).step_by(2));
}

#[test]
fn every_op_has_a_case_or_no_kernel() {
    let refused = [
        "weight",
        "input",
        "state",
        "opaque",
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
    ];
    for name in names() {
        let has = cases::generator(name).is_some();
        assert_ne!(has, refused.contains(&name), "{name}");
    }
}

#[test]
fn what_has_no_kernel_is_refused_in_words() {
    for name in ["all_reduce", "weight"] {
        let attrs = match name {
            "weight" => vec![("tensor".to_owned(), tpc_ir::op::Attr::Str("w".into()))],
            _ => Vec::new(),
        };
        let op = Op::parse(name, AttrReader::new(attrs)).expect("an op");
        let op = op.expect("its attributes");
        let e = Kernel::select(&op, &[DType::F32], &[DType::F32], Default::default());
        let e = e.expect_err("no kernel").to_string();
        assert!(
            e.starts_with(&format!("no CPU kernel for {name} on [F32]")),
            "{e}"
        );
    }
}

/// The error of a kernel run on tensors of these numbers.
fn failure(case: &Case) -> Option<KernelError> {
    let random = Random::new("failure", 0);
    let mut operands = operands_of(case, &random);
    let shape = |&(dtype, dims): &(DType, [usize; 4])| Shape { dtype, dims };
    let results = case.results.iter().map(shape);
    let mut results: Vec<Stored> = results.map(|s| Stored::poison(s, &random)).collect();
    let types: Vec<DType> = case.operands.iter().map(|a| a.dtype).collect();
    let result_types: Vec<DType> = case.results.iter().map(|r| r.0).collect();
    let kernel = Kernel::select(&case.op, &types, &result_types, case.options).expect("a kernel");
    let operands: Vec<View> = operands.iter_mut().map(Stored::view).collect();
    let results: Vec<View> = results.iter_mut().map(Stored::view).collect();
    let mut team = Team::new(2).expect("threads");
    launch(&mut team, &kernel, &operands, &results).err()
}

#[test]
fn indices_out_of_range_are_errors() {
    for (name, what) in [
        ("get_rows", "row"),
        ("set_rows", "slice to set"),
        ("mul_mat_id", "expert"),
        ("add_id", "expert"),
        ("ssm_scan", "cell of a state"),
    ] {
        for value in [-1, 1 << 20] {
            let case = cases::out_of_range(name, value);
            let e = failure(&case);
            let found = match e {
                Some(KernelError::Index { what, index, .. }) => (what, index),
                e => panic!("{name}: {e:?}"),
            };
            assert_eq!(found, (what, value), "{name}");
        }
    }
}

#[test]
fn views_that_do_not_fit_are_errors() {
    for name in names() {
        let Some(generate) = cases::generator(name) else {
            continue;
        };
        let random = Random::new(name, 3);
        let mut case = generate(name, &random);
        let Some(last) = case.results.last_mut() else {
            continue;
        };
        last.1[1] += 1;
        // These have rows of any number.
        if matches!(name, "arange" | "repeat") {
            continue;
        }
        let e = failure(&case);
        assert!(
            matches!(e, Some(KernelError::Shape { .. })),
            "{name}: {e:?} {case:?}"
        );
    }
}
