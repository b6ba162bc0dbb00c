//! Lints of model files, tested on a small Llama with one change.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tpc_core::placement::{Placement, parse_devices};
use tpc_diag::{Diagnostic, Severity};
use tpc_gguf::{Endianness, GgufFile, GgufWriter, MetaValue, StrList};
use tpc_ir::DType;
use tpc_lint::plan_report;
use tpc_lint::{File, for_llama_cpp, graph_of, lint_file};
use tpc_passes::machine::Engine;
use tpc_tests::data;

use super::super::support::plan;
use super::Case;

struct Parts {
    pairs: Vec<(String, MetaValue)>,
    tensors: Vec<(String, DType, Vec<u64>, Vec<u8>)>,
    endianness: Endianness,
}

impl Parts {
    fn of(name: &str) -> Parts {
        let path = data().join("golden").join(name);
        let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
        let header = file.header();
        let entries = header.metadata().entries().iter();
        let tensors = header.tensors().iter();
        Parts {
            pairs: entries.map(|e| (e.key.clone(), e.value.clone())).collect(),
            tensors: tensors
                .map(|t| {
                    let bytes = file.tensor_data(t).expect("it has data").to_vec();
                    (t.name.clone(), t.dtype, t.shape().to_vec(), bytes)
                })
                .collect(),
            endianness: Endianness::Little,
        }
    }

    fn set(&mut self, key: &str, value: impl Into<MetaValue>) {
        self.pairs.retain(|(k, _)| k != key);
        self.pairs.push((key.to_owned(), value.into()));
    }

    /// Adds a tensor with nonzero data.
    fn tensor(&mut self, name: &str, dtype: DType, ne: &[u64]) {
        self.tensors.retain(|(n, ..)| n != name);
        let bytes = dtype.tensor_bytes(ne).expect("whole blocks");
        let bytes = vec![0x11; usize::try_from(bytes).expect("a small tensor")];
        self.tensors
            .push((name.to_owned(), dtype, ne.to_vec(), bytes));
    }

    fn retype(&mut self, name: &str, dtype: DType) {
        let found = self.tensors.iter().find(|(n, ..)| n == name);
        let ne = found.expect("there is such a tensor").2.clone();
        self.tensor(name, dtype, &ne);
    }

    fn bytes(&mut self, name: &str) -> &mut Vec<u8> {
        let found = self.tensors.iter_mut().find(|(n, ..)| n == name);
        &mut found.expect("there is such a tensor").3
    }

    fn write(&self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tpc-lint-{}-{n}.gguf", std::process::id()));
        let mut writer = GgufWriter::new("lint");
        writer.endianness(self.endianness);
        for (key, value) in &self.pairs {
            writer.meta(key, value.clone());
        }
        for (name, dtype, ne, _) in &self.tensors {
            writer.tensor(name, *dtype, ne);
        }
        let out = std::fs::File::create(&path).expect("the folder can be written");
        let data = |i: usize, _: &_, out: &mut dyn Write| out.write_all(&self.tensors[i].3);
        writer.write(out, data).unwrap_or_else(|e| panic!("{e}"));
        path
    }
}

fn findings(parts: &Parts) -> Vec<Diagnostic> {
    let path = parts.write();
    let file = GgufFile::open(&path).unwrap_or_else(|e| panic!("{e}"));
    let model = graph_of(&file);
    let found = lint_file(&File {
        file: &file,
        model: model.as_ref(),
    });
    drop(file);
    let _ = std::fs::remove_file(path);
    found
}

/// Returns the findings of a plan of the small Llama; its last `drafts` blocks draft.
fn planned(drafts: u32) -> Vec<Diagnostic> {
    planned_with(Engine::Tpc, |p| {
        p.set("llama.nextn_predict_layers", drafts);
    })
}

