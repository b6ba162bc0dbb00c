use super::kernel::{Kernel, KernelKind, Regime};
use super::{DeviceProfile, EngineProfile, Topology};

/// Operations per unit and cycle of most cards with matrix units, used if the number of units is unknown.
const OPERATIONS_PER_CYCLE: f64 = 512.0;

/// Processors with fewer operations per unit and cycle have no matrix units.
const VECTOR_UNITS_ONLY: f64 = 300.0;

/// Operations of attention per query, cell and head: two products of a usual head of 128 elements.
const OPERATIONS_PER_SCORE: f64 = 4.0 * 128.0;

/// The time of a kernel in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelTime {
    /// The time that does not depend on sizes.
    pub fixed: f64,
    /// The time to move the bytes and compute the operations.
    pub busy: f64,
}

impl KernelTime {
    /// Returns the sum.
    pub fn total(self) -> f64 {
        self.fixed + self.busy
    }
}

/// The speed of an engine on one device.
#[derive(Clone, Copy, Debug)]
pub struct Speed<'a> {
    profile: &'a EngineProfile,
    bandwidth: f64,
    /// Unit-cycles per second, if known.
    cycles: Option<f64>,
    /// Unit-cycles per second, estimated if unknown.
    some_cycles: f64,
    matrix: f64,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Device,
    /// The host, with the rate of weights fetched from it, in bytes per second.
    Host(f64),
}

impl<'a> Speed<'a> {
    /// Returns the speed of a device.
    pub fn of_device(profile: &'a EngineProfile, device: &DeviceProfile) -> Speed<'a> {
        let processor = device.processor;
        let stated = processor.map(|p| f64::from(p.units) * p.clock);
        let counted = || Some(device.flops / device.class.operations_per_cycle()?);
        let nominal = stated.or_else(counted);
        let ported = match processor.and_then(|p| p.ported) {
            Some(true) => profile.ported_share,
            None if device.class.is_ported() => profile.ported_share,
            _ => 1.0,
        };
        let class = profile.classes.of(device.class);
        let (reads, products) = (ported * class.reads, ported * class.products);
        // 8-bit integer products are as fast as 16-bit products or twice as fast.
        let int8 = processor.and_then(|p| p.int8).map(|x| x / 2.0);
        let dots = match (int8, nominal) {
            (None, Some(c)) if device.flops / c < VECTOR_UNITS_ONLY => profile.no_dot_share,
            _ => 1.0,
        };
        Speed {
            profile,
            bandwidth: device.bandwidth * profile.bandwidth_share * reads,
            cycles: nominal.map(|c| c * reads * dots),
            some_cycles: nominal.unwrap_or(device.flops / OPERATIONS_PER_CYCLE) * products,
            matrix: int8.map_or(device.flops, |x| x.max(device.flops)) * products,
            place: Place::Device,
        }
    }

    /// Returns the speed of the host.
    pub fn of_host(profile: &'a EngineProfile, topology: &Topology) -> Speed<'a> {
        let host = &topology.host;
        Speed {
            profile,
            bandwidth: host.bandwidth * profile.host_share,
            cycles: None,
            some_cycles: host.flops / OPERATIONS_PER_CYCLE,
            matrix: host.flops,
            place: Place::Host(topology.host_link.bandwidth * profile.host_link_share),
        }
    }

    /// Returns the time of a kernel.
    pub fn kernel(&self, k: &Kernel, regime: Regime) -> KernelTime {
        match self.place {
            Place::Device => self.on_device(k, regime),
            Place::Host(link) => self.on_host(k, regime, link),
        }
    }

    fn on_device(&self, k: &Kernel, regime: Regime) -> KernelTime {
        let p = self.profile;
        let fixed = match k.kind {
            KernelKind::Product | KernelKind::Experts => p.product_us,
            KernelKind::Recurrent => p.recurrent_us,
            KernelKind::Attention => p.attention_us,
            KernelKind::Light => p.light_us,
        };
        let scores = match k.kind {
            KernelKind::Attention => k.work.flops / OPERATIONS_PER_SCORE,
            _ => 0.0,
        };
        let bytes = k.work.bytes + scores * p.score_bytes;
        let memory = bytes / self.bandwidth;
        match regime {
            Regime::Vectors => {
                let per_cycle = match k.kind {
                    KernelKind::Product => Some(p.bytes_per_cycle),
                    KernelKind::Light => None,
                    _ => Some(p.scattered_bytes_per_cycle),
                };
                let units = match (per_cycle, self.cycles) {
                    (Some(per_cycle), Some(cycles)) => bytes / (per_cycle * cycles),
                    _ => 0.0,
                };
                KernelTime {
                    fixed,
                    busy: memory.max(units) * 1e6,
                }
            }
            Regime::Matrices => {
                let share = match k.kind {
                    KernelKind::Light => f64::INFINITY,
                    KernelKind::Attention => p.attention_share,
                    _ => p.matrix_share,
                };
                let filled = match k.kind {
                    KernelKind::Experts => p.expert_share,
                    _ => 1.0,
                };
                let arithmetic = (k.work.flops / (share * self.matrix)
                    + k.unpacked_weights() * p.unpack_cycles / self.some_cycles)
                    / filled;
                let factor = match k.kind {
                    KernelKind::Attention | KernelKind::Light => 1.0,
                    _ => p.matrix_factor,
                };
                KernelTime {
                    fixed: fixed * factor,
                    busy: memory.max(arithmetic) * 1e6,
                }
            }
        }
    }

    /// Returns the time on the host. For a prompt, a device may fetch the weights and compute the product instead.
    fn on_host(&self, k: &Kernel, regime: Regime, link: f64) -> KernelTime {
        let own = (k.work.bytes / self.bandwidth).max(k.work.flops / self.matrix);
        if k.kind == KernelKind::Light {
            return KernelTime {
                fixed: 0.0,
                busy: own * 1e6,
            };
        }
        let fetched = match regime {
            Regime::Matrices if k.weight_bytes > 0.0 => k.weight_bytes / link,
            _ => f64::INFINITY,
        };
        KernelTime {
            fixed: self.profile.host_us,
            busy: own.min(fetched) * 1e6,
        }
    }
}
