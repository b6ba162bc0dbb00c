use tpc_ir::op::InputKind;
use tpc_ir::{Graph, Op, Value};

/// Returns, per instruction, the number of tokens after the batch that the instruction needs.
pub(crate) fn lookahead_tokens(graph: &Graph) -> Vec<u32> {
    let mut out = vec![0; graph.insts().len()];
    for (inst, data) in graph.insts() {
        let of = |v: &Value| out[graph.value(*v).def.0.index()];
        let needed = data.operands.iter().map(of).max();
        out[inst.index()] = match &data.op {
            Op::Input(input) => match input.kind {
                InputKind::NextTokens(ahead) => ahead,
                _ => 0,
            },
            _ => needed.unwrap_or(0),
        };
    }
    out
}
