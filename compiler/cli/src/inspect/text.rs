use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Selection, order};
use tpc_core::format::bytes;
use tpc_gguf::{GgufFile, TensorInfo};
use tpc_models::read_by_draft;

fn data(file: &GgufFile) -> &'static str {
    match (
        file.has_data(),
        file.is_elsewhere(),
        file.missing().is_empty(),
    ) {
        (true, ..) => "with data",
        (_, true, _) => "header read by address",
        (_, _, false) => "unfinished",
        _ => "header only",
    }
}

/// Formats the file, metadata and totals by type; also the tensors if `listed`.
pub(super) fn render(file: &GgufFile, selection: &Selection<'_>, listed: bool) -> String {
    let header = selection.header;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "GGUF v{}, {}, {} file(s), {}, alignment {}, data at byte {}\n",
        header.version,
        order(file.endianness()),
        file.shards().len(),
        data(file),
        header.alignment,
        header.data_offset
    );
    let _ = writeln!(out, "{} metadata entries", header.metadata().len());
    for e in &selection.entries {
        let _ = writeln!(out, "  {} = {}", e.key, e.value.preview());
    }
    let arch = header.metadata().get_str("general.architecture");
    if let Some(reads) = arch.ok().flatten().and_then(read_by_draft) {
        let _ = writeln!(
            out,
            "\ndrafts tokens for another model, of which it reads {reads}"
        );
    }
    let mut by_type: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    for t in &selection.tensors {
        let sum = by_type.entry(t.dtype.name()).or_default();
        *sum = (sum.0 + 1, sum.1 + t.elements(), sum.2 + t.bytes);
    }
    let params: u64 = selection.tensors.iter().map(|t| t.elements()).sum();
    let total: u64 = selection
        .tensors
        .iter()
        .fold(0, |sum, t| sum.saturating_add(t.bytes));
    let of_all = match (selection.tensors.len(), header.tensors().len()) {
        (some, all) if some < all => format!(" of {all}"),
        _ => String::new(),
    };
    let _ = writeln!(
        out,
        "\n{}{of_all} tensors, {params} parameters, {total} bytes ({})",
        selection.tensors.len(),
        bytes(total)
    );
    for (name, (n, elements, size)) in by_type {
        let _ = writeln!(
            out,
            "  {name}: {n} tensors, {elements} parameters, {size} bytes"
        );
    }
    if listed {
        out.push('\n');
        for t in &selection.tensors {
            let _ = writeln!(out, "  {}", line(t));
        }
    }
    out
}

fn line(t: &TensorInfo) -> String {
    let shape: Vec<String> = t.shape().iter().map(ToString::to_string).collect();
    format!(
        "{} {} [{}] {} bytes at {} of file {}",
        t.name,
        t.dtype,
        shape.join(", "),
        t.bytes,
        t.offset,
        t.shard + 1
    )
}
