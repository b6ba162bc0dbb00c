//! States whose new content is computed as a whole, as in recurrent models.

use tpc_ir::verify::verify;
use tpc_ir::{Graph, Group, Op, stage, text};
use tpc_passes::Users;
use tpc_passes::factors::{Analysis, Factors, GraphFacts};
use tpc_passes::place::place_on_group;
use tpc_passes::plan::{Choice, Refusal, options_for, refusal};
use tpc_passes::shard::shard;

use super::support::verified;

fn graph(body: &str) -> Graph {
    let text = format!("tpir 1\ngraph \"g\"\n{body}");
    let graph = text::parse(&text)
        .unwrap_or_else(|e| panic!("{}", e[0]))
        .graph;
    verify(&graph).unwrap_or_else(|e| panic!("{}", e[0]));
    graph
}

#[test]
fn a_pending_sum_is_reduced_before_a_state_keeps_it() {
    let graph = graph(
        "v0: f32[8, 6] @host = weight {tensor = \"up\"}\n\
         v1: f32[6, 8] @host = weight {tensor = \"down\"}\n\
         v2: f32[8] @host = state {name = \"s\"}\n\
         v3: f32[6] @host = mul_mat v0, v2\n\
         v4: f32[8] @host = mul_mat v1, v3\n\
         output \"y\" = v3\n\
         output state v2 = v4\n",
    );
    let graph = verified(place_on_group(&graph, &["a".to_owned(), "b".to_owned()]));
    let factors = Factors::infer(&graph);
    let analysis = Analysis::new(&graph, &factors);
    let users = Users::of_graph(&graph);
    let mut width = Vec::new();
    factors.space.leaves(factors.axes[0][1], &mut width);
    let facts = GraphFacts {
        graph: &graph,
        factors: &factors,
        analysis: &analysis,
        users: &users,
    };
    let options = options_for(facts, width[0], (Group::new(0), &[1.0, 1.0]));
    let choice = Choice::from_options(options);
    let sharded = shard(&graph, &factors, &analysis, &choice).unwrap_or_else(|e| panic!("{e}"));
    let sharded = verified::<stage::Sharded>(sharded);
    let reduces = sharded
        .insts()
        .filter(|(_, i)| matches!(i.op, Op::AllReduce(_)));
    assert_eq!(reduces.count(), 1, "{sharded}");
}

#[test]
fn a_state_whose_new_content_has_other_factors_stays_whole() {
    let graph = graph(
        "v0: f32[12] @host = state {name = \"s\"}\n\
         v1: f32[4, 3] @host = reshape v0 {dims = [4, 3]}\n\
         v2: f32[3, 4] @host = weight {tensor = \"w\"}\n\
         v3: f32[12] @host = reshape v2 {dims = [12]}\n\
         output \"y\" = v1\n\
         output state v0 = v3\n",
    );
    let graph = place_on_group(&graph, &["a".to_owned(), "b".to_owned()]);
    let factors = Factors::infer(&graph);
    assert!(!factors.opaque.is_empty());
    let analysis = Analysis::new(&graph, &factors);
    for (value, data) in graph.values() {
        for &axis in &factors.axes[value.index()] {
            let mut leaves = Vec::new();
            factors.space.leaves(axis, &mut leaves);
            for leaf in leaves {
                let why = refusal(&factors, &analysis, leaf);
                assert!(
                    matches!(why, Some(Refusal::Whole(_))),
                    "{}: {why:?}",
                    data.ty
                );
            }
        }
    }
}

#[test]
fn tables_of_integers_are_not_added_up() {
    let graph = graph(
        "v0: i32[4, 64] @host = weight {tensor = \"table\"}\n\
         v1: i32[n_tokens] @host = input {kind = tokens}\n\
         v2: i32[4, n_tokens] @host = get_rows v0, v1\n\
         output \"y\" = v2\n",
    );
    let graph = place_on_group(&graph, &["a".to_owned(), "b".to_owned()]);
    let factors = Factors::infer(&graph);
    let analysis = Analysis::new(&graph, &factors);
    let mut rows = Vec::new();
    factors.space.leaves(factors.axes[0][1], &mut rows);
    let why = refusal(&factors, &analysis, rows[0]);
    assert!(matches!(why, Some(Refusal::Whole(_))), "{why:?}");
}
