use serde::Serialize;

use super::Backend;

/// The device generation, as far as engines have different kernels or limits for it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, serde::Deserialize,
)]
pub enum CardClass {
    /// Unknown.
    #[default]
    Unknown,
    /// NVIDIA before Pascal.
    OldNvidia,
    /// Pascal with fast 16-bit arithmetic but no 8-bit dot products: P100.
    PascalHbm,
    /// Pascal with slow 16-bit arithmetic: P40, GTX 10.
    Pascal,
    /// Volta: V100.
    Volta,
    /// Turing: RTX 20, T4.
    Turing,
    /// Ampere with GDDR: RTX 30, A6000.
    AmpereGddr,
    /// Ampere with HBM: A100.
    AmpereHbm,
    /// Ada: RTX 40, L40S.
    Ada,
    /// Hopper: H100, H200.
    Hopper,
    /// Blackwell with GDDR: RTX 50, RTX PRO 6000.
    BlackwellGddr,
    /// Blackwell with HBM: B200.
    BlackwellHbm,
    /// NVIDIA processors with shared memory: GB10.
    UnifiedNvidia,
    /// AMD Polaris and older: RX 580.
    Polaris,
    /// AMD Vega: MI50.
    Vega,
    /// AMD RX 5000.
    Rdna1,
    /// AMD RX 6000.
    Rdna2,
    /// AMD RX 7000.
    Rdna3,
    /// AMD RX 9000 and R9700.
    Rdna4,
    /// AMD accelerators with matrix cores: MI100, MI300X.
    Cdna,
    /// AMD processors with shared memory: Strix Halo.
    UnifiedAmd,
    /// Intel's first Arc: A770.
    Alchemist,
    /// Intel's second Arc: B580, B70.
    Battlemage,
    /// Apple processors.
    Apple,
    /// A CPU used as a device.
    Processor,
    /// A NUMA node of the host: cores with their own memory.
    NumaNode,
}

impl CardClass {
    /// All classes.
    pub const ALL: [CardClass; 26] = [
        CardClass::Unknown,
        CardClass::OldNvidia,
        CardClass::PascalHbm,
        CardClass::Pascal,
        CardClass::Volta,
        CardClass::Turing,
        CardClass::AmpereGddr,
        CardClass::AmpereHbm,
        CardClass::Ada,
        CardClass::Hopper,
        CardClass::BlackwellGddr,
        CardClass::BlackwellHbm,
        CardClass::UnifiedNvidia,
        CardClass::Polaris,
        CardClass::Vega,
        CardClass::Rdna1,
        CardClass::Rdna2,
        CardClass::Rdna3,
        CardClass::Rdna4,
        CardClass::Cdna,
        CardClass::UnifiedAmd,
        CardClass::Alchemist,
        CardClass::Battlemage,
        CardClass::Apple,
        CardClass::Processor,
        CardClass::NumaNode,
    ];

    /// True if engines run kernels on the class that were ported from another vendor's hardware.
    pub const fn is_ported(self) -> bool {
        !matches!(
            self.usual_back_end(),
            Backend::Cuda | Backend::Cpu | Backend::Rpc
        )
    }

    /// True if devices synchronise through the host, which takes several hundred microseconds. Engines' reduction
    /// kernels need newer devices.
    pub const fn waits_on_host(self) -> bool {
        matches!(
            self,
            CardClass::OldNvidia | CardClass::PascalHbm | CardClass::Pascal | CardClass::Polaris
        )
    }

    /// Returns the operations per unit and cycle, known for some classes without matrix units. If the number of units
    /// is unknown, it is computed from this number and the arithmetic throughput.
    pub const fn operations_per_cycle(self) -> Option<f64> {
        match self {
            CardClass::Polaris | CardClass::Rdna1 | CardClass::Pascal => Some(128.0),
            _ => None,
        }
    }

    /// Returns the plural name for messages.
    pub const fn words(self) -> &'static str {
        match self {
            CardClass::Unknown => "devices of an unknown class",
            CardClass::OldNvidia => "NVIDIA cards before Pascal",
            CardClass::PascalHbm => "Pascal cards with HBM (P100)",
            CardClass::Pascal => "Pascal cards",
            CardClass::Volta => "Volta cards",
            CardClass::Turing => "Turing cards",
            CardClass::AmpereGddr => "Ampere cards with GDDR",
            CardClass::AmpereHbm => "Ampere cards with HBM",
            CardClass::Ada => "Ada cards",
            CardClass::Hopper => "Hopper cards",
            CardClass::BlackwellGddr => "Blackwell cards with GDDR",
            CardClass::BlackwellHbm => "Blackwell cards with HBM",
            CardClass::UnifiedNvidia => "NVIDIA processors with shared memory",
            CardClass::Polaris => "AMD cards of the Polaris generation or older",
            CardClass::Vega => "Vega cards",
            CardClass::Rdna1 => "RDNA1 cards",
            CardClass::Rdna2 => "RDNA2 cards",
            CardClass::Rdna3 => "RDNA3 cards",
            CardClass::Rdna4 => "RDNA4 cards",
            CardClass::Cdna => "CDNA cards",
            CardClass::UnifiedAmd => "AMD processors with shared memory",
            CardClass::Alchemist => "Intel Arc A cards",
            CardClass::Battlemage => "Intel Arc B cards",
            CardClass::Apple => "Apple processors",
            CardClass::Processor => "processors",
            CardClass::NumaNode => "NUMA nodes",
        }
    }

    /// Returns the back end that llama.cpp users usually choose for the class.
    pub const fn usual_back_end(self) -> Backend {
        match self {
            CardClass::Unknown
            | CardClass::OldNvidia
            | CardClass::PascalHbm
            | CardClass::Pascal
            | CardClass::Volta
            | CardClass::Turing
            | CardClass::AmpereGddr
            | CardClass::AmpereHbm
            | CardClass::Ada
            | CardClass::Hopper
            | CardClass::BlackwellGddr
            | CardClass::BlackwellHbm
            | CardClass::UnifiedNvidia => Backend::Cuda,
            // ROCm's libraries have no kernels for these cards.
            CardClass::Polaris | CardClass::Rdna1 => Backend::Vulkan,
            CardClass::Vega
            | CardClass::Rdna2
            | CardClass::Rdna3
            | CardClass::Rdna4
            | CardClass::Cdna
            | CardClass::UnifiedAmd => Backend::Rocm,
            CardClass::Alchemist | CardClass::Battlemage => Backend::Sycl,
            CardClass::Apple => Backend::Metal,
            CardClass::Processor | CardClass::NumaNode => Backend::Cpu,
        }
    }
}
