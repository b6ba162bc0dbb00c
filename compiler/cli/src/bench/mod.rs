//! `tpc bench`: times prompts and generation, in the format of llama-bench.
//!
//! - `measure` times a test;
//! - `compare` alternates tpc with another program;
//! - `printer` prints each result as soon as it is known, by `table` or `json`; `profile` prints the time per kernel.

mod args;
mod compare;
mod json;
mod measure;
mod printer;
mod profile;
mod statistics;
mod subject;
mod table;

use tpc_core::placement::SplitMode;
use tpc_diag::{Diagnostic, codes};
use tpc_engine::{ExecutorKind, ExecutorOptions, Loader};
use tpc_ir::DType;

use crate::args::Defaults;
use crate::execution;
use crate::output::{self, Failure};
use crate::progress::Progress;
pub(super) use args::Args;
use args::Format;
use compare::Other;
pub(crate) use json::Row;
use measure::{Bench, Measured, Test, Warmup};
use printer::Printer;
use subject::Subject;

fn tests(args: &Args) -> Vec<Test> {
    let mut out = Vec::new();
    for &depth in &args.n_depth {
        let prompts = args.n_prompt.iter().map(|&n| Test::Prompt { n, depth });
        let gens = args.n_gen.iter().map(|&n| Test::Generation { n, depth });
        let both = args.n_both.iter();
        let both = both.map(|&[prompt, n]| Test::Both { prompt, n, depth });
        out.extend(prompts.chain(gens).chain(both).filter(|t| t.tokens() > 0));
    }
    out
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let tests = tests(args);
    let cells = cells(&tests)?;
    let defaults = Defaults {
        cache: DType::F16,
        split_mode: SplitMode::Auto,
    };
    let executor = (args.engine).executor(&args.placement, ExecutorKind::Cpu);
    let mut opened = (args.subject).open(&args.placement, || {
        execution::placement(&args.placement, defaults, executor)
    })?;
    let executor = opened.executor(&args.engine, executor);
    let sequences = opened.sequences();
    let cells = cells.saturating_mul(sequences);
    opened.default_context(cells as u64);
    let ready = opened.plan()?;
    let longest = tests.iter().map(|t| t.cells().max(1)).max().unwrap_or(1);
    let loader = Loader {
        name: args.subject.path(),
        file: &opened.file,
        model: &ready,
        ctx_size: usize::MAX,
        batch: (ready.ubatch)
            .min(longest.saturating_mul(sequences))
            .max(sequences),
        // A batch may end several prompts, and each end needs logits.
        outputs: sequences,
        sequences,
        executor: ExecutorOptions {
            profile: args.profile,
            ..(args.faults).apply((args.engine).executor_options(executor, ready.n_devices())?)?
        },
    };
    if longest > loader.sequence_ctx_size() {
        let message = format!(
            "a test needs {longest} cells, but the context has {} per sequence",
            loader.sequence_ctx_size()
        );
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--ctx-size", message);
        return Err(Failure::usage(d.help("leave out -c, or give a larger -c")));
    }
    if let Some(d) = execution::beyond_training(&opened.file, longest) {
        output::diagnostic(&d);
    }
    let mut model = execution::load(loader.clone(), &args.engine)?;
    let mut subject = Subject::new(args.subject.path(), &ready, &loader);
    if args.profile && executor == ExecutorKind::Cuda {
        subject.predicted = subject::predicted(&opened);
    }
    let mut bench = Bench {
        model: &mut model,
        n_vocab: u32::try_from(ready.n_vocab).unwrap_or(u32::MAX),
        batch: loader.batch,
        sequences,
        warmup: match args.no_warmup {
            true => Warmup::None,
            false => Warmup::Once,
        },
        filled: 0,
    };
    let other = args.compare.as_deref().map(Other::new);
    let mut printer = Printer::new(args.format, &subject);
    if other.is_none() {
        printer.begin(&tests, sequences)?;
    }
    let measured = measure(&mut bench, &tests, other.as_ref(), args, &mut printer)?;
    if other.is_some() {
        printer.all(&measured)?;
    }
    execution::busy(&model).inspect(output::diagnostic);
    report(args.format, &subject, &measured, other)
}

fn cells(tests: &[Test]) -> Result<usize, Failure> {
    tests.iter().map(Test::cells).max().ok_or_else(|| {
        let message = "missing test: all lengths are 0";
        let d = Diagnostic::new(&codes::COMMAND_LINE, "--n-prompt", message);
        Failure::usage(d.help("give -p 512, -n 128, or both"))
    })
}

fn report(
    format: Format,
    subject: &Subject,
    measured: &[Measured],
    other: Option<Other>,
) -> Result<(), Failure> {
    match format {
        Format::Json => output::json(&json::report(subject, measured)),
        Format::Jsonl | Format::Csv => Ok(()),
        Format::Table => {
            let profiled: Vec<&Measured> =
                measured.iter().filter(|m| !m.profile.is_empty()).collect();
            let limits = match profiled.is_empty() {
                true => None,
                false => subject.limits(),
            };
            profiled
                .iter()
                .try_for_each(|m| output::result(&profile::report(m, limits, subject)))?;
            let Some(other) = other else { return Ok(()) };
            output::result(&format!("\n{}", other.report(measured)))
        }
    }
}

/// Runs the tests, each after an untimed run. With `--compare`, runs only the tests of both programs.
fn measure(
    bench: &mut Bench<'_, '_>,
    tests: &[Test],
    other: Option<&Other<'_>>,
    args: &Args,
    printer: &mut Printer<'_>,
) -> Result<Vec<Measured>, Failure> {
    let runs = tests.len() * (args.repetitions as usize + 1);
    let progress =
        Progress::with_steps(format!("measuring {}", args.subject.path().display()), runs);
    if let Some(other) = other {
        return other.measure(bench, tests, args.repetitions, &progress);
    }
    let each = tests.iter().map(|&test| {
        let measured = bench.measure(test, args.repetitions, &progress);
        let measured = measured?;
        progress.aside(|| printer.row(&measured))?;
        Ok(measured)
    });
    each.collect()
}
