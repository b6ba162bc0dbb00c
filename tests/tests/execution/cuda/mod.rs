//! Models on emulated CUDA devices, or on the cards in `TPC_TEST_DRIVER`: logits are as near to the exact logits as llama.cpp's.
//!
//! Without a C++ compiler, these tests print a note and pass.

mod cells;
mod edges;
mod host;
mod launches;
mod logits;
mod places;
mod prefixes;
mod ranks;
mod step_model;
mod widths;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use tpc_core::golden::distance;
use tpc_core::placement::Placement;
use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget, Edges};
use tpc_cuda_emulator::{Build, EmulatedOptions};
use tpc_runtime::{ExecError, Session};
use tpc_test_devices::TestDriver;

use crate::support::{Assembled, FileWeights, behind, one_by_one, whole};

/// The maximum NMSE between a token alone and in a batch. Larger batches use other kernels of products and attention.
const ALONE: f64 = 1e-5;

/// The NMSE above which a token of a mixture has chosen other experts.
const OTHER_EXPERTS: f64 = 1e-2;
/// Of this number of tokens, one may choose other experts: rounding decides between experts whose scores are nearly equal.
const TOKENS_PER_TIE: usize = 40;

/// Returns the NMSE of logits. For a mixture, it omits the worst token of each [`TOKENS_PER_TIE`] that chose other experts.
fn nmse(name: &str, tokens: usize, want: &[f64], got: &[f64]) -> f64 {
    let width = (want.len() / tokens.max(1)).max(1);
    let of = |(w, g): &(&[f64], &[f64])| distance(w.iter().copied(), g.iter().copied()).nmse;
    let mut each: Vec<(&[f64], &[f64])> = want.chunks(width).zip(got.chunks(width)).collect();
    each.sort_by(|a, b| of(b).total_cmp(&of(a)));
    let ties = match name.contains("-moe-") {
        true => tokens / TOKENS_PER_TIE,
        false => 0,
    };
    let other = each.iter().take(ties).filter(|t| of(t) > OTHER_EXPERTS);
    let kept = &each[other.count()..];
    let want = kept.iter().flat_map(|t| t.0.iter().copied());
    distance(want, kept.iter().flat_map(|t| t.1.iter().copied())).nmse
}

/// Returns the devices of a test; without a C++ compiler, prints a note and returns `None`.
fn devices(devices: usize, seed: u64) -> Option<TestDriver> {
    emulated(devices, seed, Build::Plain)
}

fn checked(devices: usize, seed: u64) -> Option<TestDriver> {
    emulated(devices, seed, Build::Checked)
}

fn emulated(devices: usize, seed: u64, build: Build) -> Option<TestDriver> {
    let options = EmulatedOptions {
        devices,
        seed,
        build,
        cache: Some(env!("CARGO_TARGET_TMPDIR").into()),
        ..EmulatedOptions::default()
    };
    TestDriver::new(options)
}

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
        Assembled::new(path, placement, tokens, &CudaTarget).map(Subject)
    }

    fn session(&self, driver: TestDriver) -> Result<Session<CudaExecutor<TestDriver>>, ExecError> {
        self.session_with(driver, Edges::default())
    }

    fn session_with(
        &self,
        driver: TestDriver,
        edges: Edges,
    ) -> Result<Session<CudaExecutor<TestDriver>>, ExecError> {
        let program = Arc::clone(&self.program);
        let options = CudaOptions {
            edges,
            ..CudaOptions::with_threads(1)
        };
        let executor = CudaExecutor::new(program, &FileWeights(&self.file), driver, options)?;
        Session::with_executor(Box::new(executor), self.config)
    }

    /// Returns the logits of one batch, and the NMSE of a session with single tokens, then a batch, then single tokens.
    fn logits(&self, name: &str, driver: TestDriver) -> Result<(Vec<f64>, f64), ExecError> {
        let mut session = self.session(driver)?;
        let found = whole(&mut session, &self.tokens);
        session.clear().expect("states are cleared");
        let (first, rest) = self.tokens.split_at(self.tokens.len() / 4);
        let (batch, last) = rest.split_at(rest.len() * 2 / 3);
        let mut each = one_by_one(&mut session, first, 0);
        each.extend(behind(&mut session, batch, first.len()));
        each.extend(one_by_one(&mut session, last, first.len() + batch.len()));
        let alone = nmse(name, self.tokens.len(), &found, &each);
        Ok((found, alone))
    }
}
