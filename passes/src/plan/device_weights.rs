//! Adapts device weights to the devices' memory.

use tpc_ir::{Bindings, Graph};

use super::PlanRequest;
use crate::layers::Prologue;
use crate::place::{LayerPlace, LayerPlacement, PlaceOverride};

/// The fraction of a device's memory for weights and states; intermediate values use the rest.
const FOR_STORAGE: f64 = 0.95;

impl PlanRequest {
    /// Limits each device's share of its stage to its free memory, and gives the excess to the other devices. Weights
    /// stay in proportion to bandwidth if memory allows. If a stage's tensors do not fit, its weights are in proportion
    /// to the devices' free memory. Devices with unknown memory are not limited.
    pub fn limit_device_weights(&mut self, model: &Graph, batch: &Bindings) {
        let stored = StoredBytes::new(model, &self.layer_placement, self.devices.len(), batch);
        let mut weights = self.device_weights();
        let mut limited = false;
        for (stage, devices) in self.layer_placement.stages.iter().enumerate() {
            let room = |&d: &usize| {
                let memory = self.topology.device(d).usable_memory();
                memory.map_or(f64::INFINITY, |m| {
                    (FOR_STORAGE * m - stored.whole[d]).max(0.0) / stored.divided[stage].max(1.0)
                })
            };
            let room: Vec<f64> = devices.iter().map(room).collect();
            let own: Vec<f64> = devices.iter().map(|&d| weights[d]).collect();
            if let Some(found) = limit_shares(&own, &room) {
                devices.iter().zip(found).for_each(|(&d, w)| weights[d] = w);
                limited = true;
            }
        }
        if limited {
            self.tensor_split = Some(weights);
        }
    }

    /// Shifts weights from devices whose memory a plan exceeds to devices of their stage with free memory. `needed` has
    /// the plan's bytes per device. Returns true if a weight changed. Factors of few units (heads, experts) follow the
    /// weights only roughly.
    pub fn shift_device_weights(&mut self, needed: &[u64]) -> bool {
        let mut weights = self.device_weights();
        let mut shifted = false;
        for devices in &self.layer_placement.stages {
            let ratio = |&d: &usize| {
                let memory = self.topology.device(d).usable_memory();
                memory.map_or(1.0, |m| m / (needed[d] as f64).max(1.0))
            };
            let ratios: Vec<f64> = devices.iter().map(ratio).collect();
            if devices.len() < 2 || ratios.iter().all(|r| *r >= 1.0) {
                continue;
            }
            // Use the square root of the ratio, because tensors that a device holds whole do not shrink with its
            // weight.
            devices
                .iter()
                .zip(ratios)
                .for_each(|(&d, r)| weights[d] *= r.sqrt());
            shifted = true;
        }
        if shifted {
            self.tensor_split = Some(weights);
        }
        shifted
    }

    /// True if every stage has memory for its weights and states, besides the `taken` bytes of each device. Otherwise
    /// no plan fits.
    pub fn has_room(&self, model: &Graph, batch: &Bindings, taken: &[u64]) -> bool {
        let stored = StoredBytes::new(model, &self.layer_placement, self.devices.len(), batch);
        let stages = self.layer_placement.stages.iter().zip(&stored.divided);
        let mut room = stages.map(|(devices, divided)| {
            let left = |&d: &usize| {
                let memory = self.topology.device(d).usable_memory();
                let taken = taken.get(d).copied().unwrap_or(0) as f64;
                let free = |m: f64| (m - taken - stored.whole[d]).max(0.0);
                memory.map_or(f64::INFINITY, free)
            };
            devices.iter().map(left).sum::<f64>() - divided
        });
        room.all(|r| r >= 0.0)
    }
}

struct StoredBytes {
    /// Per stage, the bytes that its devices can divide.
    divided: Vec<f64>,
    /// Per device, the bytes of tensors that an override puts there whole.
    whole: Vec<f64>,
}

impl StoredBytes {
    fn new(
        model: &Graph,
        placement: &LayerPlacement,
        devices: usize,
        batch: &Bindings,
    ) -> StoredBytes {
        let mut out = StoredBytes {
            divided: vec![0.0; placement.stages.len()],
            whole: vec![0.0; devices],
        };
        let prologue = Prologue::of_graph(model);
        for (inst, data) in model.insts() {
            if !data.op.is_stored() {
                continue;
            }
            let v = data.results[0];
            let bytes = model.value(v).ty.bytes(batch).unwrap_or(u64::MAX) as f64;
            let layer = placement.of_section(prologue.section(inst, data.layer));
            match (placement.overrides.get(&v), layer) {
                (Some(PlaceOverride::Device(d)), _) => out.whole[*d] += bytes,
                (Some(PlaceOverride::Mirrored), layer) => {
                    let stage = match layer {
                        LayerPlace::Host => 0,
                        LayerPlace::Stage(s) => s,
                    };
                    placement.stages[stage]
                        .iter()
                        .for_each(|&d| out.whole[d] += bytes);
                }
                (Some(PlaceOverride::Host), _) | (None, LayerPlace::Host) => {}
                (None, LayerPlace::Stage(s)) => out.divided[s] += bytes,
            }
        }
        out
    }
}

