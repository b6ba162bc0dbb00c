//! Tests of the reader and the writer, and shared files.

mod defects;
mod elsewhere;
mod getters;
mod hostile;
mod published;
mod round_trip;
mod shards;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tpc_ir::DType;

use super::{GgufWriter, MetaArray, StrList};

fn sample() -> GgufWriter {
    let mut w = GgufWriter::new("sample.gguf");
    w.meta("general.architecture", "llama")
        .meta("a.u8", 200u8)
        .meta("a.i8", -3i8)
        .meta("a.u16", 60_000u16)
        .meta("a.i16", -30_000i16)
        .meta("a.u32", 4_000_000_000u32)
        .meta("a.i32", -5i32)
        .meta("a.u64", u64::MAX)
        .meta("a.i64", i64::MIN)
        .meta("a.f32", 1.5f32)
        .meta("a.f64", -0.1f64)
        .meta("a.bool", true)
        .meta("a.empty", "")
        .meta("v.u16", vec![1u16, 2, 3])
        .meta("v.f32", vec![0.5f32, -0.5])
        .meta("v.bool", vec![true, false])
        .meta(
            "v.str",
            ["<s>", "", "þorn"].into_iter().collect::<StrList>(),
        )
        .meta(
            "v.nested",
            MetaArray::Array(vec![MetaArray::I8(vec![-1]), MetaArray::U64(vec![])]),
        )
        .tensor("token_embd.weight", DType::Q4K, &[256, 3])
        .tensor("output_norm.weight", DType::F32, &[3])
        .tensor("blk.0.ffn_down_exps.weight", DType::Q8_0, &[32, 2, 5])
        .tensor("blk.0.conv.weight", DType::F16, &[1, 2, 3, 1]);
    w
}

/// Returns a file; all bytes of tensor `i` are `i + 1`.
fn bytes_of(writer: &GgufWriter) -> Vec<u8> {
    let mut out = Vec::new();
    writer
        .write(&mut out, |i, tensor, sink| {
            sink.write_all(&vec![
                u8::try_from(i + 1).unwrap();
                usize::try_from(tensor.bytes).unwrap()
            ])
        })
        .unwrap();
    out
}

fn header_of(writer: &GgufWriter) -> Vec<u8> {
    let mut out = Vec::new();
    writer.write_header(&mut out).unwrap();
    out
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tpc-gguf-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A panic here would hide a panic of the test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
