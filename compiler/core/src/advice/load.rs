//! The stored bytes of a configuration, before layers, experts or caches move to the host.

use super::point::Offload;
use crate::pipeline::StoredBytes;

#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Stored bytes per section.
    pub(super) units: Vec<StoredBytes>,
    /// Bytes per device of whole tensors that overrides put there.
    pub(super) pinned: Vec<f64>,
    /// Bytes that overrides put on the host.
    pub(super) host: f64,
}

impl Load {
    /// Splits the load into bytes per section on the devices, and bytes on the host.
    pub(super) fn divide(&self, offload: Offload) -> (Vec<StoredBytes>, f64) {
        let last = self.units.len() - 1;
        let mut host = self.host;
        let kept = |(i, unit): (usize, &StoredBytes)| {
            // The prologue is placed with the first layer. The output is the last section.
            let layer = (i as u64).saturating_sub(1);
            let gone = match i {
                0 => offload.layers > 0,
                i if i == last => offload.layers >= last as u64,
                _ => layer < offload.layers,
            };
            let mut kept = *unit;
            if gone {
                kept = StoredBytes::default();
            } else {
                if i > 0 && i < last && layer < offload.experts {
                    kept.experts = 0.0;
                }
                if offload.kv {
                    kept.caches = 0.0;
                }
            }
            host += unit.total() - kept.total();
            kept
        };
        let kept = self.units.iter().enumerate().map(kept).collect();
        (kept, host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_the_host_leaves_the_devices() {
        let layer = StoredBytes {
            experts: 8.0,
            weights: 1.0,
            caches: 2.0,
            states: 0.0,
            copies: 0.0,
        };
        let ends = StoredBytes {
            weights: 4.0,
            ..StoredBytes::default()
        };
        let load = Load {
            units: vec![ends, layer, layer, ends],
            pinned: vec![0.0],
            host: 1.0,
        };
        let host = |experts, layers, kv| {
            let (kept, host) = load.divide(Offload {
                experts,
                layers,
                kv,
                moves: 0,
            });
            let kept: f64 = kept.iter().map(StoredBytes::total).sum();
            assert_eq!(kept + host, 31.0);
            host
        };
        assert_eq!(host(0, 0, false), 1.0);
        assert_eq!(host(1, 0, false), 9.0);
        assert_eq!(host(2, 0, true), 21.0);
        assert_eq!(host(0, 1, false), 16.0);
        assert_eq!(host(2, 1, false), 24.0);
        assert_eq!(host(0, 3, false), 31.0);
    }
}
