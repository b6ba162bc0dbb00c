//! Flags between two devices: they order writes to the other device's memory.

use tpc_cuda::{Args, Driver, DriverError, GraphSpec, KernelNode, Memory, Module, Side, Work};

use super::check::Bench;
use super::memory::{allocate, at, device};
use super::peers::join;
use super::report::{CheckError, Finding};

type Result<T = Finding> = std::result::Result<T, CheckError>;

const SOURCE: &str = include_str!("flags.cu");
const KERNEL: &str = "exchange_by_flags";
/// The threads of the block on each device. Each thread sends one number per round.
const THREADS: u32 = 64;
/// The bytes of a report: the kind of failure, the round and the number.
const REPORT: usize = 12;

const CURE: &str =
    "run with one device (`--devices cuda:0`); turn off the IOMMU and PCIe ACS in the firmware";

/// The memory of a device in the exchange.
struct Mailbox {
    inbox: Memory,
    flag: Memory,
    report: Memory,
}

impl Mailbox {
    fn new<D: Driver>(driver: &mut D, side: Side) -> std::result::Result<Mailbox, DriverError> {
        let mut zeroed = |bytes: usize| {
            let memory = allocate(driver, side, bytes)?;
            driver.write(at(memory), &vec![0; bytes])?;
            Ok::<Memory, DriverError>(memory)
        };
        Ok(Mailbox {
            inbox: zeroed(2 * 4 * THREADS as usize)?,
            flag: zeroed(4)?,
            report: zeroed(REPORT)?,
        })
    }

    fn report<D: Driver>(&self, driver: &mut D) -> std::result::Result<[u32; 3], DriverError> {
        let mut bytes = [0; REPORT];
        driver.read(at(self.report), &mut bytes)?;
        let (words, _) = bytes.as_chunks::<4>();
        Ok([0, 1, 2].map(|i| u32::from_ne_bytes(words[i])))
    }
}

/// Returns the finding about the reports of both devices.
fn judged(reports: &[[u32; 3]], rounds: u32) -> Finding {
    let of_kind = |kind: u32| reports.iter().find(|r| r[0] == kind);
    if let Some([_, round, found]) = of_kind(2) {
        let text =
            format!("round {round}: a device read {found:#x}, an old number, after the flag");
        return Finding::failed(text, CURE);
    }
    if let Some([_, round, _]) = of_kind(1) {
        let text = format!("round {round}: a flag did not arrive");
        let cure = "end other programs on the cards: the kernels may not have run at the same time";
        return Finding::warning(text, cure);
    }
    let text = format!("{rounds} rounds: numbers arrive before their flags");
    Finding::ok(text).with("rounds", f64::from(rounds))
}

/// Runs a kernel on each of two devices at the same time. They exchange numbers, ordered by flags.
pub(super) fn flags<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    let rounds = match (bench.setup.emulated, bench.quick) {
        (true, _) => 50,
        (false, true) => 1000,
        (false, false) => 20_000,
    };
    let driver = bench.driver()?;
    let joined = join(driver, on)?;
    let mut boxes = Vec::new();
    for d in on {
        let side = match joined {
            true => Side::Device(device(*d)),
            false => Side::Host,
        };
        boxes.push(Mailbox::new(driver, side)?);
    }
    let mut spec = GraphSpec::default();
    for (rank, d) in on.iter().enumerate() {
        let module = driver.load(device(*d), &Module::new("flags", SOURCE))?;
        let function = driver.function(module, KERNEL)?;
        let [own, other] = [&boxes[rank], &boxes[1 - rank]];
        let addresses = [own.inbox, other.inbox, own.flag, other.flag, own.report];
        let args = addresses.iter().fold(Args::new(), |a, m| a.u64(m.address));
        let node = KernelNode {
            function,
            grid: [1, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
            args: args.u32(rounds).u32(rank as u32),
        };
        spec.push(KERNEL, Work::Kernel(node), &[]);
    }
    let graph = driver.instantiate(spec)?;
    driver.launch(graph)?;
    driver.synchronize()?;
    driver.discard(graph)?;
    let mut reports = Vec::new();
    for mailbox in &boxes {
        reports.push(mailbox.report(driver)?);
    }
    for mailbox in boxes {
        for memory in [mailbox.inbox, mailbox.flag, mailbox.report] {
            driver.free(memory)?;
        }
    }
    Ok(judged(&reports, rounds))
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn wrong_numbers_fail_and_late_flags_warn() {
        let status = |reports: &[[u32; 3]]| judged(reports, 10).status;
        assert_eq!(status(&[[0; 3], [0; 3]]), Status::Ok);
        assert_eq!(status(&[[0; 3], [1, 4, 0]]), Status::Warning);
        assert_eq!(status(&[[1, 4, 0], [2, 3, 9]]), Status::Failed);
    }
}
