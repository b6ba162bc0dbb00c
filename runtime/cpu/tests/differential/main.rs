//! Runs the suite on CPU kernels. Results must be bit-identical for one to four workers and all instruction sets.

use tpc_cpu::product::Isa;
use tpc_cpu::{Kernel, KernelError, Sizes, Team, View};
use tpc_ir::DType;
use tpc_ir::op::{AttrReader, Op};
use tpc_op_cases::suite::{self, ExecutorUnderTest, Factory, Failure};
use tpc_op_cases::{Case, Random, Stored, foreign};

const CPU: Factory = Factory {
    executor: "cpu",
    cases: 40,
    build,
};

/// A team of workers. `isa` replaces the kernel's choice of instruction set.
struct Workers {
    team: Team,
    isa: Option<Isa>,
}

fn build() -> Vec<Box<dyn ExecutorUnderTest>> {
    let counts = (1..5).map(|n| (n, None));
    let isas = Isa::available().iter().map(|isa| (1, Some(*isa)));
    let workers = counts.chain(isas).map(|(n, isa)| {
        let team = Team::new(n).expect("threads");
        Box::new(Workers { team, isa }) as Box<dyn ExecutorUnderTest>
    });
    workers.collect()
}

impl ExecutorUnderTest for Workers {
    fn run(
        &mut self,
        case: &Case,
        operands: &mut [Stored],
        results: &mut [Stored],
        in_place: Option<(usize, usize)>,
    ) -> Result<(), Failure> {
        let types = |all: &[Stored]| -> Vec<DType> { all.iter().map(Stored::dtype).collect() };
        let kernel = Kernel::select(&case.op, &types(operands), &types(results), case.options);
        let kernel = kernel.map_err(|e| Failure::NoKernel(e.to_string()))?;
        let kernel = match self.isa {
            Some(isa) => kernel.on(isa),
            None => kernel,
        };
        let operands: Vec<View> = operands.iter_mut().map(view).collect();
        let mut results: Vec<View> = results.iter_mut().map(view).collect();
        if let Some((operand, result)) = in_place {
            results[result] = operands[operand];
        }
        launch(&mut self.team, &kernel, &operands, &results).map_err(|e| match e {
            KernelError::Index { what, index, bound } => Failure::Index {
                what: Some(what),
                index,
                bound: bound as i64,
            },
            KernelError::Shape { what } => Failure::Shape(what.to_owned()),
            other => Failure::Other(other.to_string()),
        })
    }
}

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
        // SAFETY: the views point to live memory that is used only here. Results overlap operands only if the kernel
        // allows it.
        #[allow(unsafe_code)]
        unsafe {
            kernel.run(worker, operands, results, &mut scratch)
        }
    })
}

fn view(stored: &mut Stored) -> View {
    let (dtype, dims, strides) = (stored.dtype(), stored.dims(), stored.strides());
    let ptr = stored.bytes_mut().as_mut_ptr();
    View::new(ptr.wrapping_add(stored.offset()), dtype, dims, strides)
}

#[test]
fn kernels_of_half_the_ops_agree_with_the_reference() {
    suite::agree(&CPU, 0, 2);
}

#[test]
fn kernels_of_the_other_ops_agree_with_the_reference() {
    suite::agree(&CPU, 1, 2);
}

#[test]
fn indices_out_of_range_are_errors() {
    suite::refuse_indices(&CPU);
}

#[test]
fn views_that_do_not_fit_are_errors() {
    suite::refuse_misfits(&CPU);
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

#[test]
fn unknown_ops_of_ggml_are_refused_in_words() {
    let case = foreign("no_such_op", &Random::new("opaque", 0));
    let types: Vec<DType> = case.operands.iter().map(|a| a.dtype).collect();
    let e = Kernel::select(&case.op, &types, &[DType::F32], case.options);
    assert!(e.expect_err("unknown").to_string().contains("unknown"));
}
