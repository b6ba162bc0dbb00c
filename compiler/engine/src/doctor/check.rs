use std::collections::BTreeMap;
use std::sync::Arc;

use tpc_cuda::{Driver, DriverError};

use super::report::{CheckError, Finding, Section};
use super::small_model::SmallModel;

/// Opens a driver for a list of card numbers, which may repeat. Device `i` is entry `i`.
pub(super) type Open<D> = Arc<dyn Fn(&[u32]) -> Result<D, DriverError> + Send + Sync>;

/// A kind of machine: cards or emulated devices.
pub struct Setup<D> {
    pub(super) open: Open<D>,
    /// The numbers of the cards, without repetition.
    pub(super) cards: Vec<u32>,
    pub(super) emulated: bool,
    /// Describes the driver.
    pub(super) driver: fn() -> Result<Finding, CheckError>,
    /// Describes the compiler of kernels.
    pub(super) compiler: fn() -> Result<Finding, CheckError>,
}

impl<D> Clone for Setup<D> {
    fn clone(&self) -> Setup<D> {
        Setup {
            open: Arc::clone(&self.open),
            cards: self.cards.clone(),
            ..*self
        }
    }
}

/// The things that a check runs on, by position in [`Setup::cards`].
pub(super) type Subject = Vec<usize>;

/// The subjects of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    /// The machine, once.
    Machine,
    /// Each device.
    Device,
    /// Each device twice, as two devices on one card.
    Twin,
    /// Each pair of devices.
    Pair,
    /// Each ordered pair of devices.
    Way,
}

impl Each {
    fn subjects(self, devices: usize) -> Vec<Subject> {
        let all = 0..devices;
        let ways = || (0..devices).flat_map(|a| (0..devices).map(move |b| vec![a, b]));
        match self {
            Each::Machine => vec![Vec::new()],
            Each::Device => all.map(|d| vec![d]).collect(),
            Each::Twin => all.map(|d| vec![d, d]).collect(),
            Each::Pair => ways().filter(|s| s[0] < s[1]).collect(),
            Each::Way => ways().filter(|s| s[0] != s[1]).collect(),
        }
    }

    fn label(self, check: &str, cards: &[u32]) -> String {
        let names: Vec<String> = cards.iter().map(|c| format!("cuda:{c}")).collect();
        match self {
            Each::Machine => check.to_owned(),
            Each::Way => format!("{check} {}", names.join(" to ")),
            Each::Device | Each::Twin | Each::Pair => format!("{check} on {}", names.join(",")),
        }
    }
}

/// The part of a check that runs with `--quick`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quick {
    /// All subjects.
    All,
    /// The first device or pair.
    First,
    /// No subject.
    Skip,
}

/// The function of a check. It returns the finding about a subject.
pub(super) type RunCheck<D> =
    Box<dyn Fn(&mut Bench<D>, &[usize]) -> Result<Finding, CheckError> + Send + Sync>;

/// An entry of the table of checks.
pub(super) struct Check<D: Driver> {
    pub(super) section: Section,
    pub(super) name: &'static str,
    pub(super) each: &'static [Each],
    pub(super) quick: Quick,
    /// Names of earlier checks. If one of them failed on the same devices, this check is skipped.
    pub(super) after: &'static [&'static str],
    /// The time limit, as a multiple of the usual limit.
    pub(super) patience: u32,
    pub(super) run: RunCheck<D>,
}

/// A check with one of its subjects.
pub(super) struct Job {
    /// The index in the table.
    pub(super) check: usize,
    pub(super) subject: Subject,
    pub(super) cards: Vec<u32>,
    pub(super) label: String,
}

impl<D: Driver> Check<D> {
    /// Returns the jobs of a check on these cards. `index` is the position of the check in the table.
    pub(super) fn jobs(&self, index: usize, cards: &[u32], quick: bool) -> Vec<Job> {
        let mut out = Vec::new();
        for each in self.each {
            let first_only = quick && self.quick == Quick::First;
            let wanted = match (quick, self.quick) {
                (true, Quick::Skip) => 0,
                // Two devices on one card are not part of the quick run.
                (true, Quick::First) if *each == Each::Twin => 0,
                _ if first_only => 1,
                _ => usize::MAX,
            };
            for subject in each.subjects(cards.len()).into_iter().take(wanted) {
                let numbers: Vec<u32> = subject.iter().map(|i| cards[*i]).collect();
                out.push(Job {
                    check: index,
                    label: each.label(self.name, &numbers),
                    cards: numbers,
                    subject,
                });
            }
        }
        out
    }
}

/// The state that the checks of a section share.
pub(super) struct Bench<D: Driver> {
    pub(super) setup: Setup<D>,
    pub(super) quick: bool,
    /// The first seed of random cases.
    pub(super) seed: u64,
    driver: Option<D>,
    pub(super) models: BTreeMap<&'static str, SmallModel>,
}

impl<D: Driver> Bench<D> {
    pub(super) fn new(setup: Setup<D>, quick: bool, seed: u64) -> Bench<D> {
        Bench {
            setup,
            quick,
            seed,
            driver: None,
            models: BTreeMap::new(),
        }
    }

    /// Returns the driver of all devices. Opens it on first use.
    pub(super) fn driver(&mut self) -> Result<&mut D, DriverError> {
        let driver = match self.driver.take() {
            Some(driver) => driver,
            None => (self.setup.open)(&self.setup.cards)?,
        };
        Ok(self.driver.insert(driver))
    }

    /// Closes the driver. The next check opens it again.
    pub(super) fn close(&mut self) {
        self.driver = None;
    }

    /// Returns the open driver.
    pub(super) fn opened(&self) -> Option<&D> {
        self.driver.as_ref()
    }
}
