//! What the engine that a plan is for refuses.

use tpc_ggml::llama_cpp::{Limit, TensorSplitUse, graph_split_limit, tensor_split_limit};
use tpc_ir::{Graph, Op};
use tpc_passes::machine::Engine;
use tpc_passes::place::PlaceOverride;

use super::Model;
use crate::placement::{Placement, ResolvedPlacement};

/// Why an engine does not split a model's tensors as a placement asks; `None` where nothing is known against it.
pub(crate) fn tensor_limit(
    engine: Engine,
    model: &Model,
    placement: &Placement,
    resolved: &ResolvedPlacement,
) -> Option<Limit> {
    let arch = model.summary.arch;
    match engine {
        Engine::Tpc => None,
        Engine::LlamaCpp => tensor_split_limit(arch, used(&model.graph, placement, resolved)),
        Engine::IkLlamaCpp => graph_split_limit(arch),
    }
}

/// What a placement asks of a tensor split.
fn used(graph: &Graph, placement: &Placement, resolved: &ResolvedPlacement) -> TensorSplitUse {
    let overrides = &resolved.layer_placement.overrides;
    let on_host = |name: &str| {
        let named = |(v, p): (&tpc_ir::Value, &PlaceOverride)| {
            let weight = match graph.def_op(*v) {
                Op::Weight(w) => w.tensor.as_str(),
                _ => "",
            };
            *p == PlaceOverride::Host && weight.contains(name)
        };
        overrides.iter().any(named)
    };
    let slopes = |(_, i): (tpc_ir::Inst, &tpc_ir::InstData)| matches!(&i.op, Op::FlashAttn(a) if a.max_bias > 0.0);
    TensorSplitUse {
        devices: placement.devices.len(),
        caches_on_host: placement.kv_on_host,
        experts_on_host: resolved.host_expert_tensors > 0 || on_host("_exps"),
        attention_on_host: on_host(".attn_"),
        slopes: graph.insts().any(slopes),
    }
}
