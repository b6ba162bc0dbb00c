use tpc_ir::DType;

use super::*;
use tpc_gguf::{MetaArray, MetaValue, parse};
use tpc_models::{ARCHS, Drafting, GraphResult, LowerOptions, lower};

fn zeros(dtype: DType, values: &[f32], out: &mut Vec<u8>) -> Result<(), String> {
    let bytes = dtype.bytes(values.len() as u64).ok_or("partial block")?;
    out.resize(out.len() + bytes as usize, 0);
    Ok(())
}

fn plain(dtype: DType, values: &[f32], out: &mut Vec<u8>) -> Result<(), String> {
    if dtype != DType::F32 {
        return Err("only f32".into());
    }
    out.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    Ok(())
}

fn error(text: &str) -> String {
    let e = match Spec::parse(text) {
        Ok(spec) => Model::new(spec, &zeros).err().unwrap(),
        Err(e) => e,
    };
    assert_eq!(e.code, "TPC0408", "{text}: {e}");
    format!(
        "{e}; {}",
        e.help.as_ref().map(ToString::to_string).unwrap_or_default()
    )
}

fn shapes(text: &str) -> Vec<(String, DType, [u64; 4])> {
    let model = Model::new(Spec::parse(text).unwrap(), &zeros).unwrap();
    let tensors = model.header().tensors().iter();
    tensors.map(|t| (t.name.clone(), t.dtype, t.ne)).collect()
}

fn shape(text: &str, tensor: &str) -> Option<[u64; 4]> {
    let found = shapes(text).into_iter().find(|(name, ..)| name == tensor);
    found.map(|(_, _, ne)| ne)
}

#[test]
fn every_preset_is_a_model_that_uses_all_its_tensors() {
    let presets = presets();
    assert!(
        ARCHS
            .iter()
            .all(|a| presets.iter().any(|p| p.name == format!("{}-tiny", a.name)))
    );
    for preset in presets {
        let model = Model::new(Spec::parse(&preset.name).unwrap(), &zeros).unwrap();
        let options = LowerOptions {
            cache_type_k: DType::F16,
            cache_type_v: DType::F16,
            ctx_size: 64,
            drafting: Drafting::None,
            result: GraphResult::Own,
        };
        let lowered = lower(model.header(), &options).unwrap();
        assert_eq!(
            lowered.summary.unused,
            Vec::<String>::new(),
            "{}",
            preset.name
        );
        let data = model.spec().contents == Contents::Data;
        assert_eq!(data, preset.name.ends_with("-tiny"), "{}", preset.name);
        let header = if data { "llama-tiny" } else { "llama-8b" };
        assert_eq!(Spec::parse(header).unwrap().contents, model.spec().contents);
    }
}

#[test]
fn published_sizes_have_the_published_number_of_parameters() {
    let billions = |preset: &str| {
        let elements = shapes(preset)
            .iter()
            .map(|(_, _, ne)| ne.iter().product::<u64>())
            .sum::<u64>();
        elements as f64 / 1e9
    };
    for (preset, expected) in [
        ("llama-8b", 8.03),
        ("llama-70b", 70.55),
        ("llama-405b", 405.85),
        ("mixtral-8x7b", 46.70),
        ("qwen2.5-7b", 7.62),
        ("qwen3-30b-a3b", 30.53),
        ("gpt-oss-120b", 116.83),
        ("gpt-oss-20b", 20.91),
        ("phi-4", 14.66),
    ] {
        let found = billions(preset);
        assert!((found - expected).abs() < 0.01, "{preset}: {found}");
    }
}

#[test]
fn the_same_specification_gives_the_same_bytes() {
    let bytes = |text: &str| {
        let mut out = Vec::new();
        let model = Model::new(Spec::parse(text).unwrap(), &plain).unwrap();
        model.write(&mut out).unwrap();
        let header = parse(&out, out.len() as u64, "m.gguf").unwrap();
        assert_eq!(
            header.data_offset + header.data_bytes() as u64,
            out.len() as u64
        );
        (header.data_offset as usize, out)
    };
    let text = "qwen3:layers=1,embd=64,vocab=7,type=f32,seed=5";
    let (offset, a) = bytes(text);
    assert_eq!(a, bytes(text).1);
    let (_, other) = bytes(&text.replace("seed=5", "seed=6"));
    assert_ne!(a[offset..], other[offset..]);
    // A change of this weight means that every generated model changes.
    assert_eq!(a[offset..offset + 4], FIRST_WEIGHT.to_le_bytes());
}

