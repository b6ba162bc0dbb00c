//! Hostile input: damaged files, odd and impossible models, damaged captures, mangled IR text. tpc must quickly give a
//! plan or a diagnostic, without much memory.
//!
//! [`worker`] is a test that runs a job if its environment variables name one. Other tests start it as a process, to
//! measure its peak memory and to end endless loops. `TPC_HOSTILE_RUNS` sets the number of mutations of each kind.

mod blowups;
mod captures;
mod dumps;
mod entries;
mod pace;
mod proofs;
mod seeds;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tpc_ir::Verified;
use tpc_tests::Sweep;

use tpc_core::pipeline::compile;
use tpc_core::placement::{Placement, SplitMode, parse_devices};
use tpc_diag::Diagnostic;
use tpc_gguf::{self, GgufFile, GgufWriter, Header, MetaArray, MetaValue, StrList};
use tpc_ir::DType;
use tpc_ir::text;
use tpc_ir::verify::verify;
use tpc_models::{ARCHS, CACHE_TYPES, Drafting, GraphResult, LowerOptions, expected_tensors};
use tpc_passes::lower::lower;

use crate::random::Rng;

/// The limit of a run's time on a quiet machine. The longest runs take 0.9 s: graphs with dozens of concatenations.
const SLOWEST: Duration = Duration::from_secs(1);

/// The maximum growth of the process over all runs, in KiB.
const MEMORY: u64 = 64 << 10;

/// The maximum growth for jobs that run small models, in KiB.
const NUMERIC_MEMORY: u64 = 480 << 10;

/// The address space in KiB that planning reserves per thread, for up to eight additional threads: the stack, which
/// uses few pages, and guard pages.
const STACK: u64 = (64 << 10) + 64;

/// The address space of all these threads, in KiB.
fn stacks() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    (processors as u64 - 1) * STACK
}

#[derive(Clone, Debug)]
struct Model {
    pairs: Vec<(String, MetaValue)>,
    tensors: Vec<(String, DType, Vec<u64>)>,
}

impl Model {
    fn of(header: &Header) -> Model {
        let pairs = header.metadata().entries();
        Model {
            pairs: pairs
                .iter()
                .map(|e| (e.key.clone(), e.value.clone()))
                .collect(),
            tensors: header
                .tensors()
                .iter()
                .map(|t| (t.name.clone(), t.dtype, t.shape().to_vec()))
                .collect(),
        }
    }

    fn small(arch: &str) -> Model {
        let numbers = [
            ("block_count", 2_u32),
            ("context_length", 64),
            ("embedding_length", 64),
            ("feed_forward_length", 96),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
            ("attention.key_length", 32),
            ("attention.value_length", 32),
            ("attention.sliding_window", 16),
            ("expert_count", 4),
            ("expert_used_count", 2),
            ("expert_feed_forward_length", 32),
            ("expert_shared_count", 1),
            ("expert_shared_feed_forward_length", 32),
            ("expert_group_count", 2),
            ("expert_group_used_count", 1),
            ("interleave_moe_layer_step", 2),
            ("leading_dense_block_count", 1),
            ("rope.dimension_count", 16),
            ("vocab_size", 40),
            ("ssm.conv_kernel", 4),
            ("ssm.inner_size", 64),
            ("ssm.state_size", 16),
            ("ssm.time_step_rank", 4),
            ("ssm.group_count", 2),
            ("shortconv.l_cache", 3),
            ("attention.q_lora_rank", 32),
            ("attention.kv_lora_rank", 64),
            ("attention.key_length_mla", 48),
            ("attention.value_length_mla", 32),
        ];
        let reals = [
            ("attention.layer_norm_epsilon", 1e-5_f32),
            ("attention.layer_norm_rms_epsilon", 1e-6),
            ("attention.clamp_kqv", 8.0),
            ("attn_logit_softcapping", 50.0),
            ("final_logit_softcapping", 30.0),
            ("logit_scale", 0.25),
            ("rope.freq_base", 10_000.0),
        ];
        let mut pairs = vec![
            ("general.architecture".to_owned(), arch.into()),
            (format!("{arch}.use_parallel_residual"), true.into()),
            (
                format!("{arch}.rope.dimension_sections"),
                vec![3_u32, 3, 2, 0].into(),
            ),
        ];
        let numbers = numbers.iter();
        pairs.extend(numbers.map(|&(k, n)| (format!("{arch}.{k}"), n.into())));
        pairs.extend(reals.map(|(k, x)| (format!("{arch}.{k}"), x.into())));
        let mut model = Model {
            pairs,
            tensors: Vec::new(),
        };
        if !model.complete() {
            // The tiny model has the keys that only this family needs.
            let tiny = crate::synthetic::make(&format!("{arch}-tiny:header=1"));
            model = Model::of(tiny.header());
            assert!(model.complete(), "{arch}");
        }
        model
    }

