//! Cards in several processes (ranks, here threads): the logits have the bits of one process.

use std::path::Path;
use std::sync::Arc;

use tpc_core::placement::Placement;
use tpc_cuda::executor::PrebuiltCode;
use tpc_cuda::{CudaExecutor, CudaOptions, CudaTarget};
use tpc_cuda_emulator::Build;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Endpoint, Ranks, Transport};
use tpc_test_devices::TestDriver;
use tpc_tests::{Sweep, goldens};

use super::emulated;
use crate::random::Random;
use crate::ranks::{WAYS, fails_on_all, on_ranks, run, seat, small};
use crate::support::{Assembled, FileWeights, name, placed};

/// Loads a rank's executor. Every rank has all devices, and uses its own.
fn executor(
    model: &Assembled,
    (end, ranks): (&Endpoint, &Ranks),
    driver: TestDriver,
) -> Result<CudaExecutor<TestDriver>, ExecError> {
    let seat = seat(model, end, ranks)?;
    let (program, weights) = (Arc::clone(&model.program), FileWeights(&model.file));
    let code = PrebuiltCode::default();
    let options = CudaOptions::with_threads(1);
    CudaExecutor::on_rank(program, &weights, driver, options, (&code, Some(seat)))
}

/// Compares a model on ranks with one process. Returns false without a plan or without devices.
fn check(
    path: &Path,
    (way, placement): (&str, &Placement),
    (ranks, build): (&[Ranks], Build),
) -> bool {
    let tokens: Vec<u32> = (0..8).map(|i| (i * 37 + i * i) % 100).collect();
    let Some(model) = Assembled::new(path, placement, &tokens, &CudaTarget) else {
        return false;
    };
    let devices = placement.devices.len();
    let Some(driver) = emulated(devices, 1, Build::Plain) else {
        return false;
    };
    let (program, weights) = (Arc::clone(&model.program), FileWeights(&model.file));
    let one = CudaExecutor::new(program, &weights, driver, CudaOptions::with_threads(1));
    let want = run(one.unwrap_or_else(|e| panic!("{e}")), &model);
    for ranks in ranks {
        let got = on_ranks(&model, ranks, &|model, end, ranks| {
            let driver = emulated(devices, 2 + end.rank() as u64, build);
            executor(model, (end, ranks), driver.expect("devices, as above"))
        });
        let what = format!("{} {way} on {:?}", name(path), ranks.of_devices());
        assert!(want.0 == got.0, "{what}: the logits differ");
        assert!(want.1 == got.1, "{what}: the saved session differs");
    }
    true
}

#[test]
fn cards_on_ranks_have_the_bits_of_one_process() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let every = Sweep::asked().pick(12, 1);
    let mut random = Random::new(41);
    let of = |of: &[usize], count| Ranks::new(of.to_vec(), count).expect("ranks");
    let mut ran = 0;
    for path in goldens() {
        for way in WAYS {
            if random.below(every) != 0 || !name(&path).contains(&only) {
                continue;
            }
            let build = match ran % 4 {
                0 => Build::Checked,
                _ => Build::Plain,
            };
            let (devices, ranks) = match ran % 3 {
                0 => (2, of(&[0, 1], 2)),
                1 => (4, of(&[0, 0, 1, 1], 2)),
                _ => (4, of(&[2, 0, 1, 1], 3)),
            };
            println!("{} {way:?} on {:?}", name(&path), ranks.of_devices());
            let placement = placed(devices, way);
            ran += usize::from(check(&path, (way, &placement), (&[ranks], build)));
        }
    }
    println!("{ran} placements ran");
}

#[test]
fn a_failure_of_a_card_ends_all_ranks() {
    if emulated(2, 0, Build::Plain).is_none() {
        return;
    }
    fails_on_all(&small(&CudaTarget), &|model, end, ranks| {
        let driver = emulated(2, end.rank() as u64, Build::Plain);
        executor(model, (end, ranks), driver.expect("devices, as above"))
    });
}
