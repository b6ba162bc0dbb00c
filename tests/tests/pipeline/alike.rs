//! Equal layers are planned once.

use tpc_ir::{Op, stage, text};
use tpc_passes::machine::{Link, Topology, Workload};
use tpc_passes::plan::{PlanRequest, plan};
use tpc_passes::shard::shard;

use super::support::verified;

/// Two equal layers with unsplittable residual values between them. Then the inside of one layer is needed whole.
const LAYERS: &str = "tpir 1
graph \"g\"
v0: f32[8, n_tokens] @host = input {name = \"x\"}

layer 0
v1: f32[8, n_tokens] @host = soft_max v0 {scale = 1.0}
v2: f32[8, 16] @host = weight {tensor = \"up.0\"}
v3: f32[16, n_tokens] @host = mul_mat v2, v1
v4: f32[16, 8] @host = weight {tensor = \"down.0\"}
v5: f32[8, n_tokens] @host = mul_mat v4, v3

layer 1
v6: f32[8, n_tokens] @host = soft_max v5 {scale = 1.0}
v7: f32[8, 16] @host = weight {tensor = \"up.1\"}
v8: f32[16, n_tokens] @host = mul_mat v7, v6
v9: f32[16, 8] @host = weight {tensor = \"down.1\"}
v10: f32[8, n_tokens] @host = mul_mat v9, v8

layer none
v11: f32[8, n_tokens] @host = soft_max v10 {scale = 1.0}
v12: f32[16, n_tokens] @host = soft_max INSIDE {scale = 1.0}
output \"y\" = v11
output \"z\" = v12
";

/// True for the first and the second layer if it is split when the inside of one layer is needed whole.
fn split(inside: &str) -> [bool; 2] {
    let parsed = text::parse(&LAYERS.replace("INSIDE", inside));
    let graph = verified(parsed.unwrap_or_else(|e| panic!("{}", e[0])).graph);
    let names = vec!["a".to_owned(), "b".to_owned()];
    let mut request = PlanRequest::new(Topology::default(), Workload::new(8, 8, 8, 1), names);
    request.topology.link = Link::new(1e18, 0.0);
    let p = plan(&graph, &request).unwrap_or_else(|e| panic!("{e}"));
    let sharded =
        shard(&p.graph, &p.factors, &p.analysis, &p.choice).unwrap_or_else(|e| panic!("{e}"));
    let sharded = verified::<stage::Sharded>(sharded);
    ["up.0", "up.1"].map(|name| {
        let of = |op: &Op| matches!(op, Op::Weight(w) if w.tensor == name);
        let mut values = sharded.values();
        let (_, weight) = values
            .find(|(v, _)| of(sharded.def_op(*v)))
            .expect("it is there");
        weight.sharding.axes[1].is_some()
    })
}

#[test]
fn a_layer_is_not_split_as_its_like_where_others_need_it_whole() {
    assert_eq!(split("v3"), [false, true]);
    assert_eq!(split("v8"), [true, false]);
}
