//! The constants of an engine that the machine's data sheet does not have.

use tpc_ir::op::Collective;

use super::{Engine, Link, LinkKind, fitted};

/// What an engine makes of a machine: the constants of the cost model. The book's page on the cost model has the formula.
///
/// Shares are of the data sheet's figures. Cycles are of all units of a processor together: units times clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineProfile {
    /// Fixed microseconds of a product with few tokens: launch, ramp and tail.
    pub product_us: f64,
    /// The same of attention, which runs in several kernels.
    pub attention_us: f64,
    /// The same of any other op; many are fused with their neighbours.
    pub light_us: f64,
    /// Fixed microseconds of a batch.
    pub token_us: f64,
    /// How many times as long the fixed time of a product is where products are by matrices.
    pub matrix_factor: f64,
    /// Share of a device's bandwidth.
    pub bandwidth_share: f64,
    /// Bytes of a matrix that are read per unit and cycle, at most, where products are by vectors.
    pub bytes_per_cycle: f64,
    /// The same of experts, caches and states: many short runs.
    pub scattered_bytes_per_cycle: f64,
    /// The factor on both for processors without products of four 8-bit integers.
    pub no_dot_share: f64,
    /// Share of the arithmetic throughput where products are by matrices.
    pub matrix_share: f64,
    /// The same for attention.
    pub attention_share: f64,
    /// The factor on both rates of products for those with experts: each has few tokens, which fill its tiles in part.
    pub expert_share: f64,
    /// Bytes that are written and read per score where attention is not fused into one kernel; 0 where it is (flash
    /// attention, the default of llama.cpp since 2025).
    pub score_bytes: f64,
    /// Unit-cycles to unpack a quantised weight where products are by matrices.
    pub unpack_cycles: f64,
    /// The factor on all of this for devices of makers that the kernels were not written for.
    pub ported_share: f64,
    /// Share of the host's bandwidth.
    pub host_share: f64,
    /// Fixed microseconds of a heavy op on the host and of a copy from or to it.
    pub host_us: f64,
    /// Share of the link to the host at which weights on the host are fetched for a prompt.
    pub host_link_share: f64,
    /// Latencies of the link that a reduction over two devices takes.
    pub reduction_latencies: f64,
    /// The exponent by which these grow with the number of further devices, where there is no switch.
    pub reduction_growth: f64,
    /// Share of a link's bandwidth.
    pub link_share: f64,
    /// Fixed microseconds of the step from one stage to the next.
    pub handover_us: f64,
    /// Share of the ideal at which stages work on successive batches of a prompt at the same time; 0 where they do not.
    pub overlap: f64,
    /// The relative error to expect.
    pub error: ErrorBand,
}

/// Typical relative errors, by the way that devices work together: the median of |ln(estimated / measured)| of decoding, over
/// published rows that the constants were not fitted on. Half of such estimates are nearer, half are not. Where fewer than
/// five rows tell, it is twice the median over all engines and ways. Prompts are estimated about three times worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ErrorBand {
    /// On one device.
    pub alone: f64,
    /// Layer by layer.
    pub layer: f64,
    /// With shared tensors.
    pub tensor: f64,
    /// With weights on the host.
    pub host: f64,
}

impl EngineProfile {
    /// The profile of an engine.
    pub const fn of(engine: Engine) -> &'static EngineProfile {
        match engine {
            Engine::Tpc => &TPC,
            Engine::LlamaCpp => &fitted::LLAMA_CPP,
            Engine::IkLlamaCpp => &fitted::IK_LLAMA_CPP,
        }
    }

    /// Microseconds of a collective over `n` devices whose operand has `bytes` over all of them. An all-reduce is a
    /// reduce-scatter and an all-gather in one, so that either alone moves half as much after the same latency.
    pub fn collective_us(&self, collective: Collective, link: Link, n: usize, bytes: f64) -> f64 {
        match collective {
            Collective::AllReduce => self.all_reduce_us(link, n, bytes),
            Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => {
                self.all_reduce_us(link, n, bytes / 2.0)
            }
        }
    }

    /// Microseconds of an all-reduce of `bytes` over `n` devices.
    pub fn all_reduce_us(&self, link: Link, n: usize, bytes: f64) -> f64 {
        if n < 2 {
            return 0.0;
        }
        let growth = match link.kind {
            LinkKind::NvSwitch => 0.0,
            _ => self.reduction_growth,
        };
        let n = n as f64;
        let latency = self.reduction_latencies * link.latency_us * (n - 1.0).powf(growth);
        latency + 2.0 * (n - 1.0) / n * bytes / (link.bandwidth * self.link_share) * 1e6
    }
}

/// tpc's own: a design target, since its kernels are not measured yet. Kernels as llama.cpp's, which is the least that they
/// are built for; one-shot reductions in the program itself instead of a call between programs.
static TPC: EngineProfile = EngineProfile {
    reduction_latencies: 1.0,
    reduction_growth: 0.5,
    handover_us: 20.0,
    ..fitted::LLAMA_CPP
};
