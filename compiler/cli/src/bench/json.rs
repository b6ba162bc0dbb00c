//! The results as an array of objects, with llama-bench's keys if they exist.

use serde::Serialize;

use super::measure::Measured;
use super::statistics::{median, spread};
use super::subject::Subject;

#[derive(Serialize)]
pub(super) struct Row {
    model: String,
    model_filename: String,
    /// The size of the model's tensors, in bytes.
    size: u64,
    params: u64,
    backend: &'static str,
    devices: String,
    split_mode: String,
    threads: usize,
    #[serde(flatten)]
    same: Same,
    n_prompt: usize,
    n_gen: usize,
    n_depth: usize,
    n_sequences: usize,
    avg_ns: u64,
    stddev_ns: u64,
    avg_ts: f64,
    stddev_ts: f64,
    samples_ns: Vec<u64>,
    samples_ts: Vec<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profile: Vec<Kernel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Compare>,
}

#[derive(Clone, Serialize)]
struct Same {
    model_type: String,
    n_threads: usize,
    n_ubatch: usize,
    n_batch: usize,
    type_k: String,
    type_v: String,
}

/// The results of another program, timed in alternation. Sample `i` is of the same round as tpc's sample `i`.
#[derive(Serialize)]
struct Compare {
    command: String,
    samples_ts: Vec<f64>,
    median_ts: f64,
    other_median_ts: f64,
    /// The median of the rounds' speed ratios; minimum and maximum follow.
    ratio: f64,
    ratio_min: f64,
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

#[derive(Serialize)]
struct Kernel {
    kernel: String,
    calls: u64,
    ns: u64,
    /// The bytes of weights that the calls read, if known.
    weight_bytes: u64,
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
        weight_bytes: k.weight_bytes,
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
