//! Copies between the host and one device, compared byte by byte.

use tpc_core::format::bytes;
use tpc_cuda::{Driver, Side};

use super::check::Bench;
use super::memory::{allocate, at, compared, copies, device, pattern, through};
use super::report::{CheckError, Finding};

type Result = std::result::Result<Finding, CheckError>;

/// One byte; an odd size; more than a page-locked block; more than the driver's staging buffer.
pub(super) const SIZES: [usize; 4] = [1, 4097, (1 << 20) + 3, 17 << 20];

pub(super) const CURE: &str =
    "check the card's slot and power, and the system log (`dmesg | grep -i -e nvrm -e pcie`)";

fn same(sizes: &[usize]) -> Finding {
    let total: usize = sizes.iter().sum();
    let text = format!("{} arrive unchanged", bytes(total as u64));
    Finding::ok(text).with("compared_bytes", total as f64)
}

pub(super) fn write_and_read<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let driver = bench.driver()?;
    let side = Side::Device(device(subject[0]));
    for n in SIZES {
        let memory = allocate(driver, side, n)?;
        let expected = pattern(n, n as u64);
        let mut found = vec![0; n];
        driver.write(at(memory), &expected)?;
        driver.read(at(memory), &mut found)?;
        driver.free(memory)?;
        let what = format!("write and read of {}", bytes(n as u64));
        if let Some(wrong) = compared(&what, &expected, &found, CURE) {
            return Ok(wrong);
        }
    }
    Ok(same(&SIZES))
}

/// Sends patterns through a path of memories by graph copies.
pub(super) fn unchanged<D: Driver>(
    driver: &mut D,
    path: &[Side],
    sizes: &[usize],
    cure: &str,
) -> Result {
    for n in sizes {
        let expected = pattern(*n, *n as u64 + 1);
        let found = through(driver, path, &expected)?;
        if let Some(wrong) = compared(
            &format!("copy of {}", bytes(*n as u64)),
            &expected,
            &found,
            cure,
        ) {
            return Ok(wrong);
        }
    }
    Ok(same(sizes))
}

pub(super) fn page_locked<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let on_device = Side::Device(device(subject[0]));
    let path = [Side::Host, on_device, Side::Host];
    unchanged(bench.driver()?, &path, &SIZES, CURE)
}

pub(super) fn within<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let on_device = Side::Device(device(subject[0]));
    unchanged(bench.driver()?, &[on_device; 3], &SIZES, CURE)
}

/// Writes, launches a copy, and writes again without waiting. The copy must have the bytes of the first write.
pub(super) fn order<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let rounds = match (bench.setup.emulated, bench.quick) {
        (true, _) => 3,
        (false, true) => 20,
        (false, false) => 200,
    };
    let n = SIZES[2];
    let driver = bench.driver()?;
    let side = Side::Device(device(subject[0]));
    let source = allocate(driver, side, n)?;
    let targets = [allocate(driver, side, n)?, allocate(driver, side, n)?];
    let mut graphs = Vec::new();
    for target in targets {
        graphs.push(copies(driver, &[source, target], n as u64, 1)?);
    }
    let patterns = [pattern(n, 11), pattern(n, 12)];
    let mut wrong = None;
    for round in 0..rounds {
        for (graph, written) in graphs.iter().zip(&patterns) {
            driver.write(at(source), written)?;
            driver.launch(*graph)?;
        }
        driver.synchronize()?;
        for (target, written) in targets.iter().zip(&patterns) {
            let mut found = vec![0; n];
            driver.read(at(*target), &mut found)?;
            let what = format!("copy between two writes, round {round}");
            wrong = wrong.or(compared(&what, written, &found, super::report::REPORT_BUG));
        }
        if wrong.is_some() {
            break;
        }
    }
    for graph in graphs {
        driver.discard(graph)?;
    }
    for memory in targets.into_iter().chain([source]) {
        driver.free(memory)?;
    }
    let sound = || {
        let text = format!("{rounds} rounds: writes and launches keep their order");
        Finding::ok(text).with("rounds", f64::from(rounds))
    };
    Ok(wrong.unwrap_or_else(sound))
}
