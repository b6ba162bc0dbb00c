//! The constants of an engine that the machine's data sheet does not have.

use super::CardClass;

/// The constants of the cost model: the shares of a machine's figures that an engine reaches.
///
/// The book's page on the cost model has the formula.
///
/// Shares are of the data sheet's figures. Cycles are of all units of a processor together: units times clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineProfile {
    /// Fixed microseconds of a product with few tokens: launch, ramp and tail.
    pub product_us: f64,
    /// Fixed microseconds of attention, which runs in several kernels.
    pub attention_us: f64,
    /// Fixed microseconds of a recurrent layer's update of its state.
    pub recurrent_us: f64,
    /// Fixed microseconds of a recurrent layer's update of its state if devices share the layer's tensors.
    pub shared_recurrent_us: f64,
    /// Fixed microseconds of any other op; many are fused with their neighbours.
    pub light_us: f64,
    /// Fixed microseconds of a batch.
    pub token_us: f64,
    /// The factor on the fixed time of a product in [`Regime::Matrices`](super::Regime::Matrices).
    pub matrix_factor: f64,
    /// Share of a device's bandwidth.
    pub bandwidth_share: f64,
    /// The most bytes of a matrix that are read per unit and cycle in products by vectors.
    pub bytes_per_cycle: f64,
    /// The most bytes of experts, caches and states that are read per unit and cycle: many short runs.
    pub scattered_bytes_per_cycle: f64,
    /// The factor on both rates for processors without dot products of four 8-bit integers.
    pub no_dot_share: f64,
    /// Share of the arithmetic throughput in products by matrices.
    pub matrix_share: f64,
    /// Share of the arithmetic throughput in attention.
    pub attention_share: f64,
    /// The factor on both rates of products for products with experts: each expert has few tokens and fills its tiles
    /// in part.
    pub expert_share: f64,
    /// Bytes that are written and read per score if attention is not fused into one kernel; 0 if it is fused (flash
    /// attention, the default of llama.cpp since 2025).
    pub score_bytes: f64,
    /// Unit-cycles to unpack a quantised weight in products by matrices.
    pub unpack_cycles: f64,
    /// The factor on all rates above, on top of the factor of the class, for devices of makers that the kernels were
    /// not written for.
    pub ported_share: f64,
    /// Share of the host's bandwidth.
    pub host_share: f64,
    /// Fixed microseconds of a heavy op on the host and of a copy from or to it.
    pub host_us: f64,
    /// The share of the host link's bandwidth that prompts reach when they fetch weights from the host.
    pub host_link_share: f64,
    /// The number of link latencies in a reduction over two devices.
    pub reduction_latencies: f64,
    /// The factor on `reduction_latencies` for devices that wait for each other through the host.
    pub old_reductions: f64,
    /// The exponent by which `reduction_latencies` grows with the number of further devices, if the machine has no
    /// switch.
    pub reduction_growth: f64,
    /// Share of a link's bandwidth.
    pub link_share: f64,
    /// Fixed microseconds of the step from one stage to the next.
    pub handover_us: f64,
    /// The share of the ideal overlap that stages reach on successive batches of a prompt; 0 if stages do not overlap.
    pub overlap: f64,
    /// Factors of the classes of devices on the other constants.
    pub classes: ClassFactors,
    /// The relative error to expect.
    pub error: ErrorBand,
}

/// Factors of a class of devices on the rates that engines reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFactor {
    /// The factor on bytes per second and per cycle in products by vectors.
    pub reads: f64,
    /// The factor on the arithmetic in products by matrices.
    pub products: f64,
}

impl ClassFactor {
    /// No difference.
    pub const ONE: ClassFactor = ClassFactor {
        reads: 1.0,
        products: 1.0,
    };
}

/// The factors of all classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFactors([ClassFactor; CardClass::ALL.len()]);

impl ClassFactors {
    /// Creates the factors from the listed classes: the class, its reads, its products. Other classes have factors of
    /// 1.
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

    /// Returns the factors of a class, to be changed.
    pub const fn of_mut(&mut self, class: CardClass) -> &mut ClassFactor {
        &mut self.0[class as usize]
    }
}

/// Typical relative errors, by the way that devices work together. An error is the median of |ln(estimated / measured)|
/// of decoding, over published rows that were not used for fitting. Half of such estimates are nearer, half are not.
/// With fewer than five rows, it is twice the median over all engines and ways. Prompts are estimated about three times
/// worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBand {
    /// The relative error on one device.
    pub alone: f64,
    /// Layer by layer.
    pub layer: f64,
    /// With shared tensors.
    pub tensor: f64,
    /// With weights on the host.
    pub host: f64,
}