    /// Adds the tensors that the metadata require. Returns false if it cannot.
    fn complete(&mut self) -> bool {
        let Ok(header) = self.writer().header() else {
            return false;
        };
        let options = LowerOptions {
            cache_type_k: DType::F16,
            cache_type_v: DType::F16,
            ctx_size: 64,
            drafting: Drafting::None,
            result: GraphResult::Own,
        };
        let Ok(list) = expected_tensors(header.metadata(), &options, |_| true) else {
            return false;
        };
        self.tensors = list
            .into_iter()
            .map(|t| (t.name, DType::F32, t.ne.to_vec()))
            .collect();
        true
    }

    fn set(&mut self, key: &str, value: impl Into<MetaValue>) {
        let arch = match self.pairs.iter().find(|(k, _)| k == "general.architecture") {
            Some((_, MetaValue::Str(s))) => s.clone(),
            _ => String::new(),
        };
        let key = format!("{arch}.{key}");
        self.pairs.retain(|(k, _)| *k != key);
        self.pairs.push((key, value.into()));
    }

    /// Describes the pairs that the small model does not have.
    fn brief(&self, seed: u64) -> String {
        let arch = self
            .pairs
            .first()
            .map_or(&MetaValue::Bool(false), |(_, v)| v);
        let usual = match arch {
            MetaValue::Str(name) if ARCHS.iter().any(|a| a.name == name) => {
                Model::small(name).pairs
            }
            _ => Vec::new(),
        };
        let mut out = format!("seed {seed}: {arch:?}");
        for (key, value) in self.pairs.iter().filter(|p| !usual.contains(p)) {
            let _ = write!(out, " {key}={value:?}");
        }
        out
    }

    fn writer(&self) -> GgufWriter {
        let mut w = GgufWriter::new("hostile.gguf");
        for (key, value) in &self.pairs {
            w.meta(key, value.clone());
        }
        for (name, dtype, ne) in &self.tensors {
            w.tensor(name, *dtype, ne);
        }
        w
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.writer().write_header(&mut bytes).ok()?;
        Some(bytes)
    }
}

fn odd_number(rng: &mut Rng) -> u64 {
    let of_interest = [
        0, 1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 48, 64, 96, 255, 256, 257, 1000,
    ];
    let absurd = [
        4096,
        65_537,
        1 << 31,
        (1 << 31) - 1,
        u64::from(u32::MAX),
        1 << 40,
        i64::MAX as u64,
        u64::MAX,
    ];
    if rng.one_in(8) {
        *rng.pick(&absurd)
    } else {
        *rng.pick(&of_interest)
    }
}

fn odd_value(rng: &mut Rng) -> MetaValue {
    let n = odd_number(rng);
    let real = *rng.pick(&[
        0.0_f32,
        -0.0,
        -1.0,
        1e-30,
        1e30,
        f32::NAN,
        f32::INFINITY,
        1.0,
        1e-5,
    ]);
    match rng.range(0, 15) {
        0 => MetaValue::U64(n),
        1 => MetaValue::I32(n as i32),
        2 => MetaValue::I64(-(n as i64 & 0xff)),
        3 => MetaValue::U8(n as u8),
        4 | 5 => MetaValue::F32(real),
        6 => MetaValue::F64(f64::from(real)),
        7 => MetaValue::Bool(n % 2 == 1),
        8 => MetaValue::Str(
            (*rng.pick(&["", "llama", "yarn", "\u{0}", "longrope", "é€"])).to_owned(),
        ),
        9 => MetaValue::Array(MetaArray::U32(
            (0..rng.range(0, 5))
                .map(|_| odd_number(rng) as u32)
                .collect(),
        )),
        10 => MetaValue::Array(MetaArray::Bool(
            (0..rng.range(0, 5)).map(|_| rng.one_in(2)).collect(),
        )),
        11 => MetaValue::Array(MetaArray::Str(StrList::from_iter(["a", "", "b"]))),
        _ => MetaValue::U32(n as u32),
    }
}

