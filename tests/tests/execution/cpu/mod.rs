//! Models on the CPU executor: logits are as near to the exact logits as llama.cpp's.
//!
//! The models are small, so almost all products have two int8 terms per activation. Large products have one term; some
//! tests force one term for all products.

mod caches;
mod granule;
mod logits;
mod places;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use tpc_core::golden::{Golden, distance};
use tpc_core::placement::Placement;
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_ir::Inst;
use tpc_runtime::{ExecError, Options, ProgramInterpreter, Session, WeightSource};

use crate::support::{Assembled, FileWeights, one_by_one, whole};

/// The maximum NMSE between a token alone and in a batch.
pub(crate) const ALONE: f64 = 1e-5;

/// The maximum size of a product with two terms.
const BY_SIZE: u64 = CpuOptions::TWO_TERMS;

struct Subject(Assembled);

impl Deref for Subject {
    type Target = Assembled;

    fn deref(&self) -> &Assembled {
        &self.0
    }
}

impl Subject {
    /// Plans and assembles a model; `None` if the placement has no plan.
    fn new(path: &Path, placement: &Placement, tokens: &[u32]) -> Option<Subject> {
        Assembled::new(path, placement, tokens, &CpuTarget).map(Subject)
    }

    fn executor(&self, threads: usize, two_terms: u64) -> Result<CpuExecutor, ExecError> {
        let options = CpuOptions {
            two_terms,
            ..CpuOptions::with_threads(threads)
        };
        CpuExecutor::new(Arc::clone(&self.program), &FileWeights(&self.file), options)
    }

    fn logits(&self, two_terms: u64) -> Result<Vec<f64>, ExecError> {
        let executor = self.executor(2, two_terms)?;
        let mut session = Session::with_executor(Box::new(executor), self.config)?;
        Ok(whole(&mut session, &self.tokens))
    }

    /// Returns the NMSE between `found` and the logits of single tokens, on one thread.
    fn alone(&self, found: &[f64]) -> f64 {
        let executor = self.executor(1, BY_SIZE).expect("it has loaded before");
        let session = Session::with_executor(Box::new(executor), self.config);
        let each = one_by_one(&mut session.expect("it has logits"), &self.tokens, 0);
        let d = distance(found.iter().copied(), each);
        if d.nmse.is_nan() { f64::NAN } else { d.max_abs }
    }

    /// Returns the reference's logits, with activations of these products rounded to the given terms.
    fn reference(&self, rounded: BTreeMap<Inst, usize>) -> Vec<f64> {
        self.reference_of(&FileWeights(&self.file), rounded)
    }

    fn reference_of(
        &self,
        weights: &impl WeightSource,
        rounded: BTreeMap<Inst, usize>,
    ) -> Vec<f64> {
        let executor = ProgramInterpreter::new(&self.program, weights, Options::default(), 1);
        let executor = executor.expect("loads").with_rounded_products(rounded);
        let session = Session::with_executor(Box::new(executor), self.config);
        whole(&mut session.expect("it has logits"), &self.tokens)
    }

    /// Returns the NMSE from a reference with the CPU's rounding.
    fn left_from_rounded(&self, found: &[f64], two_terms: u64) -> f64 {
        let executor = self.executor(1, two_terms).expect("it has loaded before");
        let wanted = self.reference(executor.rounded_products());
        distance(wanted, found.iter().copied()).nmse
    }
}

pub(crate) fn exact(golden: &Golden) -> Vec<f64> {
    golden.logits.iter().map(|&x| f64::from(x)).collect()
}

/// Returns the NMSE of the engine's logits from the exact logits.
pub(crate) fn engine(path: &Path, exact: &Golden, name: &str) -> Option<f64> {
    // The repository has only the exact logits.
    let beside = path.with_extension("logits");
    let shared = tpc_tests::shared().map(|s| s.join("golden").join(format!("{name}.logits")));
    let own = [Some(beside), shared]
        .into_iter()
        .flatten()
        .find(|p| p.exists())?;
    let bytes = std::fs::read(&own).unwrap_or_else(|e| panic!("{}: {e}", own.display()));
    let own = Golden::parse(name, &bytes).unwrap_or_else(|e| panic!("{e}"));
    let wide = |g: &Golden| g.logits.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    Some(distance(wide(exact), wide(&own)).nmse)
}

/// Returns the maximum NMSE: the engine's with a small margin, at most [`MOST`]; 5e-6 for unquantised weights.
pub(crate) fn allowed(name: &str, engine: Option<f64>) -> f64 {
    if ["-f32", "-f16", "-bf16"].iter().any(|t| name.ends_with(t)) {
        return 5e-6;
    }
    engine.map_or(MOST, |engine| MOST.min(engine + 1e-4))
}

const MOST: f64 = 5e-4;
