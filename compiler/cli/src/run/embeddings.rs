//! `tpc run --embeddings`: prints the embeddings of texts.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_diag::{Diagnostic, FormatVersion, codes};
use tpc_engine::embed::{Embedder, Normalisation, Pooling};
use tpc_engine::generate::{PromptOrigin, fits};
use tpc_engine::{Loader, PreparedModel, check_tokens};
use tpc_text::{Markers, SpecialText, Tokenizer};

use super::args::{Args, TokenIds};
use super::asker::{texts, tokenizer};
use super::embedding_args::{EmbeddingArgs, Format};
use crate::execution;
use crate::output::{self, Failure};

/// The output of `tpc run --embeddings` as JSON.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Output<'a> {
    /// `--embd-output-format array`: the vectors only, as llama-embedding prints them.
    Vectors(&'a [Vec<f32>]),
    /// `--embd-output-format json` or `json+`.
    List(List<'a>),
}

/// Embeddings in OpenAI's form.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EmbeddingList")]
pub(crate) struct List<'a> {
    /// Format version.
    tpc: FormatVersion,
    /// Always `list`.
    #[schemars(extend("const" = "list"))]
    object: &'static str,
    /// The embeddings.
    data: Vec<Embedding<'a>>,
    /// The cosine of each pair of embeddings, with `json+`.
    #[serde(rename = "cosineSimilarity", skip_serializing_if = "Option::is_none")]
    similarities: Option<Vec<Vec<f32>>>,
}

/// An embedding.
#[derive(Serialize, JsonSchema)]
struct Embedding<'a> {
    /// Always `embedding`.
    #[schemars(extend("const" = "embedding"))]
    object: &'static str,
    /// The position of the text.
    index: usize,
    /// The vector.
    embedding: &'a [f32],
}

impl<'a> List<'a> {
    fn new(vectors: &'a [Vec<f32>], similarities: Option<Vec<Vec<f32>>>) -> List<'a> {
        let each = vectors.iter().enumerate();
        List {
            tpc: FormatVersion,
            object: "list",
            data: each
                .map(|(index, embedding)| Embedding {
                    object: "embedding",
                    index,
                    embedding,
                })
                .collect(),
            similarities,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let (mut opened, executor) = args.opened()?;
    let tokenizer = tokenizer(args, &opened.file)?;
    let prompts = prompts(args, tokenizer.as_ref())?;
    let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
    opened.embed(longest);
    let ready = opened.plan()?;
    let ids = prompts.iter().flatten().copied();
    check_tokens(ids, ready.n_vocab, "--tokens")?;
    let batch = batch(&ready, longest)?;
    let asked = &args.embedding;
    let file = &opened.file;
    let embedder = Embedder::new(
        file,
        asked.vectors.pooling,
        asked.vectors.embd_normalize,
        ready.bidirectional,
    )?;
    let loader = Loader {
        name: args.subject.path(),
        file,
        model: &ready,
        ctx_size: usize::MAX,
        batch,
        outputs: batch,
        sequences: 1,
        executor: (args.faults)
            .apply((args.engine).executor_options(executor, ready.n_devices())?)?,
    };
    let n_ctx = loader.sequence_ctx_size();
    fits(longest, n_ctx, PromptOrigin::Single)?;
    execution::beyond_training(file, longest).inspect(output::diagnostic);
    let mut session = execution::load(loader, &args.engine)?;
    let mut vectors = Vec::new();
    for prompt in &prompts {
        vectors.extend(embedder.embed(&mut session, prompt, batch)?);
    }
    let whole = match embedder.pooling() {
        Pooling::Rank => "rerank score",
        _ => "embedding",
    };
    print(asked, whole, &vectors)
}

/// Returns the tokens of the prompts, with the markers that the file requests.
fn prompts(args: &Args, tokenizer: Option<&Tokenizer>) -> Result<Vec<Vec<u32>>, Failure> {
    let texts = texts(args)?;
    let encoded = |text: &String| {
        tokenizer.map_or(Vec::new(), |t| {
            t.encode(text, SpecialText::Read, Markers::Add)
        })
    };
    let mut out: Vec<Vec<u32>> = texts.iter().map(encoded).collect();
    out.extend(args.tokens.iter().map(|TokenIds(ids)| ids.clone()));
    if out.iter().any(Vec::is_empty) {
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--prompt", "the prompt is empty");
        return Err(Failure::usage(
            d.help("give a text, or ids such as `--tokens 1,2,3`"),
        ));
    }
    Ok(out)
}

/// Returns the tokens of a batch. A text whose tokens attend to later tokens needs one batch.
fn batch(ready: &PreparedModel, longest: usize) -> Result<usize, Failure> {
    if !ready.embeds {
        let message = "the artefact computes logits, not embeddings";
        let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--embeddings", message);
        return Err(Failure::usage(d.help("give the model instead")));
    }
    let most = ready.ubatch.min(ready.outputs.unwrap_or(usize::MAX));
    let batch = most.min(longest).max(1);
    if ready.bidirectional && batch < longest {
        let message =
            format!("{longest} tokens attend to one another, but a batch holds at most {batch}");
        let d = Diagnostic::new(&crate::codes::BOTH_WAYS, "model", message);
        let cure = format!("compile the model with --ubatch-size {longest}, or give the model");
        return Err(Failure::usage(d.help(cure)));
    }
    Ok(batch)
}

fn print(asked: &EmbeddingArgs, whole: &str, vectors: &[Vec<f32>]) -> Result<(), Failure> {
    match asked.embd_output_format {
        Format::Text => output::result(&table(asked, whole, vectors)),
        Format::Raw => {
            let lines = vectors.iter().map(|v| line(asked, v) + "\n");
            output::result(&lines.collect::<String>())
        }
        Format::Array => output::json(&Output::Vectors(vectors)),
        Format::Json => output::json(&Output::List(List::new(vectors, None))),
        Format::JsonSimilarities => output::json(&Output::List(List::new(
            vectors,
            Some(similarities(vectors)),
        ))),
    }
}

fn line(asked: &EmbeddingArgs, vector: &[f32]) -> String {
    let number = |x: &f32| match asked.vectors.embd_normalize {
        Normalisation::MaxAbsolute => format!("{x:.0}"),
        Normalisation::None | Normalisation::Norm(_) => format!("{x:.6}"),
    };
    vector.iter().map(number).collect::<Vec<_>>().join(" ")
}

/// Returns a line per embedding, and the cosine similarities of several.
fn table(asked: &EmbeddingArgs, whole: &str, vectors: &[Vec<f32>]) -> String {
    let mut out = String::new();
    for (i, vector) in vectors.iter().enumerate() {
        let _ = writeln!(out, "{whole} {i}: {}", line(asked, vector));
    }
    if vectors.len() > 1 && whole == "embedding" {
        out.push_str("\ncosine similarity:\n");
        for row in similarities(vectors) {
            let cells = row.iter().map(|x| format!("{x:6.2}"));
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join(" "));
        }
    }
    out
}

fn similarities(vectors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let both = a.iter().zip(b);
        both.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    let cosine = |a: &[f32], b: &[f32]| match (dot(a, a) * dot(b, b)).sqrt() {
        0.0 => 0.0,
        size => (dot(a, b) / size) as f32,
    };
    let row = |a: &Vec<f32>| vectors.iter().map(|b| cosine(a, b)).collect();
    vectors.iter().map(row).collect()
}
