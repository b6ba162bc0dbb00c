//! The stages of planning, on headers of published models and 8 devices: read and plan a file, prove the programs,
//! print and parse their text.
//!
//! `cargo bench -p tpc-benches -- plan/llama-3.1-405b` runs one.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tpc_core::pipeline::{CompiledModel, compile};
use tpc_core::placement::{Placement, parse_devices};
use tpc_gguf::GgufFile;
use tpc_ir::text;
use tpc_passes::prove::prove;

/// Model names and header files.
const MODELS: [(&str, &str); 3] = [
    ("llama-3.1-8b", "llama-3.1-8b-instruct-q4_k_m.header.gguf"),
    ("llama-3.1-405b", "llama-3.1-405b-q4_k_m.header.gguf"),
    ("deepseek-v3.1", "deepseek-v3.1-q4_k_m.header.gguf"),
];

fn header(file: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["../data/headers", "../../../shared/models"]
        .iter()
        .map(|folder| root.join(folder).join(file))
        .find(|path| path.is_file())
}

fn planned(path: &Path) -> CompiledModel {
    let devices = parse_devices("8").unwrap_or_else(|d| panic!("{d}"));
    let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
    compile(&file, &Placement::on(devices)).unwrap_or_else(|d| panic!("{}", d[0]))
}

fn stages(c: &mut Criterion) {
    for (name, file) in MODELS {
        let Some(path) = header(file) else {
            println!("{name}: {file} is not here: skipped");
            continue;
        };
        let compiled = planned(&path);
        let printed = compiled.programs.to_string();
        let mut group = c.benchmark_group(name);
        group
            .sample_size(10)
            .measurement_time(Duration::from_secs(3));
        group.bench_function("plan", |b| b.iter(|| black_box(planned(&path))));
        group.bench_function("prove", |b| {
            b.iter(|| black_box(prove(&compiled.model.graph, &compiled.programs)).is_ok());
        });
        group.throughput(Throughput::Bytes(printed.len() as u64));
        group.bench_function("print", |b| {
            b.iter(|| black_box(compiled.programs.to_string()))
        });
        group.bench_function("parse", |b| {
            b.iter(|| black_box(text::parse(&printed)).is_ok())
        });
        group.finish();
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
