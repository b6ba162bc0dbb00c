//! A kernel with operands, and the results that the reference computes.

use tpc_cpu::host::size_of;
use tpc_cuda::kernels::{Kernel, Request, Tensor as Sizes, select};
use tpc_ir::Dim;
use tpc_op_cases::{Case, Random, Stored, aligned_operands, aligned_results, difference, expected};
use tpc_runtime::Tensor;

/// The forms of operands that products with weights in planes read.
pub(super) struct PlaneForms {
    /// The memory of operand 0.
    pub(super) weight: Vec<u8>,
    /// The kernel that splits operand 1 into terms; `None` for lookups.
    pub(super) terms: Option<Kernel>,
}

/// A case with its kernel.
pub(super) struct KernelCase {
    pub(super) kernel: Kernel,
    /// The runtime size of the op.
    pub(super) size: Option<u64>,
    pub(super) operands: Vec<Stored>,
    /// Memory of the results, filled with a pattern.
    pub(super) results: Vec<Stored>,
    pub(super) planes: Option<PlaneForms>,
    case: Case,
    expected: Vec<Tensor>,
    op: &'static str,
    pub(super) seed: u64,
}

impl KernelCase {
    /// Returns a case for a device with `units` multiprocessors; `None` if no kernel supports its types.
    pub(super) fn new(
        case: Case,
        (op, seed): (&'static str, u64),
        units: u32,
        random: &Random,
    ) -> Option<KernelCase> {
        let operands = case.operands.iter().map(|a| Sizes::new(a.dtype, a.dims));
        let operands: Vec<Sizes> = operands.collect();
        let results = case.results.iter().map(|r| Sizes::new(r.0, r.1));
        let request = Request {
            operands: &operands,
            results: &results.collect::<Vec<_>>(),
            options: case.options,
            multiprocessors: units,
        };
        let kernel = select(&case.op, &request).ok()?;
        let operands = aligned_operands(&case, random);
        let case = Case {
            tolerance: case.tolerance + kernel.rounding(),
            ..case
        };
        Some(KernelCase::with(
            (case, kernel),
            operands,
            (op, seed),
            random,
        ))
    }

    /// Returns a case with these operands.
    pub(super) fn with(
        (case, kernel): (Case, Kernel),
        operands: Vec<Stored>,
        (op, seed): (&'static str, u64),
        random: &Random,
    ) -> KernelCase {
        KernelCase {
            size: size_of(&case.op).and_then(Dim::as_const),
            results: aligned_results(&case, &operands, random),
            expected: expected(&case, &operands),
            planes: None,
            kernel,
            operands,
            case,
            op,
            seed,
        }
    }

    /// Returns the case with an error of at most `share` of the largest expected number.
    pub(super) fn within_share(mut self, share: f64) -> KernelCase {
        let reals = self.expected.iter().filter_map(|t| t.reals().ok());
        let largest = reals.fold(0.0, |m, t| t.iter().fold(m, |m: f64, x| m.max(x.abs())));
        self.case = self.case.within(share, largest);
        self
    }

    /// Returns the op with types and sizes, and the seed.
    pub(super) fn name(&self) -> String {
        let operands = self.case.operands.iter().map(|a| format!("{a:?}"));
        let operands: Vec<String> = operands.collect();
        let results = self.case.results.iter().map(|(t, n)| format!("{t}{n:?}"));
        let results: Vec<String> = results.collect();
        let of = if operands.is_empty() { "" } else { " of " };
        format!(
            "{}{of}{} to {} with seed {}",
            self.op,
            operands.join(", "),
            results.join(", "),
            self.seed
        )
    }

    /// Describes the first wrong element of the results, or a write outside of them.
    pub(super) fn wrong(&self, operands: &[Stored], results: &[Stored]) -> Option<String> {
        if operands != self.operands {
            return Some("the kernel changed an operand".to_owned());
        }
        let mut all = results.iter().zip(&self.results);
        if !all.all(|(after, before)| after.same_gaps(before)) {
            return Some("the kernel wrote outside of its result".to_owned());
        }
        let mut all = results.iter().zip(&self.expected);
        let wrong = all.find_map(|(found, wanted)| difference(&self.case, found, wanted))?;
        // The further lines describe the case.
        wrong.lines().next().map(str::to_owned)
    }
}
