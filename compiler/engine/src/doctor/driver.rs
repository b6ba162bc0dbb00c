//! The driver, its devices, and the compiler of kernels.

use tpc_core::format::bytes;
use tpc_cuda::nvrtc::target_for;
use tpc_cuda::{Device, Driver};

use super::check::Bench;
use super::memory::large;
use super::report::{CheckError, Finding};

type Result = std::result::Result<Finding, CheckError>;

pub(super) fn driver<D: Driver>(bench: &mut Bench<D>, _: &[usize]) -> Result {
    (bench.setup.driver)()
}

pub(super) fn compiler<D: Driver>(bench: &mut Bench<D>, _: &[usize]) -> Result {
    (bench.setup.compiler)()
}

pub(super) fn devices<D: Driver>(bench: &mut Bench<D>, _: &[usize]) -> Result {
    let kind = match bench.setup.emulated {
        true => "emulated",
        false => "usable",
    };
    let n = bench.driver()?.devices().len();
    Ok(Finding::ok(format!("{n} {kind}")).with("devices", n as f64))
}

pub(super) fn device<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let device = Device(subject[0] as u32);
    let driver = bench.driver()?;
    let free = driver.free_memory(device)?;
    let Some(info) = driver.devices().get(subject[0]).cloned() else {
        return Ok(Finding::skipped("the driver does not list the device"));
    };
    let (major, minor) = info.capability;
    let text = format!(
        "{}, compute capability {major}.{minor}, {} multiprocessors, {}, {} free",
        info.name,
        info.multiprocessors,
        bytes(info.memory),
        bytes(free)
    );
    let finding = if target_for(info.capability).is_none() {
        let cure = "use a card with a compute capability from 7.5 to 12.1";
        Finding::failed(format!("{text}; tpc has no kernels for it"), cure)
    } else if free < info.memory / 2 {
        let cure = "`nvidia-smi` lists the processes that use the card's memory";
        Finding::warning(text, cure)
    } else {
        Finding::ok(text)
    };
    Ok(finding
        .with("memory_bytes", info.memory as f64)
        .with("free_bytes", free as f64)
        .with("multiprocessors", f64::from(info.multiprocessors))
        .with("capability", f64::from(major) + f64::from(minor) / 10.0))
}

pub(super) fn allocation<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let n = large(bench);
    let driver = bench.driver()?;
    let memory = driver.allocate(Device(subject[0] as u32), n)?;
    driver.free(memory)?;
    Ok(Finding::ok(format!("{} allocated and freed", bytes(n))).with("allocated_bytes", n as f64))
}
