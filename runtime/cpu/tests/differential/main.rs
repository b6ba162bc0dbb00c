//! Every kernel against the reference: random sizes, layouts in memory, element types and attributes, one to four
//! workers. A result has the tolerance of its case, and the same bits for any number of workers and on any instruction
//! set; bytes between its elements stay as they were.
//!
//! [`generator`] is the registry: an op without a generator fails [`every_op_has_a_case_or_no_kernel`].

use tpc_cpu::product::Isa;
use tpc_cpu::{Kernel, KernelError, Sizes, Team, View};
use tpc_ir::DType;
use tpc_ir::op::{AttrReader, Op};
use tpc_op_cases::{
    Case, Random, Stored, difference, expected, foreign, generator, operands, out_of_range, refused,
};
use tpc_runtime::{Shape, Tensor};

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

/// The view of a tensor.
fn view(stored: &mut Stored) -> View {
    let (dtype, dims, strides) = (stored.dtype(), stored.dims(), stored.strides());
    let ptr = stored.bytes_mut().as_mut_ptr();
    View::new(ptr.wrapping_add(stored.offset()), dtype, dims, strides)
}

fn compare(case: &Case, found: &Stored, wanted: &Tensor, what: &str) {
    if let Some(difference) = difference(case, found, wanted) {
        panic!("{what}, {difference}");
    }
}

/// Runs a case with one to four workers, and in place where it may be.
fn check(case: &Case, teams: &mut [Team], random: &Random) {
    let operands = operands(case, random);
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
        let views: Vec<View> = inputs.iter_mut().map(view).collect();
        let result_views: Vec<View> = outputs.iter_mut().map(view).collect();
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
        let views: Vec<View> = inputs.iter_mut().map(view).collect();
        let result_views: Vec<View> = outputs.iter_mut().map(view).collect();
        let kernel = select().on(*isa);
        launch(&mut teams[0], &kernel, &views, &result_views)
            .unwrap_or_else(|e| panic!("{e}: {case:?}"));
        assert!(first.as_ref() == Some(&outputs), "bits on {isa}: {case:?}");
    }
    if let Some(&(operand, result)) = case.in_place.as_ref() {
        let mut inputs = operands.clone();
        let views: Vec<View> = inputs.iter_mut().map(view).collect();
        let mut outputs = results.clone();
        let mut result_views: Vec<View> = outputs.iter_mut().map(view).collect();
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
        let Some(generate) = generator(name) else {
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
    for name in names() {
        let has = generator(name).is_some();
        assert_ne!(has, refused(name), "{name}");
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
    let mut operands = operands(case, &random);
    let shape = |&(dtype, dims): &(DType, [usize; 4])| Shape { dtype, dims };
    let results = case.results.iter().map(shape);
    let mut results: Vec<Stored> = results.map(|s| Stored::poison(s, &random)).collect();
    let types: Vec<DType> = case.operands.iter().map(|a| a.dtype).collect();
    let result_types: Vec<DType> = case.results.iter().map(|r| r.0).collect();
    let kernel = Kernel::select(&case.op, &types, &result_types, case.options).expect("a kernel");
    let operands: Vec<View> = operands.iter_mut().map(view).collect();
    let results: Vec<View> = results.iter_mut().map(view).collect();
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
            let case = out_of_range(name, value);
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
        let Some(generate) = generator(name) else {
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

#[test]
fn ops_of_ggml_are_computed_by_the_reference() {
    let random = Random::new("opaque", 0);
    let mut teams = teams();
    for name in ["soft_max_back", "cpy", "get_rows", "view", "no_such_op"] {
        let case = foreign(name, &random);
        match name {
            "no_such_op" => {
                let types: Vec<DType> = case.operands.iter().map(|a| a.dtype).collect();
                let e = Kernel::select(&case.op, &types, &[DType::F32], case.options);
                assert!(e.expect_err("unknown").to_string().contains("not known"));
            }
            _ => check(&case, &mut teams, &random),
        }
    }
}
