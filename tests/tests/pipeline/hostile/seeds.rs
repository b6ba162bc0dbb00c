//! Valid files of every kind that tpc reads, and ways to damage them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use tpc_gguf::{MetaArray, MetaValue};
use tpc_runtime::Checksum;

use super::{Model, Scratch, captures, flip, mangle};
use crate::random::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Gguf,
    Capture,
    Topology,
    Settings,
    Golden,
    Plan,
    Artefact,
    Session,
    LaunchDump,
    Text,
    /// An existing file that tpc overwrites.
    Over,
    /// An output file, which tpc does not read.
    Written,
    /// A file of a command that is not attacked: another command reads such files in the same way, or only developers
    /// write them.
    Elsewhere,
}

const TOPOLOGY: &str = r#"Topology(
    devices: [
        (name: "a", memory: Some(24000000000), bandwidth: 936e9, flops: 142e12),
        (name: "b", memory: None, bandwidth: 500e9, flops: 60e12),
    ],
    link: (bandwidth: 25e9, latency_us: 8.0),
    links: [],
    host: (name: "host", memory: None, bandwidth: 60e9, flops: 1e12),
    host_link: (bandwidth: 25e9, latency_us: 10.0),
)
"#;

/// Settings with every key, for a folder of damaged files.
const SETTINGS: &str = r#"[lint]
files = ["healthy.gguf", "*.gguf"]
devices = "2x3090"
deny = ["warnings", "TPC0312"]
allow = ["TPC0310"]

[[lint.override]]
files = ["heal*.gguf", "[a-z]/**/?.gguf"]
devices = "3"
deny = ["TPC0313"]
allow = []
"#;

pub(super) struct Seeds {
    models: Vec<Model>,
    captures: Vec<Vec<serde_json::Value>>,
    topologies: Vec<String>,
    golden: Vec<u8>,
    plan: String,
    pub(super) model: PathBuf,
    /// An undamaged captured graph.
    pub(super) capture: PathBuf,
    pub(super) artefact: PathBuf,
    compiled: Vec<u8>,
    /// Sessions of that model: a text, and a conversation.
    sessions: Vec<Vec<u8>>,
}

impl Seeds {
    pub(super) fn new(scratch: &Scratch) -> Seeds {
        let model = scratch.0.join("healthy.gguf");
        let mut bytes = Vec::new();
        let zeros = |_: usize, t: &tpc_gguf::TensorInfo, out: &mut dyn std::io::Write| {
            let data = &mut std::io::Read::take(std::io::repeat(0), t.bytes);
            std::io::copy(data, &mut { out }).map(drop)
        };
        let mut small = Model::small("llama");
        small.pairs.extend(vocabulary());
        small.writer().write(&mut bytes, zeros).expect("writes");
        fs::write(&model, bytes).expect("a temporary file");
        let artefact = scratch.0.join("healthy.tpc");
        let words = ["tpc", "compile", "-c", "64", "-ub", "8"].map(OsString::from);
        let files = [model.clone().into(), "-o".into(), artefact.clone().into()];
        let _ = tpc::run(words.into_iter().chain(files));
        let mut topologies = vec![TOPOLOGY.to_owned()];
        let attacks = tpc_tests::shared().map(|s| s.join("attacks"));
        for path in tpc_tests::files(&Vec::from_iter(attacks), ".ron") {
            topologies.extend(fs::read_to_string(path));
        }
        let goldens = tpc_tests::files(&[tpc_tests::data().join("golden")], ".logits");
        Seeds {
            models: super::small_models(),
            captures: captures::loaded(),
            topologies,
            golden: goldens
                .first()
                .and_then(|p| fs::read(p).ok())
                .unwrap_or_default(),
            plan: plan_of(&model),
            model,
            capture: tpc_tests::data().join("graphs/llama-dense.jsonl"),
            compiled: fs::read(&artefact).expect("it was compiled"),
            artefact,
            sessions: sessions(scratch),
        }
    }

