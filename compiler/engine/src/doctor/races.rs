//! Copies and writes that run at the same time as graphs.

use tpc_cuda::{CopyNode, Driver, DriverError, Graph, GraphSpec, Memory, Side, Work};

use super::check::Bench;
use super::copies::CURE;
use super::memory::{allocate, at, compared, device, pattern};
use super::report::{CheckError, Finding};

type Result<T = Finding> = std::result::Result<T, CheckError>;

/// Graphs in flight.
const SLOTS: usize = 3;
/// Copies of each lane in a graph, so that the next writes come while the graph runs.
const HOPS: usize = 4;
/// The bytes of a lane.
const BYTES: usize = (256 << 10) + 3;

/// A chain of copies from a source to a target.
struct Lane {
    name: &'static str,
    memories: Vec<Memory>,
}

/// A graph with its lanes, which run at the same time.
struct Slot {
    lanes: Vec<Lane>,
    graph: Graph,
}

/// Returns the places of the memories of each lane.
fn lanes(on: &[usize]) -> Vec<(&'static str, Vec<Side>)> {
    let sides: Vec<Side> = on.iter().map(|d| Side::Device(device(*d))).collect();
    let [first, last] = [sides[0], sides[sides.len() - 1]];
    let hops = |a: Side, b: Side| (0..=HOPS).map(|i| if i % 2 == 0 { a } else { b }).collect();
    match first == last {
        true => vec![
            ("page-locked", hops(Side::Host, first)),
            ("pageable", hops(first, first)),
        ],
        false => vec![
            ("page-locked", hops(Side::Host, last)),
            ("peer", hops(first, last)),
            ("return", hops(last, first)),
        ],
    }
}

fn slot<D: Driver>(driver: &mut D, on: &[usize]) -> std::result::Result<Slot, DriverError> {
    let mut out = Vec::new();
    let mut spec = GraphSpec::default();
    for (name, sides) in lanes(on) {
        let mut memories = Vec::new();
        for side in sides {
            memories.push(allocate(driver, side, BYTES)?);
        }
        let mut last: Vec<usize> = Vec::new();
        for hop in memories.windows(2) {
            let copy = CopyNode {
                from: at(hop[0]),
                to: at(hop[1]),
                bytes: BYTES as u64,
            };
            last = vec![spec.push(format!("{name} copy"), Work::Copy(copy), &last)];
        }
        out.push(Lane { name, memories });
    }
    let graph = driver.instantiate(spec)?;
    Ok(Slot { lanes: out, graph })
}

fn seed(round: u32, slot: usize, lane: usize) -> u64 {
    u64::from(round) << 16 | (slot as u64) << 8 | lane as u64
}

/// Writes new sources and launches each graph, without waiting in between. Then compares all targets.
fn round<D: Driver>(
    driver: &mut D,
    slots: &[Slot],
    round: u32,
) -> std::result::Result<Option<Finding>, DriverError> {
    for (s, slot) in slots.iter().enumerate() {
        for (l, lane) in slot.lanes.iter().enumerate() {
            driver.write(at(lane.memories[0]), &pattern(BYTES, seed(round, s, l)))?;
        }
        driver.launch(slot.graph)?;
        // The graph must not see this write.
        for lane in &slot.lanes {
            if lane.memories[0].side != Side::Host {
                driver.write(at(lane.memories[0]), &vec![0; BYTES])?;
            }
        }
    }
    driver.synchronize()?;
    for (s, slot) in slots.iter().enumerate() {
        for (l, lane) in slot.lanes.iter().enumerate() {
            let mut found = vec![0; BYTES];
            driver.read(at(lane.memories[HOPS]), &mut found)?;
            let expected = pattern(BYTES, seed(round, s, l));
            let what = format!("{} copies, graph {s} of round {round}", lane.name);
            if let Some(wrong) = compared(&what, &expected, &found, CURE) {
                return Ok(Some(wrong));
            }
        }
    }
    Ok(None)
}

/// Runs page-locked copies, and pageable or peer copies, in several graphs at once while the host writes.
pub(super) fn during_launches<D: Driver>(bench: &mut Bench<D>, on: &[usize]) -> Result {
    let rounds = match (bench.setup.emulated, bench.quick) {
        (true, _) => 3,
        (false, true) => 20,
        (false, false) => 200,
    };
    let driver = bench.driver()?;
    if let [from, to] = *on {
        match driver.grant(device(to), device(from)) {
            Ok(()) | Err(DriverError::NoPeerAccess { .. }) => {}
            Err(e) => return Err(e.into()),
        }
    }
    let mut slots = Vec::new();
    for _ in 0..SLOTS {
        slots.push(slot(driver, on)?);
    }
    for i in 0..rounds {
        if let Some(wrong) = round(driver, &slots, i)? {
            return Ok(wrong);
        }
    }
    for slot in slots {
        driver.discard(slot.graph)?;
        let memories = slot.lanes.into_iter().flat_map(|l| l.memories);
        for memory in memories {
            driver.free(memory)?;
        }
    }
    let n = lanes(on).len();
    let text = format!(
        "{rounds} rounds of {SLOTS} graphs with {n} chains of copies: all bytes arrive unchanged"
    );
    Ok(Finding::ok(text).with("rounds", f64::from(rounds)))
}