fn mutate(model: &mut Model, rng: &mut Rng) {
    let recompute = !rng.one_in(3);
    for _ in 0..rng.range(1, 3) {
        let at = rng.range(0, model.pairs.len() as u64 - 1) as usize;
        match rng.range(0, 11) {
            0 => drop(model.pairs.remove(at)),
            // A model with many layers may take long and need much memory.
            1 if model.pairs[at].0.ends_with(".block_count") => {}
            1 => model.pairs[at].1 = odd_value(rng),
            2 => {
                let layers = rng.range(1, 4);
                let key = *rng.pick(&[
                    "attention.head_count",
                    "attention.head_count_kv",
                    "feed_forward_length",
                ]);
                let list: Vec<u32> = (0..layers).map(|_| odd_number(rng) as u32).collect();
                model.set(key, list);
            }
            _ => {
                let key = *rng.pick(&[
                    "block_count",
                    "embedding_length",
                    "feed_forward_length",
                    "attention.head_count",
                    "attention.head_count_kv",
                    "attention.key_length",
                    "attention.value_length",
                    "attention.sliding_window",
                    "attention.sliding_window_pattern",
                    "expert_count",
                    "expert_used_count",
                    "expert_feed_forward_length",
                    "rope.dimension_count",
                    "vocab_size",
                ]);
                let n = if key == "block_count" {
                    rng.range(0, 6)
                } else {
                    odd_number(rng)
                };
                model.set(key, n as u32);
            }
        }
        if model.pairs.is_empty() {
            break;
        }
    }
    if recompute {
        model.complete();
    }
    // Half of the matrices get a random type whose blocks divide the rows; norms, biases and RoPE factors rarely do.
    for (name, dtype, ne) in &mut model.tensors {
        let plain = ["norm", "bias", "sinks", "rope"]
            .iter()
            .any(|part| name.contains(part));
        if rng.one_in(2) && (!plain || rng.one_in(500)) {
            let new = *rng.pick(DType::ALL);
            if ne[0].is_multiple_of(new.block_len()) && (!new.is_integer() || rng.one_in(500)) {
                *dtype = new;
            }
        }
    }
    if model.tensors.is_empty() || !rng.one_in(4) {
        return;
    }
    let at = rng.range(0, model.tensors.len() as u64 - 1) as usize;
    match rng.range(0, 4) {
        0 => drop(model.tensors.remove(at)),
        1 => model.tensors[at].0.push('x'),
        2 => model.tensors[at].2 = (0..rng.range(1, 4)).map(|_| odd_number(rng)).collect(),
        3 => model.tensors[at].1 = *rng.pick(DType::ALL),
        _ => {
            let copy = model.tensors[at].clone();
            model.tensors.push(copy);
        }
    }
}

fn placement(rng: &mut Rng) -> Placement {
    let n = if rng.one_in(50) { 64 } else { rng.range(1, 9) };
    let mut p = Placement::on(parse_devices(&n.to_string()).expect("a count"));
    if rng.one_in(3) {
        let mut shares: Vec<f64> = (0..n)
            .map(|_| *rng.pick(&[0.0, 1.0, 1.0, 2.0, 3.5, 1e-300, 1e300]))
            .collect();
        if shares.iter().all(|&s| s == 0.0) {
            shares[0] = 1.0;
        }
        p.tensor_split = Some(shares);
    }
    p.split_mode = *rng.pick(&[
        SplitMode::Auto,
        SplitMode::Tensor,
        SplitMode::Tensor,
        SplitMode::None,
    ]);
    if rng.one_in(2) {
        p.cache_type_k = *rng.pick(&CACHE_TYPES);
        p.cache_type_v = *rng.pick(&CACHE_TYPES);
    }
    let sizes = [1, 2, 7, 64, 512, 1000, 1 << 20, 1 << 32];
    p.ctx_size = (!rng.one_in(3)).then(|| *rng.pick(&sizes));
    p.ubatch_size = *rng.pick(&sizes);
    p.parallel = *rng.pick(&sizes);
    p
}

