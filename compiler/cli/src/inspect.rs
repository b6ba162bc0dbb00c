//! `tpc inspect`: the content of a GGUF file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use super::output::{self, Failure};
use tpc_core::format::bytes;
use tpc_gguf::{Endianness, GgufFile, TensorInfo};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A GGUF file, or any shard of one.
    model: PathBuf,
    /// List every tensor with its offset.
    #[arg(long, short)]
    verbose: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let file =
        GgufFile::open(&args.model).map_err(|e| Failure::from_diagnostics(vec![e.into()]))?;
    let header = file.header();
    let mut out = String::new();
    let data = if file.has_data() {
        "with data"
    } else {
        "header only"
    };
    let _ = writeln!(
        out,
        "GGUF v{}, {}, {} file(s), {data}, alignment {}, data at byte {}\n",
        header.version,
        match file.endianness() {
            Endianness::Little => "little-endian",
            Endianness::Big => "big-endian",
        },
        file.shards().len(),
        header.alignment,
        header.data_offset
    );
    let _ = writeln!(out, "{} metadata entries", header.metadata().len());
    for e in header.metadata().entries() {
        let _ = writeln!(out, "  {} = {}", e.key, e.value.preview());
    }
    let mut by_type: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for t in header.tensors() {
        let sum = by_type.entry(t.dtype.name()).or_default();
        *sum = (sum.0 + 1, sum.1 + t.elements(), sum.2 + t.bytes);
    }
    let params: u64 = header.tensors().iter().map(TensorInfo::elements).sum();
    let total = u64::try_from(header.data_bytes()).unwrap_or(u64::MAX);
    let _ = writeln!(
        out,
        "\n{} tensors, {params} parameters, {total} bytes ({})",
        header.tensors().len(),
        bytes(total)
    );
    for (name, (n, elements, size)) in by_type {
        let _ = writeln!(
            out,
            "  {name}: {n} tensors, {elements} parameters, {size} bytes"
        );
    }
    if args.verbose {
        out.push('\n');
        for t in header.tensors() {
            let shape: Vec<String> = t.shape().iter().map(ToString::to_string).collect();
            let _ = writeln!(
                out,
                "  {} {} [{}] {} bytes at {} of file {}",
                t.name,
                t.dtype,
                shape.join(", "),
                t.bytes,
                t.offset,
                t.shard + 1
            );
        }
    }
    output::result(&out)
}
