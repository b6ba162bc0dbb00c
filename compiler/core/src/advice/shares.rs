//! Ways with their shares: requested, proportional to memory, or layers counted until they fit.

use super::free_memory::FreeMemory;
use crate::pipeline::{PlanInput, StoredBytes, Way, ways};
use crate::placement::{Override, Placement, SplitMode, Target, Unit, by_bytes, by_layers};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shares {
    /// Requested, or the engine's default.
    Asked,
    Given(Vec<f64>),
    /// Counts of layers per device, chosen for each configuration.
    Counted,
}

#[derive(Clone, Debug)]
pub(super) struct SharedWay {
    pub(super) way: Way,
    pub(super) shares: Shares,
}

/// Lists the ways that an option can request, the requested mode first. Groups of devices in sequence lack an option;
/// only `auto` chooses them.
pub(super) fn shared_ways(base: &Placement, prepared: &PlanInput) -> Vec<SharedWay> {
    let auto = Placement {
        split_mode: SplitMode::Auto,
        ..base.clone()
    };
    // Tensors pinned to devices exclude ways on one device.
    let pinned = |o: &Override| matches!(o.target, Target::Device(_));
    let pins = base.overrides.iter().any(pinned) && base.devices.len() > 1;
    let has_word = |w: &Way| match w.mode {
        SplitMode::Hybrid => false,
        SplitMode::None => !pins,
        _ => true,
    };
    let mut all: Vec<Way> = (prepared.ways(&auto).into_iter())
        .filter(has_word)
        .collect();
    if base.split_mode == SplitMode::None {
        // One way for the requested main device, and one for the device with the most memory.
        for way in ways(base) {
            if !all.contains(&way) {
                all.push(way);
            }
        }
    }
    let is_asked = |way: &Way| way.mode == base.split_mode;
    all.sort_by_key(|way| !is_asked(way));
    let plain = |way: &Way| SharedWay {
        way: way.clone(),
        shares: Shares::Asked,
    };
    let mut out: Vec<SharedWay> = all.iter().map(plain).collect();
    for way in all {
        // Without given proportions, layers are balanced by bytes.
        let shares = match way.mode {
            SplitMode::Layer => base.tensor_split.is_some().then_some(Shares::Counted),
            SplitMode::Tensor => by_memory(base).map(Shares::Given),
            _ => None,
        };
        let shared = shares.map(|shares| SharedWay { way, shares });
        out.extend(shared);
    }
    out
}

/// Computes shares proportional to usable memory, in GiB. Returns `None` if the memory is unknown or equal, or if the
/// request already has these shares.
fn by_memory(placement: &Placement) -> Option<Vec<f64>> {
    let gib = |d: usize| {
        let usable = placement.topology.device(d).usable_memory()?;
        Some((usable / f64::from(1 << 30) * 10.0).round() / 10.0)
    };
    let shares: Option<Vec<f64>> = (0..placement.devices.len()).map(gib).collect();
    let mut shares = shares.filter(|s| s.iter().all(|&x| x > 0.0))?;
    let alike = |s: &[f64]| s.windows(2).all(|w| w[0].to_bits() == w[1].to_bits());
    if alike(&shares) {
        shares.fill(1.0);
    }
    let differs = match &placement.tensor_split {
        Some(asked) if alike(asked) => !alike(&shares),
        Some(asked) => *asked != shares,
        // Devices with equal memory get equal shares by default.
        None => !alike(&shares),
    };
    (shares.len() > 1 && differs).then_some(shares)
}

/// Counts the layers that fit on each device; the output and `drafting` blocks after the last layer count as layers. Of
/// several divisions, the fullest device must be as empty as possible.
pub(super) fn count_layers(
    units: &[StoredBytes],
    rooms: &FreeMemory,
    drafting: u64,
    holds: &dyn Fn(&[usize]) -> bool,
) -> Vec<f64> {
    let bytes: Vec<Unit> = units
        .iter()
        .map(|u| Unit {
            bytes: (u.total() + u.copies) as u64,
        })
        .collect();
    let first = bytes.iter().position(|u| u.bytes > 0).unwrap_or(0).max(1);
    let by = |room: &[f64]| {
        let room: Vec<f64> = room.iter().map(|r| r.max(0.0)).collect();
        let stages = by_bytes(&bytes, &room);
        let mut counts = vec![0.0; room.len()];
        for &stage in stages.iter().skip(first) {
            counts[stage] += 1.0;
        }
        if let [.., last, _] = stages.as_slice() {
            counts[*last] += drafting as f64;
        }
        counts
    };
    let sums = |counts: &[f64]| counts.iter().sum::<f64>() > 0.0;
    let whole = by(&rooms.before_compute);
    if sums(&whole) && holds(&by_layers(&bytes, &whole)) {
        return whole;
    }
    by(&rooms.all)
}
