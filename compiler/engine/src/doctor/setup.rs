use std::sync::Arc;

use tpc_core::placement::DeviceKind;
use tpc_cuda::nvrtc::Nvrtc;
use tpc_cuda::{CudaDriver, DeviceMap};
use tpc_cuda_emulator::{
    Build, EmulatedDriver, EmulatedOptions, FaultyDriver, Links, PlantedFault,
};

use super::check::Setup;
use super::report::{CheckError, Finding};
use crate::devices::cards as bound;

fn kinds(cards: &[u32]) -> Vec<DeviceKind> {
    cards.iter().map(|c| DeviceKind::Cuda(*c)).collect()
}

fn distinct(cards: Vec<u32>) -> Vec<u32> {
    let mut out = Vec::new();
    for card in cards {
        if !out.contains(&card) {
            out.push(card);
        }
    }
    out
}

/// Describes this machine's cards with these numbers. `None`: all cards.
pub fn cards(numbers: Option<Vec<u32>>) -> Setup<DeviceMap<CudaDriver>> {
    let all = || match tpc_cuda::cards() {
        Ok(cards) => cards.iter().map(|c| c.card).collect(),
        // The check of the driver reports the error.
        Err(_) => vec![0],
    };
    Setup {
        open: Arc::new(|cards| bound::real(&kinds(cards))),
        cards: distinct(numbers.unwrap_or_else(all)),
        emulated: false,
        driver: || {
            let version = tpc_cuda::driver_version()?;
            let number = f64::from(version.major) + f64::from(version.minor) / 10.0;
            let text = format!("the driver supports CUDA {version}");
            Ok(Finding::ok(text).with("cuda_version", number))
        },
        compiler: || {
            let nvrtc = Nvrtc::find().map_err(|e| {
                let code = e.code();
                CheckError::new(format!("{e} ({})", code.id), code.cure)
            })?;
            let (major, minor) = nvrtc.version();
            let number = f64::from(major) + f64::from(minor) / 10.0;
            let text = format!("NVRTC {major}.{minor} at {}", nvrtc.path().display());
            Ok(Finding::ok(text).with("nvrtc_version", number))
        },
    }
}

/// Emulated devices, which may have a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// The links between the devices.
    pub links: Links,
    /// The planted fault.
    pub fault: Option<PlantedFault>,
}

impl Emulation {
    /// Devices without a fault.
    pub const SOUND: Emulation = Emulation {
        links: Links::Peers,
        fault: None,
    };

    /// Returns devices with the fault of this name: a [`PlantedFault`], `no-link` or `wrong-link`.
    pub fn with_fault(name: &str) -> Option<Emulation> {
        let links = match name {
            "no-link" => Links::HostOnly,
            "wrong-link" => Links::WrongData,
            _ => {
                let fault = PlantedFault::from_name(name)?;
                return Some(Emulation {
                    fault: Some(fault),
                    ..Emulation::SOUND
                });
            }
        };
        Some(Emulation { links, fault: None })
    }

    /// Returns the names of all faults.
    pub fn names() -> Vec<&'static str> {
        let planted = PlantedFault::ALL.iter().map(|f| f.name());
        planted.chain(["no-link", "wrong-link"]).collect()
    }
}

/// Describes emulated devices with these numbers. `None`: two devices.
pub fn emulated(
    numbers: Option<Vec<u32>>,
    emulation: Emulation,
) -> Setup<DeviceMap<FaultyDriver<EmulatedDriver>>> {
    Setup {
        open: Arc::new(move |cards| {
            let (distinct, places) = bound::places(cards);
            let driver = EmulatedDriver::new(EmulatedOptions {
                devices: distinct,
                build: Build::Plain,
                links: emulation.links,
                ..EmulatedOptions::default()
            })?;
            DeviceMap::new(FaultyDriver::new(driver, emulation.fault), &places)
        }),
        cards: distinct(numbers.unwrap_or_else(|| vec![0, 1])),
        emulated: true,
        driver: || Ok(Finding::ok("emulated devices need no driver")),
        compiler: || {
            let driver = EmulatedDriver::new(EmulatedOptions::default())?;
            Ok(Finding::ok(driver.compiler()))
        },
    }
}
