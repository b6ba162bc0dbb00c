//! The devices to check, and a run of the checks on them.

use std::time::Duration;

use clap::ValueEnum;

use crate::output::Failure;
use tpc_core::placement::{DeviceKind, parse_devices};
use tpc_diag::{Diagnostic, codes, visible};
use tpc_engine::devices::cards;
use tpc_engine::doctor::{self, Checked, Emulation, Options, Report};

/// The kind of devices to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Executor {
    /// Graphics cards.
    Cuda,
    /// Emulated devices: needs a C++ compiler.
    EmulatedCuda,
}

/// The time limit of a check.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The time limit of a check with `--quick`.
pub(super) const QUICK_LIMIT: Duration = Duration::from_secs(20);

/// The variable with a fault of emulated devices, for tests.
const FAULT: &str = "TPC_EMULATED_FAULT";

/// Devices to check.
pub(crate) struct Machine {
    executor: Executor,
    numbers: Option<Vec<u32>>,
    emulation: Emulation,
}

impl Machine {
    /// Reads a list of devices. `None`: all cards, or two emulated devices.
    pub(crate) fn new(executor: Executor, devices: Option<&str>) -> Result<Machine, Failure> {
        Ok(Machine {
            executor,
            numbers: devices.map(numbers).transpose()?,
            emulation: emulation()?,
        })
    }

    /// Runs the checks. `observe` receives each finding at once.
    pub(crate) fn check(self, options: Options, observe: &mut dyn FnMut(&Checked)) -> Report {
        match self.executor {
            Executor::Cuda => doctor::run(&doctor::cards(self.numbers), options, observe),
            Executor::EmulatedCuda => {
                let setup = doctor::emulated(self.numbers, self.emulation);
                doctor::run(&setup, options, observe)
            }
        }
    }
}

/// Returns the numbers of the cards in a list of devices.
fn numbers(list: &str) -> Result<Vec<u32>, Failure> {
    let devices = parse_devices(list).map_err(Failure::usage)?;
    let kinds: Vec<DeviceKind> = devices.iter().map(|d| d.kind).collect();
    cards::no_processor(&kinds)?;
    Ok(cards::numbers(&kinds))
}

/// Returns the emulated devices with the fault that the environment names.
fn emulation() -> Result<Emulation, Failure> {
    let named = std::env::var(FAULT).ok().filter(|n| !n.is_empty());
    let Some(name) = named else {
        return Ok(Emulation::SOUND);
    };
    Emulation::with_fault(&name).ok_or_else(|| {
        let message = format!("{FAULT} names an unknown fault: `{}`", visible(&name));
        let names = Emulation::names().join(", ");
        let d = Diagnostic::new(&codes::COMMAND_LINE, FAULT, message);
        Failure::usage(d.help(format!("unset the variable, or give one of {names}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbers_of_cards() {
        assert_eq!(numbers("cuda:2,cuda:0").ok(), Some(vec![2, 0]));
        assert_eq!(numbers("2").ok(), Some(vec![0, 1]));
        for wrong in ["cpu", "", "cuda:x"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }
}