fn brief(p: &Placement) -> String {
    let Placement {
        split_mode,
        tensor_split,
        cache_type_k,
        cache_type_v,
        ctx_size,
        ubatch_size,
        parallel,
        ..
    } = p;
    let n = p.devices.len();
    format!(
        "{n} devices, {split_mode:?} {tensor_split:?}, {cache_type_k} {cache_type_v}, -c {ctx_size:?} -ub {ubatch_size} \
         -np {parallel}"
    )
}

#[derive(Default)]
struct Tally {
    runs: u64,
    /// Counts by outcome: `ok` or a code.
    outcomes: BTreeMap<String, u64>,
    slowest: Duration,
    slowest_what: String,
    failures: Vec<String>,
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_default()
}

impl Tally {
    fn run(&mut self, what: impl Fn() -> String, f: impl Fn() -> &'static str) {
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(&f));
        let mut took = start.elapsed();
        // Other processes may have used the processor or its caches, so the minimum time counts.
        let mut again = if took > SLOWEST / 20 { 3 } else { 0 };
        while outcome.is_ok() && again > 0 {
            let before = on_processor();
            let _ = f();
            let own = before
                .zip(on_processor())
                .map(|(then, now)| now.saturating_sub(then));
            took = took.min(own.unwrap_or(took));
            again = if took > SLOWEST { again - 1 } else { 0 };
        }
        if took > SLOWEST {
            took = pace::on_a_quiet_machine(took);
        }
        self.runs += 1;
        match outcome {
            Ok(code) => {
                *self.outcomes.entry(code.to_owned()).or_default() += 1;
                if took > self.slowest {
                    self.slowest = took;
                    self.slowest_what = what();
                }
                if took > SLOWEST {
                    self.failures.push(format!("{took:?}: {}", what()));
                }
            }
            Err(panic) => {
                *self.outcomes.entry("panic".to_owned()).or_default() += 1;
                self.failures
                    .push(format!("panic `{}`: {}", said(panic.as_ref()), what()));
            }
        }
    }

    fn report(&self, name: &str) -> String {
        let mut out = format!(
            "{name}: {} runs, slowest {:?} ({})\n",
            self.runs, self.slowest, self.slowest_what
        );
        for (code, n) in &self.outcomes {
            let _ = writeln!(out, "  {code}: {n}");
        }
        out
    }
}

fn code_of(result: Result<(), Vec<Diagnostic>>) -> &'static str {
    match result {
        Ok(()) => "ok",
        Err(diagnostics) => {
            let first = diagnostics.first().expect("a refusal says why");
            // If the verifier rejects a plan, this is never the input's fault.
            assert_ne!(first.code, "TPC0390", "{first}");
            first.code.id
        }
    }
}

fn plan(path: &Path, placement: &Placement) -> &'static str {
    let file = match GgufFile::open(path) {
        Ok(file) => file,
        Err(e) => return e.code().id,
    };
    let planned = compile(&file, placement).and_then(|compiled| {
        let _ = tpc_core::report::render(
            &tpc_lint::plan_report("x", placement, &compiled),
            100,
            tpc_core::report::Detail::Full,
        );
        compiled.proof_error().map_or(Ok(()), |d| Err(vec![d]))
    });
    code_of(planned)
}

fn headers() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/headers");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("headers")
        .map(|e| e.expect("entry").path())
        .collect();
    paths.sort();
    let name = |p: &Path| {
        p.file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned()
    };
    paths
        .iter()
        .map(|p| (name(p), fs::read(p).expect("readable")))
        .collect()
}