/// Returns the findings of a plan of the small Llama after `edit`, for an engine.
fn planned_with(engine: Engine, edit: impl FnOnce(&mut Parts)) -> Vec<Diagnostic> {
    let mut parts = Parts::of(LLAMA);
    edit(&mut parts);
    let path = parts.write();
    let mut placement = Placement::on(parse_devices("2").expect("a count"));
    placement.engine = engine;
    let (file, compiled) = plan(&path, &placement).expect("it is planned");
    drop(file);
    let _ = std::fs::remove_file(path);
    plan_report("x", &placement, &compiled).diagnostics
}

const LLAMA: &str = "llama-dense-q4_k_m.gguf";

/// A weight with rows of whole blocks of 256.
const DOWN: &str = "blk.0.ffn_down.weight";

fn encoder(parts: &mut Parts) {
    for n in 0..3 {
        parts.tensor(&format!("v.blk.{n}.attn_q.weight"), DType::F32, &[32]);
    }
    parts.tensor("mm.0.weight", DType::F32, &[32]);
}

#[test]
fn an_encoder_is_one_finding_and_an_error_for_llama_cpp() {
    let of = |engine| {
        let found = planned_with(engine, encoder);
        let mut of_code = found.into_iter().filter(|d| d.code == "TPC0315");
        let only = of_code.next().expect("it is found");
        assert_eq!(of_code.next(), None);
        only
    };
    let for_tpc = of(Engine::Tpc);
    assert!(for_tpc.message.contains("4 tensors of an image encoder"));
    assert_eq!(for_tpc.severity, Severity::Note);
    assert_eq!(of(Engine::LlamaCpp).severity, Severity::Error);
    assert_eq!(of(Engine::IkLlamaCpp).severity, Severity::Error);
    let [raised] = for_llama_cpp(vec![for_tpc]).try_into().expect("one");
    assert_eq!(raised.severity, Severity::Error);
}