/// Limits weights to the devices' free memory, in fractions of the total; keeps the sum. If the memory does not
/// suffice, the result is in proportion to it. Returns `None` if no weight needs to change, or if no device has free
/// memory.
fn limit_shares(weights: &[f64], room: &[f64]) -> Option<Vec<f64>> {
    let total: f64 = weights.iter().sum();
    let space: f64 = room.iter().sum();
    let fits = |(w, r): (&f64, &f64)| w / total <= *r;
    if weights.len() < 2 || space <= 0.0 || weights.iter().zip(room).all(fits) {
        return None;
    }
    if space <= 1.0 {
        return Some(room.iter().map(|r| r / space * total).collect());
    }
    let mut out = vec![0.0; weights.len()];
    let mut open: Vec<usize> = (0..weights.len()).collect();
    let mut left = 1.0;
    while !open.is_empty() {
        let sum: f64 = open.iter().map(|&i| weights[i]).sum();
        let fair = |i: usize| left * weights[i] / sum;
        let (full, rest): (Vec<usize>, Vec<usize>) = open.iter().partition(|&&i| fair(i) > room[i]);
        if full.is_empty() {
            open.iter().for_each(|&i| out[i] = fair(i) * total);
            break;
        }
        for i in full {
            out[i] = room[i] * total;
            left -= room[i];
        }
        open = rest;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{DeviceProfile, Topology, Workload};

    fn close(found: Option<Vec<f64>>, expected: &[f64]) {
        let found = found.expect("device_weights change");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(near),
            "{found:?} is not {expected:?}"
        );
    }

    #[test]
    fn shares_shift_to_where_there_is_room() {
        let device = |memory| DeviceProfile {
            name: "d".into(),
            memory,
            reserve: 0.0,
            beside: 0.0,
            pool: None,
            bandwidth: 1e12,
            flops: 1e14,
            processor: None,
            class: crate::machine::CardClass::Unknown,
        };
        let topology = Topology {
            devices: vec![device(Some(24e9)), device(Some(12e9)), device(None)],
            ..Topology::default()
        };
        let devices = (0..3).map(|d| format!("dev{d}")).collect();
        let mut request = PlanRequest::new(topology, Workload::new(1, 1, 1, 1), devices);
        assert!(!request.shift_device_weights(&[24_000_000_000, 12_000_000_000, 99_000_000_000]));
        assert_eq!(request.tensor_split, None);
        assert!(request.shift_device_weights(&[6_000_000_000, 48_000_000_000, 6_000_000_000]));
        close(request.tensor_split, &[2e12, 5e11, 1e12]);
    }

    #[test]
    fn shares_follow_bandwidth_as_far_as_memory_allows() {
        // If the weights fit, no weight changes, even with unknown memory.
        assert_eq!(limit_shares(&[1.0, 1.0], &[0.5, 0.6]), None);
        assert_eq!(limit_shares(&[3.0, 1.0], &[f64::INFINITY, 0.25]), None);
        // 24 GB and 12 GB of equal speed, for 30 GB: the small device is full, the other takes the rest.
        close(
            limit_shares(&[1.0, 1.0], &[24.0 / 30.0, 12.0 / 30.0]),
            &[1.2, 0.8],
        );
        // The excess of the first device fills the second.
        close(
            limit_shares(&[2.0, 2.0, 1.0], &[0.2, 0.45, f64::INFINITY]),
            &[1.0, 2.25, 1.75],
        );
        // 60 GB do not fit, so both devices exceed their memory by the same share.
        close(
            limit_shares(&[1.0, 1.0], &[0.4, 0.2]),
            &[4.0 / 3.0, 2.0 / 3.0],
        );
        close(limit_shares(&[1.0, 1.0], &[0.4, 0.0]), &[2.0, 0.0]);
        assert_eq!(limit_shares(&[1.0, 1.0], &[0.0, 0.0]), None);
        assert_eq!(limit_shares(&[1.0], &[0.1]), None);
    }
}
