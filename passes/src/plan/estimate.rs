use tpc_ir::Graph;

use super::{Bill, Breakdown, ModelKind, PlanRequest, PlannedGraph};
use crate::machine::{Engine, EngineProfile, Way};

/// Batches of an estimated prompt: llama.cpp's default of four physical batches per logical batch.
const PROMPT_BATCHES: f64 = 4.0;

/// Estimated times, in microseconds, and speeds of one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The engine.
    pub engine: Engine,
    /// Tokens in the cache before the decoded token, and before the prompt.
    pub depth: u64,
    /// Microseconds of one decoded token.
    pub decode_us: f64,
    /// Microseconds of one largest prompt batch.
    pub prefill_us: f64,
    /// Microseconds of one token on a single device of the first profile, given enough memory.
    pub baseline_single_us: f64,
    /// Decoded tokens per second.
    pub decode_tps: f64,
    /// Tokens per second of a prompt of several largest batches, with the engine's overlap of stages.
    pub prompt_tps: f64,
    /// The typical relative error of `decode_tps`: the calibration's residual if measured, otherwise the median over
    /// published speeds outside the fit, by engine and way.
    pub error: f64,
    /// How the plan uses several devices.
    pub way: Way,
    /// The kind of the model.
    pub kind: ModelKind,
    /// The parts of `decode_us`.
    pub breakdown: Breakdown,
}

/// Estimates the times of a plan and its sharded graph, for the request's engine and depth. A token passes stages and
/// host in sequence.
pub fn estimate(planned: &PlannedGraph, sharded: &Graph, request: &PlanRequest) -> Estimate {
    let topology = &request.topology;
    let profile = &EngineProfile::on(request.engine, topology);
    let (decode, prefill) = (request.decode_batch(), request.prefill_batch());
    let bill = Bill::new(planned, sharded, request, &decode);
    let breakdown = bill.times(topology, profile).parts();
    let prompt = Bill::new(planned, sharded, request, &prefill).times(topology, profile);
    let single = Bill::on_one_device(planned, request, &decode).times(topology, profile);
    let way = bill.way();
    let calibration = topology.calibration_for(request.engine);
    let error = match way {
        _ if calibration.is_some_and(|c| c.ways.contains(way)) => {
            calibration.map_or(0.0, |c| c.residual)
        }
        Way::Host => profile.error.host,
        Way::Tensor => profile.error.tensor,
        Way::Layer => profile.error.layer,
        Way::Alone => profile.error.alone,
    };
    let per_batch = prompt.batch_us(PROMPT_BATCHES, profile);
    Estimate {
        engine: request.engine,
        depth: request.depth,
        decode_us: breakdown.total(),
        prefill_us: prompt.parts().total(),
        baseline_single_us: single.parts().total(),
        decode_tps: 1e6 / breakdown.total(),
        prompt_tps: request.workload.ubatch() * 1e6 / per_batch,
        error,
        way,
        kind: bill.model_kind(),
        breakdown,
    }
}
