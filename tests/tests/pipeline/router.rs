//! Compares the selected experts with a plain implementation.

use crate::support::verified;
use tpc_ir::op::InputKind;
use tpc_ir::{Bindings, Output, Symbol, Verified, stage};
use tpc_runtime::{Interpreter, Options, Tensor};

use super::support::{FileWeights, placement};
use super::synthetic::make;

const EXPERTS: usize = 12;
const USED: usize = 4;
const GROUPS: usize = 4;
const GROUPS_USED: usize = 2;
const TOKENS: usize = 24;

fn largest(of: &[f64], k: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..of.len()).collect();
    order.sort_by(|&a, &b| of[b].total_cmp(&of[a]));
    order.truncate(k);
    order
}

/// Returns the best experts, best first, from the best groups. A group's score is that of its two best experts.
fn expected(scores: &[f64]) -> Vec<usize> {
    const SIZE: usize = EXPERTS / GROUPS;
    let total = |group: &[f64]| largest(group, 2).iter().map(|&i| group[i]).sum();
    let totals: Vec<f64> = scores.chunks(SIZE).map(total).collect();
    let groups = largest(&totals, GROUPS_USED);
    let mut kept = scores.to_vec();
    for (i, score) in kept.iter_mut().enumerate() {
        if !groups.contains(&(i / SIZE)) {
            *score = f64::NEG_INFINITY;
        }
    }
    largest(&kept, USED)
}

#[test]
fn tokens_go_to_experts_of_the_best_groups() {
    let file = make(&format!(
        "bailingmoe2:bailingmoe2.leading_dense_block_count=0,layers=1,embd=48,ff=40,vocab={TOKENS},type=f32,biases=1,experts={EXPERTS},experts_used={USED},\
         bailingmoe2.expert_group_count={GROUPS},bailingmoe2.expert_group_used_count={GROUPS_USED}"
    ));
    let compiled =
        tpc_core::pipeline::compile(&file, &placement(1)).unwrap_or_else(|e| panic!("{}", e[0]));
    let mut graph = compiled.model.graph.into_graph();
    for name in ["ffn_moe_probs_biased-0", "ffn_moe_topk-0"] {
        let (value, _) = graph
            .values()
            .find(|(_, v)| v.name == name)
            .expect("the router's values have names");
        graph.outputs.push(Output::Named(name.to_owned(), value));
    }
    let graph: Verified<stage::Model> = verified(graph);
    let mut interpreter = Interpreter::new(&graph, &FileWeights(&file), Options::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let count = TOKENS as u64;
    let bindings = [Symbol::NTokens, Symbol::NKv, Symbol::NCtx, Symbol::NOutputs]
        .into_iter()
        .fold(Bindings::default(), |b, symbol| b.with(symbol, count));
    let out = interpreter
        .run(&bindings, &mut |kind, _| match kind {
            InputKind::Mask => Tensor::reals_of([TOKENS, TOKENS, 1, 1], vec![0.0; TOKENS * TOKENS]),
            _ => Tensor::ints_of([TOKENS, 1, 1, 1], (0..TOKENS as i64).collect()),
        })
        .unwrap_or_else(|e| panic!("{e}"));
    let scores = out["ffn_moe_probs_biased-0"].reals().expect("real");
    let ids = out["ffn_moe_topk-0"].ints().expect("integers");
    let mut restricted = 0;
    for (scores, ids) in scores.chunks(EXPERTS).zip(ids.chunks(USED)) {
        let ids: Vec<usize> = ids.iter().map(|&id| id as usize).collect();
        assert_eq!(ids, expected(scores));
        restricted += usize::from(ids != largest(scores, USED));
    }
    assert!(restricted > 0, "the groups made no difference");
}