/// Mutates a real header or a small model. Returns the bytes and a description.
fn hostile_bytes(
    seed: u64,
    small: &[Model],
    real: &[(String, Vec<u8>)],
    rng: &mut Rng,
) -> (Vec<u8>, String) {
    let kind = rng.range(0, 19);
    if kind == 0 {
        // The real headers are large and slow, so few are chosen.
        let (name, bytes) = rng.pick(real);
        if rng.one_in(4) {
            let header = tpc_gguf::parse(bytes, bytes.len() as u64, name).expect("a real header");
            let mut model = Model::of(&header);
            mutate(&mut model, rng);
            let bytes = model.bytes().unwrap_or_default();
            return (bytes, format!("seed {seed}: changes of {name}"));
        }
        let mut bytes = bytes.clone();
        flip(&mut bytes, rng);
        return (bytes, format!("seed {seed}: bytes of {name}"));
    }
    let mut model = rng.pick(small).clone();
    if kind < 8 {
        let mut bytes = model.bytes().expect("a small model can be written");
        flip(&mut bytes, rng);
        return (bytes, format!("seed {seed}: bytes of a small model"));
    }
    mutate(&mut model, rng);
    match model.bytes() {
        Some(bytes) => (bytes, model.brief(seed)),
        None => (Vec::new(), format!("seed {seed}: refused by the writer")),
    }
}