#[test]
fn rows_repeat() {
    let bytes = |text: &str| {
        let mut out = Vec::new();
        let model = Model::new(Spec::parse(text).unwrap(), &plain).unwrap();
        model.write(&mut out).unwrap();
        let header = parse(&out, out.len() as u64, "m.gguf").unwrap();
        let embedding = header.tensor("token_embd.weight").unwrap();
        let at = embedding.offset as usize;
        out[at..at + 7 * 64 * 4].to_vec()
    };
    let text = "qwen3:layers=1,embd=64,vocab=7,type=f32";
    let (all, some) = (bytes(text), bytes(&format!("{text},rows=3")));
    let row = 64 * 4;
    assert_eq!(some[..3 * row], all[..3 * row]);
    assert_eq!(some[3 * row..6 * row], some[..3 * row]);
    assert_eq!(some[6 * row..], some[..row]);
    assert_eq!(bytes(&format!("{text},rows=9")), all);
}

const FIRST_WEIGHT: u32 = 0x3C91_702A;

#[test]
fn a_header_has_no_data() {
    let text = "llama:layers=126,embd=16384,heads=128,kv_heads=8,ff=53248,vocab=128256,type=mixed,header=1";
    let mut out = Vec::new();
    let model = Model::new(Spec::parse(text).unwrap(), &plain).unwrap();
    model.write(&mut out).unwrap();
    assert!(out.len() < 200_000, "{}", out.len());
    assert_eq!(
        parse(&out, out.len() as u64, "m.gguf")
            .unwrap()
            .tensors()
            .len(),
        9 * 126 + 3
    );
}

#[test]
fn choices_decide_which_tensors_there_are() {
    let has = |text: &str, tensor: &str| shape(text, tensor).is_some();
    assert!(has("llama:", "output.weight"));
    assert!(!has("llama:tied=1", "output.weight"));
    assert!(!has("llama:", "blk.0.attn_q.bias"));
    assert!(has("llama:biases=1", "blk.0.attn_q.bias"));
    assert_eq!(
        shape("llama:fused=1,kv_heads=2", "blk.1.attn_qkv.weight"),
        Some([256, 384, 1, 1])
    );
    assert!(!has("llama:fused=1", "blk.1.attn_q.weight"));
    assert_eq!(
        shape("phi3:ff=96", "blk.1.ffn_up.weight"),
        Some([256, 192, 1, 1])
    );
    assert_eq!(
        shape("phi3:ff=96,fused=0", "blk.1.ffn_up.weight"),
        Some([256, 96, 1, 1])
    );
    assert!(has("phi3:fused=0", "blk.1.attn_k.weight"));
    let fused = "qwen3moe:fused=1,ff=96,experts=5";
    assert_eq!(
        shape(fused, "blk.0.ffn_gate_up_exps.weight"),
        Some([256, 192, 5, 1])
    );
}

#[test]
fn sizes_may_differ_between_layers() {
    let text = "llama:layers=3,heads=4/2/4,kv_heads=2/2/1,head_dim=16,ff=64/96/32";
    assert_eq!(shape(text, "blk.1.attn_q.weight"), Some([256, 32, 1, 1]));
    assert_eq!(shape(text, "blk.2.attn_k.weight"), Some([256, 16, 1, 1]));
    assert_eq!(shape(text, "blk.2.ffn_down.weight"), Some([32, 256, 1, 1]));
}

