//! Compares two plans of a model: from its description, and from llama.cpp's captured graph. Both must split the same
//! axes of the same weights into the same ranges, with the same sums.

use std::collections::BTreeMap;

use tpc_ggml::capture;
use tpc_ir::{DType, Graph, Op, RANK, Verified, stage};
use tpc_passes::machine::{Topology, Workload};
use tpc_passes::plan::{PlanRequest, plan};
use tpc_passes::shard::shard;
use tpc_tests::{captures, goldens};

use super::support::{placement, plan as plan_file, rewritten, verified};

/// Returns the graph with the captures' types: exact weights, and caches of one type.
fn alike(graph: &Graph) -> Verified<stage::Model> {
    let mut out = graph.clone();
    let values: Vec<_> = out.values().map(|(v, _)| v).collect();
    for v in values {
        if out.value(v).ty.dtype.is_integer() {
            continue;
        }
        out.value_mut(v).ty.dtype = DType::F32;
    }
    verified(out)
}

type Split = Vec<Vec<Vec<(u64, u64)>>>;

fn planned(graph: &Verified<stage::Model>, devices: usize) -> (BTreeMap<String, Split>, usize) {
    let names = (0..devices).map(|d| format!("dev{d}")).collect();
    let workload = Workload::new(4096, 4096, 512, 1);
    let request = PlanRequest::new(Topology::default(), workload, names);
    let p = plan(graph, &request).unwrap_or_else(|e| panic!("{e}"));
    let eager = shard(&p.graph, &p.factors, &p.analysis, &p.choice);
    let eager = verified(eager.unwrap_or_else(|e| panic!("{e}")));
    let sharded = rewritten(&eager, &request).graph;
    let mut weights = BTreeMap::new();
    let mut sums = 0;
    for (_, data) in sharded.insts() {
        match &data.op {
            Op::AllReduce(_) => sums += 1,
            Op::Weight(w) => {
                let v = sharded.value(data.results[0]);
                let runs = |axis: usize, rank: usize| {
                    let runs = v
                        .sharding
                        .intervals(axis, &v.ty.dims[axis], &sharded.classes, rank);
                    let runs = runs.expect("weights have constant sizes");
                    runs.iter().map(|r| (r.start, r.len)).collect()
                };
                let split = (0..RANK)
                    .map(|axis| match v.sharding.axes[axis] {
                        None => Vec::new(),
                        Some(_) => (0..devices).map(|rank| runs(axis, rank)).collect(),
                    })
                    .collect();
                weights.insert(w.tensor.clone(), split);
            }
            _ => {}
        }
    }
    (weights, sums)
}

#[test]
fn native_graphs_and_those_of_the_engine_are_planned_alike() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    let graphs = captures();
    for path in goldens() {
        let Some((_, native)) = plan_file(&path, &placement(1)) else {
            continue;
        };
        let stem = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        // `llama-dense-q4_k_m` was captured as `llama-dense`.
        let captured = graphs.iter().filter(|g| {
            let name = g
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            stem.strip_prefix(&name)
                .is_some_and(|rest| rest.starts_with('-') && !rest[1..].contains('-'))
        });
        let Some(captured) = captured.max_by_key(|g| g.as_os_str().len()) else {
            continue;
        };
        let text = std::fs::read_to_string(captured).expect("a capture");
        let captured = capture::read(&text, &stem).unwrap_or_else(|e| panic!("{stem}: {e}"));
        for devices in [2, 3, 4] {
            let (own, own_sums) = planned(&alike(&native.model.graph), devices);
            let (engines, sums) = planned(&alike(&captured.graph), devices);
            let split = own.values().flatten().any(|axis| !axis.is_empty());
            assert!(split && own_sums > 0, "{stem}: nothing is split");
            let shared = own
                .iter()
                .filter(|(name, _)| engines.contains_key(*name))
                .count();
            assert!(
                shared * 10 >= own.len() * 9,
                "{stem}: {shared} of {} weights",
                own.len()
            );
            let other: Vec<String> = own
                .iter()
                .filter(|(name, split)| engines.get(*name).is_some_and(|e| e != *split))
                .map(|(name, split)| format!("{name} {split:?} not {:?}", engines[name]))
                .collect();
            if !other.is_empty() || own_sums != sums {
                wrong.push(format!(
                    "{stem} on {devices}: sums {own_sums} not {sums}; {} of {shared} differ: {}",
                    other.len(),
                    other.first().map_or("", String::as_str)
                ));
            }
            compared += 1;
        }
    }
    println!("{compared} compared");
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let least = if tpc_tests::shared().is_some() {
        150
    } else {
        3
    };
    assert!(compared >= least, "only {compared} compared");
}
