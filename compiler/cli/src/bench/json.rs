//! The results as an array of objects, with llama-bench's keys if they exist.

use schemars::JsonSchema;
use serde::Serialize;

use super::measure::Measured;
use super::statistics::{median, spread};
use super::subject::Subject;

/// The speed of a test.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Test")]
pub(crate) struct Row {
    /// The model's size and type, as llama-bench's `model_type`.
    model: String,
    /// The file.
    model_filename: String,
    /// The size of the model's tensors, in bytes.
    size: u64,
    /// The model's parameters.
    params: u64,
    /// The executor.
    backend: &'static str,
    /// The devices.
    devices: String,
    /// The split mode.
    split_mode: String,
    /// CPU threads per device.
    threads: usize,
    #[serde(flatten)]
    same: Same,
    /// Tokens of the prompt.
    n_prompt: usize,
    /// Generated tokens.
    n_gen: usize,
    /// Tokens in the cache before the test.
    n_depth: usize,
    /// Sequences that run at once.
    n_sequences: usize,
    /// The mean time, in nanoseconds.
    avg_ns: u64,
    /// The standard deviation of the time, in nanoseconds.
    stddev_ns: u64,
    /// The mean speed, in tokens per second.
    avg_ts: f64,
    /// The standard deviation of the speed, in tokens per second.
    stddev_ts: f64,
    /// The time of each repetition, in nanoseconds.
    samples_ns: Vec<u64>,
    /// The speed of each repetition, in tokens per second.
    samples_ts: Vec<f64>,
    /// The time per kernel, with `--profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profile: Vec<Kernel>,
    /// The results of the program of `--compare`.
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Compare>,
}

/// Keys with llama-bench's names.
#[derive(Clone, Serialize, JsonSchema)]
struct Same {
    /// The model's size and type.
    model_type: String,
    /// CPU threads per device.
    n_threads: usize,
    /// The largest batch, in tokens.
    n_ubatch: usize,
    /// The largest batch, in tokens.
    n_batch: usize,
    /// The element type of the K cache.
    type_k: String,
    /// The element type of the V cache.
    type_v: String,
}

/// The results of another program, timed in alternation. Sample `i` is of the same round as tpc's sample `i`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Comparison")]
struct Compare {
    /// The program's command.
    command: String,
    /// The program's speed in each round, in tokens per second.
    samples_ts: Vec<f64>,
    /// The median of tpc's speeds.
    median_ts: f64,
    /// The median of the program's speeds.
    other_median_ts: f64,
    /// The median of the rounds' speed ratios; minimum and maximum follow.
    ratio: f64,
    /// The smallest ratio.
    ratio_min: f64,
    /// The largest ratio.
    ratio_max: f64,
}

fn compare(m: &Measured) -> Option<Compare> {
    let other = m.other.as_ref()?;
    let ratios = other.ratios(&m.speeds());
    Some(Compare {
        command: other.command.clone(),
        samples_ts: other.speeds.clone(),
        median_ts: median(&m.speeds()),
        other_median_ts: median(&other.speeds),
        ratio: median(&ratios),
        ratio_min: *ratios.first()?,
        ratio_max: *ratios.last()?,
    })
}

/// The time of a kernel.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "KernelTime")]
struct Kernel {
    /// The kernel.
    kernel: String,
    /// The number of calls.
    calls: u64,
    /// The time of all calls, in nanoseconds.
    ns: u64,
    /// The bytes that the calls read and write (on cards, the bytes of weights), if known.
    bytes: u64,
    /// The arithmetic operations of the calls, if known.
    operations: u64,
    /// On known cards, the predicted time of a call, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted_ns: Option<u64>,
}

pub(super) const CSV: &str = "model_filename,model_type,model_size,model_n_params,backends,devices,split_mode,n_threads,n_ubatch,type_k,\
    type_v,n_prompt,n_gen,n_depth,avg_ns,stddev_ns,avg_ts,stddev_ts\n";

pub(super) fn csv(subject: &Subject, m: &Measured) -> String {
    let r = row(subject, m);
    let cells = [
        r.model_filename,
        r.same.model_type,
        r.size.to_string(),
        r.params.to_string(),
        r.backend.to_owned(),
        r.devices,
        r.split_mode,
        r.threads.to_string(),
        r.same.n_ubatch.to_string(),
        r.same.type_k,
        r.same.type_v,
        r.n_prompt.to_string(),
        r.n_gen.to_string(),
        r.n_depth.to_string(),
        r.avg_ns.to_string(),
        r.stddev_ns.to_string(),
        r.avg_ts.to_string(),
        r.stddev_ts.to_string(),
    ];
    let quoted = cells.map(|c| format!("\"{}\"", c.replace('"', "\"\"")));
    quoted.join(",") + "\n"
}

pub(super) fn report(subject: &Subject, measured: &[Measured]) -> Vec<Row> {
    measured.iter().map(|m| row(subject, m)).collect()
}

pub(super) fn row(subject: &Subject, m: &Measured) -> Row {
    let [n_prompt, n_gen] = m.test.lengths();
    let nanoseconds: Vec<f64> = m.times.iter().map(|t| t.as_nanos() as f64).collect();
    let (avg_ts, stddev_ts) = m.speed();
    let samples_ns: Vec<u64> = m.times.iter().map(|t| t.as_nanos() as u64).collect();
    let profile = m.profile.iter().map(|k| Kernel {
        kernel: k.kernel.clone(),
        calls: k.calls,
        ns: k.time.as_nanos() as u64,
        bytes: k.bytes,
        operations: k.operations,
        predicted_ns: (subject.predicted_us(m.test, &k.kernel)).map(|us| (us * 1e3) as u64),
    });
    Row {
        model: subject.model.clone(),
        model_filename: subject.file.clone(),
        size: subject.size.bytes,
        params: subject.size.params,
        backend: subject.backend,
        devices: subject.devices.clone(),
        split_mode: subject.split_mode.clone(),
        threads: subject.threads,
        same: Same {
            model_type: subject.model.clone(),
            n_threads: subject.threads,
            n_ubatch: subject.ubatch,
            n_batch: subject.ubatch,
            type_k: subject.cache_types[0].clone(),
            type_v: subject.cache_types[1].clone(),
        },
        stddev_ns: spread(&nanoseconds).1 as u64,
        n_prompt,
        n_gen,
        n_depth: m.test.depth(),
        n_sequences: m.sequences,
        avg_ns: samples_ns.iter().sum::<u64>() / samples_ns.len().max(1) as u64,
        avg_ts,
        stddev_ts,
        samples_ns,
        samples_ts: m.speeds(),
        profile: profile.collect(),
        compare: compare(m),
    }
}
