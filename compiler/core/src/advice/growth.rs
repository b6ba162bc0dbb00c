use super::advisor::Advisor;
use super::bound::in_order;
use super::effort::{Costs, Effort};
use crate::pipeline::{StoredBytes, in_parallel};
use crate::placement::{DeviceKind, DeviceSpec, MAX_DEVICES, Placement, SplitMode};
use tpc_passes::machine::Link;

const DRAFTS: usize = 3;

/// A number of devices that the unchanged request fits on.
#[derive(Clone, Debug)]
pub struct Growth {
    /// Number of devices, including the existing ones.
    pub devices: usize,
    /// Split mode.
    pub mode: SplitMode,
    /// Placement on these devices.
    pub placement: Placement,
    /// Estimated tokens per second.
    pub decode_tps: f64,
}

/// Searches for the smallest number of devices that the request fits on. Added devices equal the existing device with
/// the most memory. `units` are the bytes that each section stores on the devices, `taken` the bytes of intermediate
/// values.
pub(super) fn growth(
    advisor: &Advisor<'_>,
    base: &Placement,
    (units, taken): (&[StoredBytes], f64),
    (insts, layers): (usize, u64),
    effort: &mut Effort,
) -> Option<Growth> {
    let mode = match base.split_mode {
        SplitMode::Tensor => SplitMode::Tensor,
        _ => SplitMode::Layer,
    };
    let is_fixed = |d: &DeviceSpec| d.machine.is_some() || matches!(d.kind, DeviceKind::Numa(_));
    // A machine cannot get more NUMA nodes.
    if base.tensor_split.is_some() || base.devices.iter().any(is_fixed) {
        return None;
    }
    let first = (base.devices.len() + 1..=MAX_DEVICES).find(|&n| suffice(base, n, units, taken))?;
    let sharing = if mode == SplitMode::Tensor { first } else { 1 };
    let work = Costs::of(insts, layers, (sharing, first)).draft;
    let affordable = usize::try_from(effort.left() / work).unwrap_or(DRAFTS);
    let counts = (0..affordable.min(DRAFTS)).map(|more| first + more);
    let counts: Vec<usize> = counts.filter(|&n| n <= MAX_DEVICES).collect();
    effort.spend(counts.len(), work * counts.len() as u64);
    // The bound never exceeds the required number, so take the first number whose plan fits.
    let tried = in_parallel(counts, |n| {
        let placement = Placement {
            split_mode: mode,
            ..extend(base, n)
        };
        let prepared = advisor.origin.prepare(&placement).ok()?;
        let draft = prepared.draft(&placement).ok()?;
        (advisor.watch)();
        draft.fits().then(|| Growth {
            devices: n,
            mode: draft.mode(),
            decode_tps: draft.estimate().decode_tps,
            placement,
        })
    });
    tried.into_iter().flatten().next()
}

pub(super) fn extend(base: &Placement, n: usize) -> Placement {
    let topology = &base.topology;
    let memory = |d: &usize| topology.device(*d).usable_memory().unwrap_or(f64::INFINITY);
    let own = base.devices.len();
    let largest = (0..own)
        .max_by(|a, b| memory(a).total_cmp(&memory(b)).then(b.cmp(a)))
        .unwrap_or(0);
    let mut out = base.clone();
    out.topology.devices = (0..own).map(|d| topology.device(d).clone()).collect();
    for d in own..n {
        let kind = match base.devices[largest].kind {
            DeviceKind::Cuda(_) => DeviceKind::Cuda(u32::try_from(d).unwrap_or(u32::MAX)),
            other => other,
        };
        let name = match kind {
            DeviceKind::Generic => format!("dev{d}"),
            DeviceKind::Cpu => format!("cpu#{d}"),
            DeviceKind::Cuda(ordinal) => format!("cuda:{ordinal}#{d}"),
            DeviceKind::Numa(node) => format!("numa:{node}#{d}"),
        };
        out.devices.push(DeviceSpec {
            name,
            kind,
            ..base.devices[largest].clone()
        });
        out.topology.devices.push(topology.device(largest).clone());
        // A device that shares the machine's memory cannot be added.
        if topology.pool_of(largest).is_some() {
            out.topology.machines.put_apart(d);
            out.topology.link = Link::network();
        }
    }
    out
}

/// True if `n` devices have room for the stored bytes, as consecutive layers or as a part of every layer.
fn suffice(base: &Placement, n: usize, units: &[StoredBytes], taken: f64) -> bool {
    let grown = extend(base, n);
    let room = |d: usize| {
        let usable = grown.topology.device(d).usable_memory();
        usable.map_or(f64::INFINITY, |m| (m - taken).max(0.0))
    };
    if base.split_mode == SplitMode::Tensor {
        let stored: f64 = units.iter().map(StoredBytes::total).sum();
        return stored <= (0..n).map(room).sum::<f64>();
    }
    in_order(units, n, &|d, stored| stored.total() <= room(d))
}