pub(super) fn cases() -> Vec<Case> {
    let case = |code, edit: fn(&mut Parts)| {
        let fires = move || {
            let mut parts = Parts::of(LLAMA);
            edit(&mut parts);
            findings(&parts)
        };
        Case::new(code, fires, || findings(&Parts::of(LLAMA)))
    };
    let near = |code, edit: fn(&mut Parts), silent: fn(&mut Parts)| {
        let of = |edit: fn(&mut Parts)| {
            move || {
                let mut parts = Parts::of(LLAMA);
                edit(&mut parts);
                findings(&parts)
            }
        };
        Case::new(code, of(edit), of(silent))
    };
    vec![
        case("TPC0600", |p| {
            p.tensor("blk.0.foo.weight", DType::F32, &[32]);
        }),
        near(
            "TPC0600",
            |p| p.tensor("foo.weight", DType::F32, &[32]),
            |p| p.tensor("v.blk.0.attn_q.weight", DType::F32, &[32]),
        ),
        Case::new(
            "TPC0315",
            || planned_with(Engine::Tpc, encoder),
            || planned_with(Engine::Tpc, |_| ()),
        ),
        Case::new(
            "TPC0316",
            || planned_with(Engine::LlamaCpp, |p| p.retype(DOWN, DType::Q6_0)),
            || planned_with(Engine::IkLlamaCpp, |p| p.retype(DOWN, DType::Q6_0)),
        ),
        // A block beyond the block count is reported once.
        near(
            "TPC0600",
            |p| p.tensor("foo.weight", DType::F32, &[32]),
            |p| p.tensor("blk.2.foo.weight", DType::F32, &[32]),
        ),
        case("TPC0601", |p| {
            p.tensor("blk.2.foo.weight", DType::F32, &[32]);
        }),
        Case::new(
            "TPC0602",
            || {
                let mut parts = Parts::of("qwen35-dense-q4_k_m.gguf");
                parts.tensor("blk.0.ssm_in.weight", DType::F32, &[32]);
                findings(&parts)
            },
            || {
                let mut parts = Parts::of(LLAMA);
                parts.set("llama.nextn_predict_layers", 1_u32);
                findings(&parts)
            },
        ),
        Case::new("TPC0330", || planned(1), || planned(0)),
        case("TPC0603", |p| {
            let tokens: StrList = ["a", "b"].into_iter().collect();
            p.set("tokenizer.ggml.tokens", tokens);
        }),
        near(
            "TPC0604",
            |p| p.set("tokenizer.ggml.eos_token_id", 128_u32),
            |p| p.set("tokenizer.ggml.eos_token_id", 127_u32),
        ),
        case("TPC0605", |p| {
            p.set("tokenizer.ggml.token_type", vec![1_i32; 3]);
        }),
        near("TPC0606", |p| scaling(p, 64, 2.0), |p| scaling(p, 64, 4.0)),
        near(
            "TPC0607",
            |p| p.set("llama.rope.scaling.type", "yarn"),
            |p| scaling(p, 64, 4.0),
        ),
        near(
            "TPC0608",
            |p| {
                p.tensors.retain(|(n, ..)| n != "rope_freqs.weight");
                p.set("llama.context_length", 131_072_u32);
            },
            |p| {
                p.tensors.retain(|(n, ..)| n != "rope_freqs.weight");
                p.set("llama.context_length", 131_072_u32);
                p.set("llama.rope.freq_base", 500_000.0_f32);
            },
        ),
        case("TPC0609", |p| {
            p.tensor("token_embd.weight", DType::Q4K, &[256, 128]);
            p.tensor("output.weight", DType::Q4K, &[256, 128]);
        }),
        near(
            "TPC0610",
            |p| p.tensor("blk.0.attn_q.weight", DType::Q8_0, &[256, 512]),
            |p| p.tensor("blk.0.attn_q.weight", DType::Q6K, &[256, 512]),
        ),
        near(
            "TPC0611",
            |p| p.tensor("blk.0.ffn_down.weight", DType::Q4K, &[768, 256]),
            |p| p.tensor("blk.0.ffn_down.weight", DType::Q8_0, &[768, 256]),
        ),
        case("TPC0612", |p| p.set("general.alignment", 8_u32)),
        near(
            "TPC0613",
            |p| p.tensor("blk.0.ffn_gate_inp.weight", DType::Q8_0, &[256, 8]),
            |p| p.tensor("blk.0.ffn_gate_inp.weight", DType::F32, &[256, 8]),
        ),
        case("TPC0614", |p| {
            p.tensor("blk.0.attn_norm.weight", DType::F16, &[256]);
        }),
        case("TPC0615", |p| {
            p.bytes("blk.0.attn_norm.weight")[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        }),
        case("TPC0616", |p| p.bytes("blk.0.attn_q.weight").fill(0)),
        near(
            "TPC0617",
            |p| p.set("general.file_type", 30_u32),
            |p| p.set("general.file_type", 18_u32),
        ),
        case("TPC0618", |p| p.set("general.quantization_version", 1_u32)),
        case("TPC0618", |p| {
            p.pairs.retain(|(k, _)| k != "general.quantization_version");
        }),
        case("TPC0619", |p| p.endianness = Endianness::Big),
        near(
            "TPC0620",
            |p| p.set("llama.attention.head_count_vk", 2_u32),
            |p| p.set("llama.vision.anything", 2_u32),
        ),
        case("TPC0621", |p| p.set("qwen2.rope.freq_base", 1e6_f32)),
    ]
}

fn scaling(parts: &mut Parts, original: u32, factor: f32) {
    parts.set("llama.rope.scaling.type", "yarn");
    parts.set("llama.rope.scaling.original_context_length", original);
    parts.set("llama.rope.scaling.factor", factor);
}

#[test]
fn a_defect_of_every_layer_is_told_with_its_layers() {
    let mut parts = Parts::of(LLAMA);
    for layer in 0..2 {
        parts.tensor(&format!("blk.{layer}.attn_norm.weight"), DType::F16, &[256]);
    }
    let found = tpc_lint::merge(findings(&parts));
    let norms: Vec<_> = found
        .iter()
        .filter(|f| f.diagnostic.code == "TPC0614")
        .collect();
    assert_eq!(norms.len(), 1, "{found:?}");
    assert_eq!(
        (norms[0].count, norms[0].layers.as_slice()),
        (2, &[0, 1][..])
    );
}
