//! Mutants of programs: the verifier must reject every mutant that changes a result.
//!
//! The reference executor runs each mutant with several orders of its queues. A mutant is a *fault* if it fails or its
//! logits differ, otherwise *equal*. The verifier may reject equal mutants: a wait may be needless for these batches.

mod kinds;
mod orders;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tpc_core::pipeline::compile;
use tpc_gguf::GgufFile;
use tpc_ir::program::{FileTarget, LaunchData, Work, verify};
use tpc_ir::{DType, Program};
use tpc_passes::assemble;
use tpc_runtime::{Batch, Options, ProgramInterpreter, Session, SessionConfig};
use tpc_tests::{Sweep, goldens};

use crate::random::Random;
use crate::support::{FileWeights, WAYS, config, golden, name, placed, placement, plan, shape};
use kinds::{KINDS, OF_STORES};

const PROMPT: usize = 4;
const DECODED: usize = 2;

struct Subject {
    name: String,
    file: GgufFile,
    config: SessionConfig,
    tokens: Vec<u32>,
    program: Program,
}

impl Subject {
    fn new(path: &Path, devices: usize) -> Subject {
        let (file, compiled) = plan(path, &placement(devices, DType::F16));
        let mut tokens = golden(path).tokens;
        tokens.truncate(PROMPT + DECODED);
        let config = config(&compiled, tokens.len());
        let shapes = [shape(&config, 1), shape(&config, PROMPT)];
        let program = assemble(&compiled.programs, &shapes, &FileTarget).expect("it is small");
        Subject {
            name: format!("{} on {devices}", name(path)),
            file,
            config,
            tokens,
            program,
        }
    }

    /// Returns the bits of a program's logits and drafts; `None` if the program fails.
    fn run(&self, program: &Program, seed: u64) -> Option<Vec<u64>> {
        let run = || -> Option<Vec<u64>> {
            let weights = FileWeights(&self.file);
            let executor =
                ProgramInterpreter::new(program, &weights, Options::default(), seed).ok()?;
            let mut session = Session::with_executor(Box::new(executor), self.config).ok()?;
            let mut bits = Vec::new();
            let mut at = 0;
            for n in [PROMPT].into_iter().chain([1; DECODED]) {
                let tokens = &self.tokens[at..at + n];
                let logits = session
                    .decode(&Batch::sequence(tokens, at as u32, 0))
                    .ok()?;
                bits.extend(logits.reals().ok()?.iter().map(|x| x.to_bits()));
                for _ in 1..program.phases.len() {
                    let drafted = session.draft(tokens).ok()?;
                    bits.extend(drafted.reals().ok()?.iter().map(|x| x.to_bits()));
                }
                at += n;
            }
            Some(bits)
        };
        // The executor accepts only verified programs.
        catch_unwind(AssertUnwindSafe(run)).ok().flatten()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    mutants: usize,
    rejected: usize,
    faults: usize,
    faults_rejected: usize,
}

#[test]
fn the_verifier_rejects_every_fault() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let paths: Vec<PathBuf> = goldens()
        .into_iter()
        .filter(|p| name(p).contains(&only))
        .collect();
    let sweep = Sweep::asked();
    // A sample combines models with numbers of devices: about a dozen.
    let step = sweep.pick(paths.len().div_ceil(13).max(1), 1);
    let each: u64 = 2;
    let seeds: u64 = sweep.pick(3, 6);
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut slipped = Vec::new();
    let mut stores = false;
    for (i, path) in paths.iter().step_by(step).enumerate() {
        let all: &[usize] = &[1, 2, 3, 4];
        let some = [1 + (i + 1) % 4];
        for &devices in sweep.pick(&some[..], all) {
            let subject = Subject::new(path, devices);
            assert_eq!(verify(&subject.program), Ok(()), "{}", subject.name);
            let is_store = |l: &LaunchData| matches!(l.work, Work::Store(_));
            stores |= subject.program.launches.iter().any(is_store);
            let wanted = subject.run(&subject.program, 1);
            assert!(wanted.is_some(), "{} fails", subject.name);
            let mut random = Random::new(i as u64 * 4 + devices as u64);
            for (kind, mutate) in KINDS {
                for _ in 0..each {
                    let mut mutant = subject.program.clone();
                    let Some(what) = mutate(&mut mutant, &mut random) else {
                        continue;
                    };
                    if mutant == subject.program {
                        continue;
                    }
                    let rejected = verify(&mutant).is_err();
                    let fault = (1..=seeds).any(|seed| subject.run(&mutant, seed) != wanted);
                    let count = counts.entry(kind).or_default();
                    count.mutants += 1;
                    count.rejected += usize::from(rejected);
                    count.faults += usize::from(fault);
                    count.faults_rejected += usize::from(fault && rejected);
                    if fault && !rejected {
                        slipped.push(format!("{}: {kind}: {what}", subject.name));
                    }
                }
            }
        }
    }
    let mut total = Count::default();
    for (kind, c) in &counts {
        println!("{kind}: {c:?}");
        total.mutants += c.mutants;
        total.rejected += c.rejected;
        total.faults += c.faults;
        total.faults_rejected += c.faults_rejected;
    }
    println!("all: {total:?}");
    assert!(slipped.is_empty(), "{}\n{slipped:#?}", slipped.len());
    // A kind that never makes a fault is useless. A single model may lack the necessary steps.
    if only.is_empty() {
        for (kind, _) in KINDS
            .iter()
            .filter(|(kind, _)| stores || !OF_STORES.contains(kind))
        {
            let faults = counts.get(kind).map_or(0, |c| c.faults);
            assert!(faults > 0, "no mutant of the kind \"{kind}\" is a fault");
        }
    }
}

#[test]
fn the_verifier_accepts_every_program() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut wrong = Vec::new();
    let (mut programs, mut refused) = (0, 0);
    let sweep = Sweep::asked();
    for (i, path) in goldens().iter().enumerate() {
        if !name(path).contains(&only) {
            continue;
        }
        let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
        let all: Vec<(usize, &str)> = (1..=4)
            .flat_map(|n| WAYS.iter().map(move |way| (n, *way)))
            .collect();
        let some = [all[i * 5 % all.len()]];
        for &(devices, way) in sweep.pick(&some[..], &all[..]) {
            let placement = placed(devices, way);
            let Ok(compiled) = compile(&file, &placement) else {
                refused += 1;
                continue;
            };
            let config = config(&compiled, 8);
            let shapes = [shape(&config, 1), shape(&config, 8)];
            let program =
                assemble(&compiled.programs, &shapes, placement.storage).expect("it is small");
            programs += 1;
            if let Err(errors) = verify(&program) {
                wrong.push(format!(
                    "{} on {devices} {way}: {}: {}",
                    name(path),
                    errors[0].code,
                    errors[0]
                ));
            }
        }
    }
    println!(
        "{programs} programs, {} false alarms, {refused} without a plan",
        wrong.len()
    );
    assert!(programs > 0);
    assert!(wrong.is_empty(), "{}\n{wrong:#?}", wrong.len());
}
