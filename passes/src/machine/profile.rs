use super::CardClass;

/// The constants of the cost model: the fractions of a machine's data sheet figures that an engine reaches. The book's
/// page on the cost model has the formula.
///
/// Cycles are unit-cycles: units times clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineProfile {
    /// Fixed microseconds of a product with few tokens: launch, ramp and tail.
    pub product_us: f64,
    /// Fixed microseconds of attention (several kernels).
    pub attention_us: f64,
    /// Fixed microseconds of a recurrent state update.
    pub recurrent_us: f64,
    /// Fixed microseconds of a recurrent state update if devices share the layer's tensors.
    pub shared_recurrent_us: f64,
    /// Fixed microseconds of any other op; small, because engines fuse many of these ops with neighbours.
    pub light_us: f64,
    /// Fixed microseconds per batch.
    pub token_us: f64,
    /// Factor on a product's fixed time in [`Regime::Matrices`](super::Regime::Matrices).
    pub matrix_factor: f64,
    /// Share of a device's bandwidth.
    pub bandwidth_share: f64,
    /// Maximum matrix bytes per unit and cycle in matrix-vector products.
    pub bytes_per_cycle: f64,
    /// Maximum bytes per unit and cycle for experts, caches and states, which are read in many short runs.
    pub scattered_bytes_per_cycle: f64,
    /// Factor on both byte rates for processors without dot products of four 8-bit integers.
    pub no_dot_share: f64,
    /// Share of the arithmetic throughput in matrix-matrix products.
    pub matrix_share: f64,
    /// Share of the arithmetic throughput in attention.
    pub attention_share: f64,
    /// Factor on products with experts, on both shares: each expert has few tokens, so tiles are partly empty.
    pub expert_share: f64,
    /// Bytes written and read per score by unfused attention; 0 for flash attention, llama.cpp's default since 2025.
    pub score_bytes: f64,
    /// Unit-cycles to unpack a quantised weight in matrix-matrix products.
    pub unpack_cycles: f64,
    /// Factor on all rates above for devices with ported kernels, besides the class factor.
    pub ported_share: f64,
    /// Share of the host's bandwidth.
    pub host_share: f64,
    /// Fixed microseconds of a heavy op on the host, and of a copy from or to the host.
    pub host_us: f64,
    /// Share of the host link's bandwidth if a device fetches weights from the host for a prompt.
    pub host_link_share: f64,
    /// Number of link latencies in a reduction over two devices.
    pub reduction_latencies: f64,
    /// Factor on `reduction_latencies` for devices that synchronise through the host.
    pub old_reductions: f64,
    /// Exponent of the growth of `reduction_latencies` with the number of devices, without a switch.
    pub reduction_growth: f64,
    /// Share of a link's bandwidth.
    pub link_share: f64,
    /// Fixed microseconds between stages.
    pub handover_us: f64,
    /// Share of the ideal overlap of stages on successive prompt batches; 0 without overlap.
    pub overlap: f64,
    /// Factors of device classes on the other constants.
    pub classes: ClassFactors,
    /// The typical relative error of estimates.
    pub error: ErrorBand,
}

/// Factors of a device class on an engine's rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFactor {
    /// Factor on bytes per second and per cycle in matrix-vector products.
    pub reads: f64,
    /// Factor on the arithmetic in matrix-matrix products.
    pub products: f64,
}

impl ClassFactor {
    /// Factors without effect.
    pub const ONE: ClassFactor = ClassFactor {
        reads: 1.0,
        products: 1.0,
    };
}

/// The factors of all classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFactors([ClassFactor; CardClass::ALL.len()]);

impl ClassFactors {
    /// Creates the factors from (class, reads, products); other classes have 1.
    pub const fn new(listed: &[(CardClass, f64, f64)]) -> ClassFactors {
        let mut out = ClassFactors([ClassFactor::ONE; CardClass::ALL.len()]);
        let mut i = 0;
        while i < listed.len() {
            let (class, reads, products) = listed[i];
            out.0[class as usize] = ClassFactor { reads, products };
            i += 1;
        }
        out
    }

    /// Returns the factors of a class.
    pub const fn of(&self, class: CardClass) -> ClassFactor {
        self.0[class as usize]
    }

    /// Returns the factors of a class, mutably.
    pub const fn of_mut(&mut self, class: CardClass) -> &mut ClassFactor {
        &mut self.0[class as usize]
    }
}

/// Typical relative errors per split mode: the median of |ln(estimated / measured)| of decoding, over published rows
/// not used for fitting. With fewer than five rows, the error is twice the median over all engines and split modes.
/// Errors of prompt estimates are about three times larger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBand {
    /// On one device.
    pub alone: f64,
    /// With a layer split.
    pub layer: f64,
    /// With a tensor split.
    pub tensor: f64,
    /// With weights on the host.
    pub host: f64,
}
