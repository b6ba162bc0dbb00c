//! Captures as deep as real models, made by repeating layers: tpc finds equal layers and plans them once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tpc_ggml::capture::{self, CapturedGraph};
use tpc_passes::machine::{Topology, Workload};
use tpc_passes::plan::{PlanRequest, plan};

use super::{carry_out, stem, text};

/// The approximate number of layers.
const DEPTH: usize = 64;

/// A capture's records, and the range of all layers but the last.
struct Layers {
    records: Vec<Json>,
    /// The first record of the first layer; `to` is the first record of the last layer.
    from: usize,
    to: usize,
    n: usize,
}

fn id(record: &Json) -> i64 {
    record["id"].as_i64().expect("a number")
}

fn is_leaf(record: &Json) -> bool {
    record["op"] == "NONE"
}

fn refers(record: &Json) -> impl Iterator<Item = i64> + '_ {
    let src = record["src"].as_array().into_iter().flatten();
    src.chain([&record["view"]]).filter_map(Json::as_i64)
}

impl Layers {
    fn new(text: &str, captured: &CapturedGraph) -> Layers {
        let parse = |l: &str| serde_json::from_str(l).expect("JSON");
        let records: Vec<Json> = text.lines().map(parse).collect();
        let last = captured.n_layer - 1;
        let lines_of = |layer: u32| {
            let lines = captured
                .graph
                .insts()
                .filter(move |(_, d)| d.layer == Some(layer) && !d.op.is_leaf());
            lines.map(|(i, _)| captured.lines[i.index()] - 1)
        };
        let first = |layer| lines_of(layer).min().expect("a layer computes something");
        Layers {
            from: first(0),
            to: first(last),
            n: last as usize,
            records,
        }
    }

    fn position(&self, of: i64) -> usize {
        let found = self.records.iter().position(|r| id(r) == of);
        found.expect("ids refer to records")
    }

    fn inside(&self) -> BTreeMap<i64, usize> {
        (self.from..self.to)
            .map(|i| (id(&self.records[i]), i))
            .collect()
    }

    fn read_outside(&self) -> BTreeSet<i64> {
        let before = self.records[..self.from].iter();
        let outside = before.chain(&self.records[self.to..]);
        outside.flat_map(refers).collect()
    }

    /// Returns the records that all repetitions share: inputs, leaves that are also read outside, and views of them.
    fn common(&self, inside: &BTreeMap<i64, usize>, read: &BTreeSet<i64>) -> BTreeSet<usize> {
        let mut common: BTreeSet<usize> = BTreeSet::new();
        for i in self.from..self.to {
            let record = &self.records[i];
            let of_common = |r: i64| match inside.get(&r) {
                Some(j) => common.contains(j),
                None => r < 0 || is_leaf(&self.records[self.position(r)]),
            };
            let given = is_leaf(record) && record["flags"].as_u64().unwrap_or(0) & 1 == 1;
            let leaf = is_leaf(record) && read.contains(&id(record));
            let view = record["op"] == "VIEW" && refers(record).all(of_common);
            if given || leaf || view {
                common.insert(i);
            }
        }
        common
    }

    /// Returns the ids that the first layer reads instead of an earlier layer's output.
    fn entry(&self, inside: &BTreeMap<i64, usize>) -> Vec<i64> {
        let mut entry: Vec<i64> = self.records[self.from..self.to]
            .iter()
            .flat_map(refers)
            .filter(|&r| r >= 0 && !inside.contains_key(&r))
            .filter(|&r| !is_leaf(&self.records[self.position(r)]))
            .collect();
        entry.sort_unstable();
        entry.dedup();
        entry
    }

    fn repeated(&self, times: usize) -> String {
        let inside = self.inside();
        let read = self.read_outside();
        let common = self.common(&inside, &read);
        let shared = |i: usize| common.contains(&i);
        // The last layer reads only one computed value, the residual stream.
        let stream = inside
            .iter()
            .filter(|(id, i)| read.contains(id) && !shared(**i));
        let mut stream: Vec<i64> = stream.map(|(id, _)| *id).collect();
        stream.sort_unstable();
        let [stream] = stream[..] else {
            panic!("the layers hand on {stream:?}");
        };
        let entry = self.entry(&inside);
        let mut out = self.records[..self.to].to_vec();
        let mut next = 1_000_000;
        let mut current = stream;
        for _ in 1..times {
            let mut renamed: BTreeMap<i64, i64> = entry.iter().map(|&e| (e, current)).collect();
            for i in self.from..self.to {
                if shared(i) {
                    continue;
                }
                let mut record = self.records[i].clone();
                renamed.insert(id(&record), next);
                record["id"] = json!(next);
                let name = record["name"].as_str().unwrap_or_default();
                record["name"] = json!(format!("{name}.{next}"));
                next += 1;
                let rename = |r: &Json| {
                    let r = r.as_i64().unwrap_or(-1);
                    json!(renamed.get(&r).copied().unwrap_or(r))
                };
                record["src"] = record["src"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(rename)
                    .collect();
                record["view"] = rename(&record["view"]);
                out.push(record);
            }
            current = renamed[&stream];
        }
        for record in &self.records[self.to..] {
            let mut record = record.clone();
            let rename = |r: &Json| {
                if *r == json!(stream) {
                    json!(current)
                } else {
                    r.clone()
                }
            };
            record["src"] = record["src"]
                .as_array()
                .into_iter()
                .flatten()
                .map(rename)
                .collect();
            record["view"] = rename(&record["view"]);
            out.push(record);
        }
        out.iter().map(|r| format!("{r}\n")).collect()
    }
}

/// Reading, inference and planning take some tenths of a second; the limit allows for a busy machine.
const LIMIT: Duration = Duration::from_secs(5);

fn check(path: &Path) {
    let name = stem(path);
    let text = text(path);
    let captured = capture::read(&text, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let layers = Layers::new(&text, &captured);
    let times = DEPTH.div_ceil(layers.n);
    let deep = layers.repeated(times);
    let kinds = |captured: &CapturedGraph| {
        let names = (0..8).map(|i| format!("cpu:{i}")).collect();
        let workload = Workload::new(4096, 4096, 512, 1);
        plan(
            &captured.graph,
            &PlanRequest::new(Topology::default(), workload, names),
        )
        .unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let start = Instant::now();
    let again = capture::read(&deep, &name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let planned = kinds(&again);
    let took = start.elapsed();
    let (own, known) = (planned.choice.distinct, kinds(&captured).choice.distinct);
    println!(
        "| {name} | {} | {} | {own} | {known} | {:.0} ms |",
        again.n_layer,
        again.graph.insts().len(),
        took.as_secs_f64() * 1e3
    );
    assert!(again.notes.is_empty(), "{name}: {:?}", again.notes);
    assert_eq!(again.n_layer as usize, layers.n * times + 1, "{name}");
    assert_eq!(own, known, "{name}: kinds of layers");
    assert!(took < LIMIT, "{name}: {took:?}");
    carry_out(planned, 8).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Captures that interleave the records of layers: the next layer's states are read earlier.
const INTERLEAVED: [&str; 4] = [
    "granitehybrid-dense",
    "lfm2-dense",
    "mamba2-dense",
    "nemotron_h_moe-dense",
];

#[test]
fn deep_captures_plan_each_kind_of_layer_once() {
    let mut deep = 0;
    for path in tpc_tests::captures() {
        if !INTERLEAVED.contains(&stem(&path).as_str()) {
            check(&path);
            deep += 1;
        }
    }
    assert!(deep >= 6, "the repository has six captures");
}