fn flip(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.range(1, 4) {
        let at = rng.range(0, bytes.len() as u64 - 1) as usize;
        match rng.range(0, 5) {
            0 => bytes[at] ^= 1 << rng.range(0, 7),
            1 => bytes[at] = rng.next() as u8,
            2 => bytes[at] = *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            3 => {
                let word = odd_number(rng).to_le_bytes();
                let end = (at + 8).min(bytes.len());
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
            4 => bytes.truncate(at.max(1)),
            _ => bytes.insert(at, rng.next() as u8),
        }
    }
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("tpc-hostile-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Scratch(path)
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.join("hostile.gguf");
        fs::write(&path, bytes).expect("a temporary file");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn small_models() -> Vec<Model> {
    ARCHS.iter().map(|a| Model::small(a.name)).collect()
}

fn damaged_headers(
    runs: u64,
    (small, real): &(Vec<Model>, Vec<(String, Vec<u8>)>),
    tally: &mut Tally,
) {
    let scratch = Scratch::new();
    for seed in first_seed()..first_seed() + runs {
        let mut rng = Rng::new(seed);
        let (bytes, what) = hostile_bytes(seed, small, real, &mut rng);
        let mut placement = placement(&mut rng);
        if bytes.len() > 12_000 {
            // A real model's plan needs memory per device, so keep at most nine.
            placement.devices.truncate(9);
            placement.tensor_split = placement.tensor_split.filter(|s| s.len() <= 9);
        }
        let path = scratch.file(&bytes);
        tally.run(
            || format!("{what} on {}", brief(&placement)),
            || plan(&path, &placement),
        );
    }
}

fn truncations(tally: &mut Tally) {
    let scratch = Scratch::new();
    let model = Model::small("qwen3moe");
    let mut bytes = Vec::new();
    let zeros = |_: usize, t: &tpc_gguf::TensorInfo, out: &mut dyn std::io::Write| {
        std::io::copy(
            &mut std::io::Read::take(std::io::repeat(0), t.bytes),
            &mut { out },
        )
        .map(drop)
    };
    let header = model.writer().write(&mut bytes, zeros).expect("writes");
    let placement = Placement::on(parse_devices("2").expect("a count"));
    let start = header.data_offset as usize;
    // Try every cut within the header. In the data, tpc finds a cut only by the file's length, so some cuts suffice.
    let cuts = (0..start + 64)
        .chain((start + 64..bytes.len()).step_by(997))
        .chain([bytes.len() - 1]);
    for n in cuts {
        let path = scratch.file(&bytes[..n]);
        // A bare header may lack the padding before the data.
        let whole = n <= start && n + 32 > start;
        tally.run(
            || format!("the first {n} bytes"),
            || {
                let parsed = tpc_gguf::parse(&bytes[..n], n as u64, "x").map(drop);
                let code = plan(&path, &placement);
                assert!(code != "ok" || whole);
                assert!(code == "ok" || n != start, "{code}");
                assert_eq!(parsed.is_ok(), code == "ok", "{parsed:?}");
                code
            },
        );
    }
}

fn mangle(text: &str, rng: &mut Rng) -> String {
    let mut out = text.to_owned();
    for _ in 0..rng.range(1, 3) {
        let mut lines: Vec<String> = out.lines().map(str::to_owned).collect();
        if lines.is_empty() {
            return out;
        }
        let pick = |rng: &mut Rng| rng.range(0, lines.len() as u64 - 1) as usize;
        let (a, b) = (pick(rng), pick(rng));
        match rng.range(0, 9) {
            0 => drop(lines.remove(a)),
            1 => lines.swap(a, b),
            2 => lines.insert(a, lines[b].clone()),
            3 => {
                let mut bytes = std::mem::take(&mut lines[a]).into_bytes();
                if !bytes.is_empty() {
                    let at = rng.range(0, bytes.len() as u64 - 1) as usize;
                    if bytes[at].is_ascii() {
                        bytes[at] = *rng.pick(b"0123456789 []()<>{}=,.:*+-%@\"#abcxyz~_");
                    }
                }
                lines[a] = String::from_utf8_lossy(&bytes).into_owned();
            }
            4..=6 => lines[a] = other_number(&lines[a], rng),
            _ => {
                let words: Vec<&str> = lines[a].split(' ').collect();
                let others: Vec<&str> = lines[b].split(' ').collect();
                let at = rng.range(0, words.len() as u64 - 1) as usize;
                let other = *rng.pick(&others);
                let mixed: Vec<&str> = words
                    .iter()
                    .enumerate()
                    .map(|(i, w)| if i == at { other } else { w })
                    .collect();
                lines[a] = mixed.join(" ");
            }
        }
        out = lines.join("\n");
    }
    out
}

fn other_number(line: &str, rng: &mut Rng) -> String {
    let digits: Vec<usize> = line
        .char_indices()
        .filter(|&(i, c)| c.is_ascii_digit() && !line[..i].ends_with(|c: char| c.is_ascii_digit()))
        .map(|(i, _)| i)
        .collect();
    if digits.is_empty() {
        return line.to_owned();
    }
    let at = *rng.pick(&digits);
    let len = line[at..]
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(line.len() - at);
    format!("{}{}{}", &line[..at], odd_number(rng), &line[at + len..])
}

fn texts() -> Vec<String> {
    let scratch = Scratch::new();
    let mut out = Vec::new();
    for (arch, n) in [
        ("llama", 2),
        ("gpt-oss", 3),
        ("gemma3", 4),
        ("qwen3moe", 3),
        ("phi3", 5),
    ] {
        let mut model = Model::small(arch);
        model.set("block_count", 1_u32);
        assert!(model.complete());
        let path = scratch.file(&model.bytes().expect("writes"));
        let file = GgufFile::open(&path).expect("opens");
        let placement = Placement::on(parse_devices(&n.to_string()).expect("a count"));
        out.push(
            compile(&file, &placement)
                .expect("plans")
                .sharded
                .to_string(),
        );
    }
    out
}

fn mangled_texts(runs: u64, tally: &mut Tally) {
    let texts = texts();
    for seed in first_seed()..first_seed() + runs {
        let mut rng = Rng::new(seed);
        let text = rng.pick::<String>(&texts);
        let mangled = mangle(text, &mut rng);
        tally.run(
            || {
                let other = mangled.lines().filter(|l| !text.lines().any(|t| t == *l));
                format!("seed {seed}: {:?}", other.collect::<Vec<_>>())
            },
            || {
                let graph = match text::parse(&mangled) {
                    Ok(parsed) => parsed.graph,
                    Err(e) => return e[0].code().id,
                };
                let graph = match Verified::new(graph) {
                    Ok(graph) => graph,
                    Err(violations) => return violations.errors[0].code().id,
                };
                match lower(&graph) {
                    // If the verifier accepts a graph and it can be lowered, the verifier must also accept the
                    // programs.
                    Ok(programs) => {
                        let errors = verify(&programs).err().unwrap_or_default();
                        assert!(
                            errors.is_empty(),
                            "programs that do not verify: {}",
                            errors[0]
                        );
                        "ok"
                    }
                    Err(e) => panic!("verified, but {e}"),
                }
            },
        );
    }
}

fn status(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn on_processor() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace()
        .next()?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

fn first_seed() -> u64 {
    std::env::var("TPC_HOSTILE_SEED")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

fn runs(default: u64) -> u64 {
    std::env::var("TPC_HOSTILE_RUNS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

#[test]
fn worker() {
    let Ok(job) = std::env::var("TPC_HOSTILE_JOB") else {
        return;
    };
    // The memory baseline includes the seeds and the planning of undamaged headers.
    let whole = (job == "headers").then(|| (small_models(), headers()));
    let scratch = Scratch::new();
    for (_, header) in whole.iter().flat_map(|(_, real)| real) {
        let _ = plan(&scratch.file(header), &crate::support::placement(6));
    }
    let before = (status("VmHWM"), status("VmPeak"));
    let mut tally = Tally::default();
    match job.as_str() {
        "headers" => {
            let runs = runs(Sweep::asked().pick(1200, 4000));
            damaged_headers(runs, &whole.expect("made above"), &mut tally);
        }
        "captures" => captures::damaged(runs(Sweep::asked().pick(300, 600)), &mut tally),
        "blowups" => blowups::generated(runs(Sweep::asked().pick(150, 3000)), &mut tally),
        "cuts" => truncations(&mut tally),
        "texts" => mangled_texts(runs(Sweep::asked().pick(4000, 10_000)), &mut tally),
        "entries" => {
            let (cases, failures) = entries::damaged();
            fs::write(
                std::env::var_os("TPC_HOSTILE_OUT").expect("where to"),
                format!("{cases} cases\n{}\n", failures.join("\n")),
            )
            .expect("a report");
            return;
        }
        other => panic!("no job `{other}`"),
    }
    println!("{}", tally.report(&job));
    let grown =
        |name: &str, before: Option<u64>| status(name).zip(before).map(|(now, then)| now - then);
    let (resident, mapped) = (grown("VmHWM", before.0), grown("VmPeak", before.1));
    println!("  grown by {resident:?} KiB in memory, {mapped:?} KiB of addresses");
    let shown: Vec<&String> = tally.failures.iter().take(20).collect();
    assert!(
        shown.is_empty(),
        "{} failures, the first: {shown:#?}",
        tally.failures.len()
    );
    let most = match job.as_str() {
        "blowups" => NUMERIC_MEMORY,
        _ => MEMORY,
    };
    assert!(resident.is_none_or(|n| n <= most), "{resident:?} KiB");
    assert!(
        mapped.is_none_or(|n| n <= most + stacks()),
        "{mapped:?} KiB"
    );
}

/// Runs a job in a process with the same output.
fn work(job: &str) {
    let status = started(job, None);
    assert!(status.success(), "`{job}`: {status}");
}

/// Runs a process with this job, and returns the exit status. If the job writes a report file, its output is dropped.
fn started(job: &str, report: Option<&Path>) -> std::process::ExitStatus {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program);
    if let Some(report) = report {
        child.env("TPC_HOSTILE_OUT", report);
        child.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let mut child = child
        .args([
            "hostile::worker",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("TPC_HOSTILE_JOB", job)
        // With several arenas the allocator reserves address space per thread, which counts as mapped but is not
        // memory.
        .env("MALLOC_ARENA_MAX", "1")
        .stdin(Stdio::null())
        .spawn()
        .expect("starts");
    let campaign = std::env::var_os("TPC_CASES").is_some();
    let most = Duration::from_secs(if campaign { 1 << 20 } else { 600 });
    let deadline = Instant::now() + most;
    loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                let _ = child.kill();
                panic!("`{job}` does not end");
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[test]
fn damaged_files_are_refused_or_used_by_every_entry() {
    let report = std::env::temp_dir().join(format!("tpc-entries-{}.txt", std::process::id()));
    let status = started("entries", Some(&report));
    let said = fs::read_to_string(&report).unwrap_or_default();
    let _ = fs::remove_file(&report);
    println!("{said}");
    assert!(status.success(), "{status}: a case ended the process");
    let failures: Vec<&str> = said.lines().skip(1).filter(|l| !l.is_empty()).collect();
    assert!(
        said.contains(" cases") && failures.is_empty(),
        "{failures:#?}"
    );
}

#[test]
fn damaged_headers_are_refused_or_planned() {
    work("headers");
}

#[test]
fn damaged_captures_are_refused_or_planned() {
    work("captures");
}

#[test]
fn graphs_larger_than_their_files_are_planned_or_refused_soon() {
    work("blowups");
}

#[test]
fn cut_files_are_refused() {
    work("cuts");
}

#[test]
fn mangled_ir_is_refused_or_lowered() {
    work("texts");
}
