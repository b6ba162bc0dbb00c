use crate::nvrtc::target_for;

/// The figures of a card that determine times.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The name.
    pub name: String,
    /// The compute capability.
    pub capability: (u32, u32),
    /// The NVRTC target of its code.
    pub target: &'static str,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The clock in hertz.
    pub clock: f64,
    /// The bytes per second that a kernel reads from memory.
    pub bandwidth: f64,
    /// The operations per second of `mma.sync`, with f16 added in f32.
    pub tensor: f64,
}

impl Card {
    /// Returns a card. `bandwidth` is the specified bandwidth, `tensor` the specified rate of f16 added in f32.
    /// Returns `None` if tpc does not compile for the compute capability.
    pub fn new(
        name: &str,
        capability: (u32, u32),
        (multiprocessors, clock): (u32, f64),
        (bandwidth, tensor): (f64, f64),
    ) -> Option<Card> {
        let target = target_for(capability)?;
        Some(Card {
            name: name.to_owned(),
            capability,
            target,
            multiprocessors,
            clock,
            bandwidth: bandwidth * super::constants::ASSUMED_BANDWIDTH_SHARE,
            tensor: tensor * mma_share(target),
        })
    }

    /// Replaces the bandwidth by a measured bandwidth.
    #[must_use]
    pub fn with_measured_bandwidth(self, bandwidth: f64) -> Card {
        Card { bandwidth, ..self }
    }

    /// True if a kernel may start before the previous kernel has ended.
    pub fn starts_early(&self) -> bool {
        self.capability >= (9, 0)
    }

    /// Returns the most threads, blocks and bytes of shared memory per multiprocessor.
    pub(super) fn limits(&self) -> (u32, u32, u32) {
        match self.capability {
            (7, _) => (1024, 16, 64 << 10),
            (8, 0 | 7) => (2048, 32, 164 << 10),
            (8, 6) => (1536, 16, 100 << 10),
            (8, _) | (12, _) => (1536, 24, 100 << 10),
            _ => (2048, 32, 228 << 10),
        }
    }
}

/// Returns the share of the specified tensor rate that `mma.sync` reaches. On Hopper, only `wgmma` reaches all of it; on
/// data-centre Blackwell, only `tcgen05`.
fn mma_share(target: &str) -> f64 {
    match target {
        "sm_90a" => 0.62,
        "sm_100f" => 0.3,
        _ => 1.0,
    }
}

/// A link between two cards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CardLink {
    /// The bytes per second in each direction.
    pub bandwidth: f64,
    /// The microseconds of an edge between the cards, beyond a full edge of a card.
    pub edge_us: f64,
}
