//! Measures the steps of the search for advice: time per instruction of the model's graph.
//!
//! `cargo run --release -p tpc-tests --bin step-cost -- HEADER.gguf …`

use std::time::Instant;

use tpc_core::pipeline::{Origin, ways};
use tpc_core::placement::SplitMode;
use tpc_gguf::GgufFile;
use tpc_ir::DType;

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let out = work();
    (start.elapsed().as_secs_f64() * 1e3, out)
}

fn row(file: &GgufFile, path: &str, words: &[&str]) -> Option<()> {
    let words: Vec<String> = words.iter().map(|&w| w.to_owned()).collect();
    let placement = tpc::placement(&words, DType::F16, SplitMode::Auto).ok()?;
    let (prepare, prepared) = timed(|| Origin::File(file).prepare(&placement).ok());
    let prepared = prepared?;
    let insts = prepared.model.graph.insts().len();
    for way in ways(&placement) {
        let (sketch, _) = timed(|| prepared.sketch(&placement, &way).ok());
        let (once, draft) = timed(|| prepared.draft_once(&placement, &way).ok());
        let draft = draft?;
        let (prints, fits) = timed(|| draft.fits());
        let copy = prepared.clone();
        let (prove, compiled) = timed(|| draft.proved(copy));
        println!(
            "{path:40} {:30} {:8} insts {insts:5} prepare {prepare:6.0} sketch {sketch:6.0} draft {once:6.0} memory {prints:6.0} prove {prove:6.0} fits {fits} {}",
            words.join(" "),
            way.name,
            compiled.proof.is_ok()
        );
    }
    Some(())
}

fn main() {
    for path in std::env::args().skip(1) {
        let Ok(file) = GgufFile::open(&path) else {
            println!("{path}: not a model");
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or(&path);
        for devices in ["3090", "2x3090", "4x3090", "8x3090", "16x3090"] {
            for host in ["0", "20"] {
                let words = ["--devices", devices, "-c", "65536", "-ncmoe", host];
                row(&file, name, &words);
            }
        }
    }
}