    pub(super) fn damaged(&self, input: Input, rng: &mut Rng) -> Vec<u8> {
        match input {
            Input::Gguf => {
                let mut model = rng.pick(&self.models).clone();
                if rng.one_in(2) {
                    super::mutate(&mut model, rng);
                    return model.bytes().unwrap_or_default();
                }
                let mut bytes = model.bytes().unwrap_or_default();
                flip(&mut bytes, rng);
                bytes
            }
            Input::Capture => captures::mutated(&self.captures, rng).into_bytes(),
            Input::Topology => {
                numbers(&mangle(rng.pick::<String>(&self.topologies), rng), rng).into_bytes()
            }
            Input::Settings => {
                let mut bytes = numbers(&mangle(SETTINGS, rng), rng).into_bytes();
                if rng.one_in(4) {
                    flip(&mut bytes, rng);
                }
                bytes
            }
            Input::Plan => {
                let text = numbers(&numbers(&self.plan, rng), rng);
                if rng.one_in(2) {
                    return text.into_bytes();
                }
                let mut bytes = text.into_bytes();
                flip(&mut bytes, rng);
                bytes
            }
            Input::Golden => {
                let mut bytes = self.golden.clone();
                bytes.truncate(16 + rng.range(0, 4096) as usize);
                if !bytes.is_empty() {
                    flip(&mut bytes, rng);
                }
                bytes
            }
            Input::Artefact => {
                let mut bytes = self.compiled.clone();
                flip(&mut bytes, rng);
                bytes
            }
            Input::Session => {
                let mut bytes = rng.pick::<Vec<u8>>(&self.sessions).clone();
                flip(&mut bytes, rng);
                if let (true, Some(end)) = (rng.one_in(2), bytes.len().checked_sub(8)) {
                    // Correct the checksum, so that tpc checks the content.
                    let sum = Checksum::of(&bytes[..end]);
                    bytes[end..].copy_from_slice(&sum.to_le_bytes());
                }
                bytes
            }
            Input::LaunchDump => super::dumps::damaged(rng),
            Input::Text => {
                let mut bytes = mangle("a b c\n\n abc <s> ca\tb\r\nbb\n", rng).into_bytes();
                if rng.one_in(2) {
                    flip(&mut bytes, rng);
                }
                bytes
            }
            Input::Over => vec![rng.next() as u8; rng.range(0, 64) as usize],
            Input::Written | Input::Elsewhere => Vec::new(),
        }
    }
}

fn vocabulary() -> Vec<(String, MetaValue)> {
    let tokens = ["<unk>", "<s>", "</s>", "\u{2581}"].map(str::to_owned);
    let letters = ('a'..='z').chain('0'..='9').map(String::from);
    let tokens: Vec<String> = tokens.into_iter().chain(letters).collect();
    let types: Vec<i32> = (0..tokens.len()).map(|i| [2, 3, 3, 1][i.min(3)]).collect();
    let scores: Vec<f32> = (0..tokens.len()).map(|i| -(i as f32)).collect();
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    vec![
        (key("model"), "llama".into()),
        (
            key("tokens"),
            MetaValue::Array(MetaArray::Str(tokens.iter().map(String::as_str).collect())),
        ),
        (key("token_type"), MetaValue::Array(MetaArray::I32(types))),
        (key("scores"), MetaValue::Array(MetaArray::F32(scores))),
    ]
}

/// Returns session files of the undamaged model: a text, and a conversation.
fn sessions(scratch: &Scratch) -> Vec<Vec<u8>> {
    let [model, saved] = ["healthy.gguf", "healthy.session"].map(|f| scratch.0.join(f));
    let of = |asked: &[&str]| {
        let words = ["tpc", "run", "-c", "256", "-ub", "8", "-n", "2", "-t", "1"];
        let words = words.iter().chain(asked).map(OsString::from);
        let files = [model.clone().into(), "--save".into(), saved.clone().into()];
        let _ = tpc::run(words.chain(files));
        let bytes = fs::read(&saved).expect("it was saved");
        fs::remove_file(&saved).expect("a temporary file");
        bytes
    };
    vec![
        of(&["--raw", "-p", "a b c"]),
        of(&["--system-prompt", "ab", "-p", "c"]),
    ]
}

fn plan_of(model: &Path) -> String {
    let file = tpc_gguf::GgufFile::open(model).expect("a healthy file");
    let devices = tpc_core::placement::parse_devices("2").expect("a count");
    let placement = tpc_core::placement::Placement::on(devices);
    let compiled = tpc_core::pipeline::compile(&file, &placement).expect("a plan");
    let report = tpc_lint::plan_report("healthy.gguf", &placement, &compiled);
    serde_json::to_string(&report).expect("JSON")
}

fn numbers(text: &str, rng: &mut Rng) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let starts: Vec<usize> = (0..text.len())
        .filter(|&i| text[..].is_char_boundary(i) && text[i..].starts_with(digits))
        .filter(|&i| i == 0 || !text[..i].ends_with(digits))
        .collect();
    if starts.is_empty() || rng.one_in(3) {
        return text.to_owned();
    }
    let start = *rng.pick(&starts);
    let end = text[start..]
        .find(|c: char| !c.is_ascii_digit())
        .map_or(text.len(), |n| start + n);
    let others = [
        "0",
        "-1",
        "1",
        "1e400",
        "1e-400",
        "NaN",
        "inf",
        "18446744073709551616",
        "9223372036854775807",
        "0.5",
    ];
    format!("{}{}{}", &text[..start], rng.pick(&others), &text[end..])
}