#[test]
fn types_are_those_of_quantised_files() {
    let of = |text: &str, tensor: &str| {
        let found = shapes(text).into_iter().find(|(name, ..)| name == tensor);
        found.unwrap().1
    };
    let mixed = "llama:layers=8,biases=1";
    assert_eq!(of(mixed, "output.weight"), DType::Q6K);
    assert_eq!(of(mixed, "token_embd.weight"), DType::Q4K);
    assert_eq!(of("llama:tied=1", "token_embd.weight"), DType::Q6K);
    assert_eq!(of(mixed, "blk.0.attn_v.weight"), DType::Q6K);
    assert_eq!(of(mixed, "blk.1.attn_v.weight"), DType::Q4K);
    assert_eq!(of(mixed, "blk.7.ffn_down.weight"), DType::Q6K);
    assert_eq!(of(mixed, "blk.0.ffn_up.weight"), DType::Q4K);
    assert_eq!(of(mixed, "blk.0.attn_norm.weight"), DType::F32);
    assert_eq!(of(mixed, "blk.0.attn_q.bias"), DType::F32);
    assert_eq!(
        of("llama:ff=100,type=q4_0", "blk.0.ffn_down.weight"),
        DType::F16
    );
    assert_eq!(of("gpt-oss-tiny", "blk.0.ffn_up_exps.weight"), DType::Mxfp4);
    assert_eq!(of("gpt-oss-tiny", "blk.0.ffn_up_exps.bias"), DType::F32);
    assert_eq!(of("gpt-oss-tiny", "blk.0.ffn_gate_inp.weight"), DType::F32);
    assert_eq!(of("gpt-oss-tiny", "blk.0.attn_q.weight"), DType::Q8_0);
    assert_eq!(of("gpt2:type=q8_0", "position_embd.weight"), DType::F32);
}

#[test]
fn presets_can_be_changed() {
    let spec = Spec::parse("llama-8b:layers=3,type=q8_0").unwrap();
    assert_eq!((spec.layers, spec.embd), (3, 4096));
    assert_eq!(spec.file_type, FileType::Uniform(DType::Q8_0));
    assert_eq!(spec.name, "llama-8b");
    assert_eq!(Spec::parse("llama:").unwrap().name, "llama-synth");
}

#[test]
fn metadata_can_be_given_by_their_keys() {
    let text = "gemma3:layers=2,window=8,gemma3.attention.sliding_window_pattern=true/false,gemma3.rope.freq_base=1e6,general.name=x";
    let model = Model::new(Spec::parse(text).unwrap(), &zeros).unwrap();
    let value = |key: &str| model.header().metadata().value(key).unwrap().clone();
    assert_eq!(value("gemma3.rope.freq_base"), MetaValue::F32(1e6));
    assert_eq!(value("general.name"), MetaValue::Str("x".into()));
    let pattern = value("gemma3.attention.sliding_window_pattern");
    assert_eq!(pattern, vec![true, false].into());
}

#[test]
fn lists_may_be_of_one_number_or_of_wide_ones() {
    let text = "llama:llama.a=3/,llama.b=u64:3/4294967296,llama.c=3";
    let model = Model::new(Spec::parse(text).unwrap(), &zeros).unwrap();
    let value = |key: &str| model.header().metadata().value(key).unwrap().clone();
    assert_eq!(value("llama.a"), vec![3u32].into());
    let wide = MetaArray::U64(vec![3, 1 << 32]);
    assert_eq!(value("llama.b"), MetaValue::Array(wide));
    assert_eq!(value("llama.c"), 3u32.into());
}

