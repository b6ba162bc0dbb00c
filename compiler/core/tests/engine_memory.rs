//! Compares estimated memory with llama.cpp's own figures (`tests/data/engine-memory`, from `tests/engine/memory.py`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tpc_core::pipeline::{Origin, ways};
use tpc_core::placement::{
    DeviceList, HostExperts, Machine, Placement, SplitMode, parse_cache_type,
};
use tpc_gguf::GgufFile;
use tpc_ir::{Device, Place};
use tpc_passes::footprint::Footprint;
use tpc_passes::machine::Engine;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    devices: usize,
    ctx: u64,
    cards: Option<String>,
    split_mode: Option<String>,
    tensor_split: Option<Vec<f64>>,
    ubatch: Option<u64>,
    parallel: Option<u64>,
    #[serde(default)]
    unified: bool,
    #[serde(default)]
    serves: bool,
    cache: Option<String>,
    flash_attention: Option<bool>,
    #[serde(default)]
    kv_on_host: bool,
    n_cpu_moe: Option<u64>,
}

/// Bytes at a place. `None` for caches if llama.cpp reports only their sum over devices.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Bytes {
    weights: u64,
    caches: Option<u64>,
    compute: u64,
}

#[derive(Debug, Deserialize)]
struct Row {
    header: String,
    placement: Options,
    devices: Vec<Bytes>,
    host: Bytes,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn placement(o: &Options) -> Placement {
    let list = match &o.cards {
        Some(cards) => DeviceList::parse(cards).expect("cards"),
        None => DeviceList::Count(o.devices),
    };
    let machine = Machine::of(&list).expect("a machine");
    let mut out = Placement::on(machine.devices);
    out.topology = machine.topology;
    out.engine = Engine::LlamaCpp;
    out.split_mode = match o.split_mode.as_deref() {
        Some("tensor") => SplitMode::Tensor,
        _ => SplitMode::Layer,
    };
    let equal = vec![1.0; o.devices];
    out.tensor_split = Some(o.tensor_split.clone().unwrap_or(equal));
    out.ctx_size = Some(o.ctx);
    out.ubatch_size = o.ubatch.unwrap_or(Placement::UBATCH);
    out.parallel = o.parallel.unwrap_or(1);
    out.kv_on_host = o.kv_on_host;
    if let Some(cache) = &o.cache {
        out.cache_type_k = parse_cache_type("-ctk", cache).expect("a type");
        out.cache_type_v = out.cache_type_k;
    }
    if let Some(n) = o.n_cpu_moe {
        out.host_experts = HostExperts::First(n);
    }
    out.engine_options.unified = o.unified;
    out.engine_options.serves = o.serves;
    out.flash_attention = o.flash_attention.unwrap_or(true);
    out
}

fn found(folder: &Path, row: &Row) -> BTreeMap<Place, Footprint> {
    let file = GgufFile::open(folder.join(&row.header)).expect("a header");
    let placement = placement(&row.placement);
    let prepared = Origin::File(&file).prepare(&placement).expect("a model");
    let way = &ways(&placement)[0];
    let prints = prepared.engine_footprints(&placement, way).expect("a plan");
    prints.expect("llama.cpp's memory is counted")
}

/// Computes the relative difference from llama.cpp's figure in percent.
fn off(found: u64, reported: u64) -> f64 {
    100.0 * (found as f64 / (reported as f64).max(1.0) - 1.0)
}

fn compare(folder: &Path, rows: &Path) -> usize {
    let text = std::fs::read_to_string(rows).expect("rows");
    let rows: Vec<Row> = serde_json::from_str(&text).expect("rows");
    let mut wrong = Vec::new();
    for row in &rows {
        let prints = found(folder, row);
        let places = (0..row.devices.len()).map(|d| Place::Device(Device::new(d)));
        let reported = row.devices.iter().chain([&row.host]);
        for (place, reported) in places.chain([Place::Host]).zip(reported) {
            let print = prints[&place];
            let caches = print.kv + print.state;
            let total = match reported.caches {
                Some(stored) => (print.total(), reported.weights + stored + reported.compute),
                None => (print.total() - caches, reported.weights + reported.compute),
            };
            let off_total = off(total.0, total.1);
            let detail = format!(
                "{} {:?} {place:?}: {off_total:+.2} % (weights {:+.2}, caches {:+.2}, compute {:+.2}: {} MiB)",
                row.header,
                row.placement,
                off(print.weights, reported.weights),
                reported.caches.map_or(0.0, |c| off(caches, c)),
                off(print.compute, reported.compute),
                reported.compute >> 20
            );
            if std::env::var_os("SHOW").is_some() {
                println!("{detail}");
            }
            if !(-2.0..=5.0).contains(&off_total) {
                wrong.push(detail);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} places:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    rows.len()
}

#[test]
fn memory_is_within_five_per_cent_and_hardly_below() {
    let data = root().join("tests/data");
    let n = compare(
        &data.join("headers"),
        &data.join("engine-memory/shipped.json"),
    );
    assert!(n >= 60, "{n} rows");
}

#[test]
fn other_headers_too_where_they_are() {
    let Some(headers) = std::env::var_os("TPC_HEADERS") else {
        return;
    };
    let rows = std::env::var_os("TPC_MEMORY").expect("rows");
    compare(Path::new(&headers), Path::new(&rows));
}