#[test]
fn what_is_wrong_is_named_with_what_was_expected() {
    for (text, expected) in [
        ("llama-tinny", "did you mean `llama-tiny`?"),
        ("llama", "write `llama-tiny`, or `llama:key=value,…`"),
        ("lama:embd=64", "did you mean `llama`?"),
        ("whisper:", "starcoder2"),
        ("llama:layer=2", "did you mean `layers`?"),
        ("llama:kvheads=2", "did you mean `kv_heads`?"),
        ("llama:qwen2.rope.freq_base=1", "unknown key"),
        ("llama:layers", "not of the form key=value"),
        ("llama:layers=2,layers=3", "given twice"),
        ("llama:layers=0", "an integer from 1 to 2048"),
        ("llama:layers=-1", "an integer from 1 to 2048"),
        (
            "llama:embd=99999999999999999999999",
            "an integer from 1 to 2147483647",
        ),
        (
            "llama:heads=4/4/4",
            "heads lists 3 layers, but the model has layers=2",
        ),
        (
            "llama:heads=4/",
            "heads=`` is not an integer from 1 to 2147483647",
        ),
        (
            "llama:heads=8,kv_heads=3",
            "kv_heads=3 with heads=8 in layer 0",
        ),
        ("llama:embd=100", "embd=100 with heads=8"),
        ("llama:head_dim=3", "head_dim must be even"),
        ("llama:window=4", "llama lacks a sliding window"),
        ("qwen3:experts=4", "qwen3 is not a mixture of experts"),
        ("llama:experts_used=4", "without experts"),
        (
            "qwen3moe:experts=4,experts_used=5",
            "experts_used=5 with experts=4",
        ),
        ("llama:type=q9_k", "q4_k"),
        ("llama:type=i32", "is not a type of weights"),
        ("llama:tied=yes", "neither 0 nor 1"),
        ("llama-8b:header=0", "header=1 to write only the header"),
        (
            "llama:llama.rope.scaling.type=odd",
            "invalid sizes for this model",
        ),
        (
            "llama:embd=2147483647,heads=2147483647,ff=2147483647,head_dim=2147483646,header=1",
            "too large",
        ),
    ] {
        let found = error(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    let long = "x".repeat(1 << 17);
    assert!(error(&long).len() < 200);
    assert!(error(&format!("llama:{}=1", &long[..1 << 15])).len() < 400);
}

#[test]
fn a_type_that_nobody_encodes_is_refused_before_anything_is_written() {
    let spec = |text: &str| Spec::parse(text).unwrap();
    let e = Model::new(spec("llama:type=q8_0"), &plain).err().unwrap();
    assert_eq!(e.to_string(), "type: tpc cannot write q8_0: only f32");
    assert!(Model::new(spec("llama:type=q8_0,header=1"), &plain).is_ok());
}

#[test]
fn a_full_disk_is_reported() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space left"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let model = Model::new(Spec::parse("llama-tiny").unwrap(), &zeros).unwrap();
    let e = model.write(Full).unwrap_err();
    assert_eq!(
        (e.code.id, e.to_string().as_str()),
        ("TPC0402", "output: no space left")
    );
}

/// Returns the metadata keys of a specification's file.
fn keys(text: &str) -> Vec<String> {
    let spec = Spec::parse(text).unwrap();
    let pairs = crate::metadata::pairs(&spec);
    pairs.into_iter().map(|(key, _)| key).collect()
}

#[test]
fn files_have_the_keys_that_llama_cpp_requires() {
    const OF_ALL: [&str; 3] = ["context_length", "embedding_length", "block_count"];
    let table = include_str!("required-keys.txt");
    let rows = table.lines().filter(|l| !l.starts_with('#'));
    let rows: Vec<(&str, &str)> = rows.map(|l| l.split_once(':').unwrap()).collect();
    let mut lacks = Vec::new();
    for arch in ARCHS {
        let (_, required) = rows.iter().find(|(name, _)| *name == arch.name).unwrap();
        for spec in [format!("{}-tiny", arch.name), format!("{}:", arch.name)] {
            let found = keys(&spec);
            for key in OF_ALL.into_iter().chain(required.split_whitespace()) {
                let full = [format!("{}.{key}", arch.name), key.to_owned()];
                if !full.iter().any(|k| found.contains(k)) {
                    lacks.push(format!("{spec} lacks {key}"));
                }
            }
        }
    }
    assert!(lacks.is_empty(), "{}", lacks.join("\n"));
}

#[test]
fn keys_of_an_architecture_fit_the_sizes_given() {
    let text = "nemotron_h:layers=5,heads=4,ff=256,embd=128,head_dim=32";
    let model = Model::new(Spec::parse(text).unwrap(), &zeros).unwrap();
    let list = |key: &str| {
        let list = model.header().metadata().get_array_u64(key);
        list.unwrap().unwrap()
    };
    assert_eq!(list("nemotron_h.attention.head_count_kv"), [0, 4, 0, 0, 4]);
    // Only the preset has layers without a network.
    let model = Model::new(Spec::parse("nemotron_h-tiny").unwrap(), &zeros).unwrap();
    let widths = model.header().metadata();
    let widths = widths.get_array_u64("nemotron_h.feed_forward_length");
    assert_eq!(widths.unwrap().unwrap(), [0, 0, 512]);
    assert!(shape("cogvlm:", "blk.1.vis_up.weight").is_some());
    assert_eq!(shape("jamba:layers=1", "blk.0.ssm_in.weight"), None);
    assert!(
        keys("gemma3:")
            .iter()
            .all(|k| !k.ends_with("sliding_window"))
    );
}
