//! Golden models on the CPU executor: as near to the exact logits as the engine is that made them, and as near as can be to
//! the reference where that rounds activations as the CPU does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use tpc_core::golden::{Golden, distance};
use tpc_core::pipeline::{Compiled, compile};
use tpc_core::placement::Placement;
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_gguf::GgufFile;
use tpc_ir::program::{FileTarget, StoredFormat, verify};
use tpc_ir::{DType, Inst, Op, Program};
use tpc_passes::assemble;
use tpc_runtime::{ExecError, Options, ProgramInterpreter, Session, SessionConfig};
use tpc_tests::{Sweep, goldens};

use crate::support::{FileWeights, config, golden, name, one_by_one, placement, shape, whole};

/// The distance of the engine's own logits from the exact ones.
fn engine(path: &Path, exact: &Golden, name: &str) -> Option<f64> {
    // The repository carries the exact logits only.
    let beside = path.with_extension("logits");
    let shared = tpc_tests::shared().map(|s| s.join("golden").join(format!("{name}.logits")));
    let own = [Some(beside), shared]
        .into_iter()
        .flatten()
        .find(|p| p.exists())?;
    let bytes = std::fs::read(&own).unwrap_or_else(|e| panic!("{}: {e}", own.display()));
    let own = Golden::parse(name, &bytes).unwrap_or_else(|e| panic!("{e}"));
    let wide = |g: &Golden| g.logits.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    Some(distance(wide(exact), wide(&own)).nmse)
}

/// The distance that is allowed: that of the engine and a little more, above [`MOST`] only as far as the engine's is; next to
/// nothing where weights are not quantised.
fn allowed(name: &str, engine: Option<f64>) -> f64 {
    if ["-f32", "-f16", "-bf16"].iter().any(|t| name.ends_with(t)) {
        return 5e-6;
    }
    let engine = engine.unwrap_or(4e-4);
    (engine + 1e-4).min(engine.max(MOST) * 1.1)
}

/// The most that is allowed of models whose engine is not further.
const MOST: f64 = 5e-4;
/// The part of a distance from the exact logits that may be left from a reference with the CPU's rounding, where a router
/// chooses other experts by it: what lies on the edge between two codes may be rounded either way.
const LEFT: f64 = 0.1;

/// A model with its program for the CPU.
struct Subject {
    file: GgufFile,
    compiled: Compiled,
    config: SessionConfig,
    program: Arc<Program>,
    tokens: Vec<u32>,
}

impl Subject {
    /// `None` where there is no such plan.
    fn new(path: &Path, placement: &Placement, tokens: &[u32]) -> Option<Subject> {
        let file = GgufFile::open(path).unwrap_or_else(|e| panic!("{e}"));
        let compiled = compile(&file, placement).ok()?;
        let config = config(&compiled, tokens.len());
        let shapes = [shape(&config, 1), shape(&config, tokens.len())];
        let program = assemble(&compiled.programs, &shapes, &CpuTarget).expect("it is small");
        let name = path.display();
        verify(&program).unwrap_or_else(|e| panic!("{name}: {}: {}", e[0].code, e[0]));
        Some(Subject {
            file,
            config,
            program: Arc::new(program),
            tokens: tokens.to_vec(),
            compiled,
        })
    }

    /// A session on so many threads.
    fn session(&self, threads: usize) -> Result<Session<CpuExecutor>, ExecError> {
        let options = CpuOptions {
            threads,
            options: Options::default(),
            profile: false,
        };
        let weights = FileWeights(&self.file);
        let executor = CpuExecutor::new(Arc::clone(&self.program), &weights, options)?;
        Session::with_executor(executor, self.config)
    }

    /// The logits on two threads.
    fn logits(&self) -> Result<Vec<f64>, ExecError> {
        Ok(whole(&mut self.session(2)?, &self.tokens))
    }

    /// The products whose activations the CPU rounds: those with quantised weights that are stored for them.
    fn rounded_products(&self) -> BTreeSet<Inst> {
        let program = &self.program;
        let rounded = |inst: Inst| {
            let data = program.graph.inst(inst);
            let weight = data.operands.first().copied();
            let stored = weight.and_then(|w| program.home(w));
            matches!(data.op, Op::MulMat(_) | Op::MulMatId(_))
                && weight.is_some_and(|w| program.graph.value(w).ty.dtype.is_quantised())
                && stored.is_some_and(|h| program.buffer(h.buffer).format == StoredFormat::Rows16)
        };
        let all = program.graph.insts().map(|(inst, _)| inst);
        all.filter(|i| rounded(*i)).collect()
    }

    /// The logits of the reference executor, which rounds the activations of these products.
    fn reference(&self, rounded: BTreeSet<Inst>) -> Vec<f64> {
        let shapes = &self.program.shapes;
        let program = assemble(&self.compiled.programs, shapes, &FileTarget).expect("it is small");
        let weights = FileWeights(&self.file);
        let executor = ProgramInterpreter::new(&program, &weights, Options::default(), 1);
        let executor = executor.expect("loads").with_rounded_products(rounded);
        let session = Session::with_executor(executor, self.config);
        whole(&mut session.expect("it has logits"), &self.tokens)
    }

    /// The distance from the reference that rounds as the CPU does.
    fn left_from_rounded(&self, found: &[f64]) -> f64 {
        let wanted = self.reference(self.rounded_products());
        distance(wanted, found.iter().copied()).nmse
    }
}

fn exact(golden: &Golden) -> Vec<f64> {
    golden.logits.iter().map(|&x| f64::from(x)).collect()
}

#[test]
fn golden_models_agree_on_the_cpu() {
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    let mut flipped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in goldens() {
        let name = name(&path);
        if !name.contains(&only) {
            continue;
        }
        let golden = golden(&path);
        let exact = exact(&golden);
        let allowed = allowed(&name, engine(&path, &golden, &name));
        let all: &[usize] = &[1, 2, 3, 4];
        for &devices in Sweep::asked().pick(&all[..3], all) {
            let subject = Subject::new(&path, &placement(devices, DType::F16), &golden.tokens);
            let subject = subject.expect("it has a plan");
            let found = match subject.logits() {
                Ok(found) => found,
                Err(e) => {
                    failed.push(format!("{name} on {devices}: {e}"));
                    continue;
                }
            };
            let nmse = distance(exact.iter().copied(), found.iter().copied()).nmse;
            if nmse.is_nan() || nmse > allowed {
                let far = format!("{name} on {devices}: NMSE {nmse:e}, {allowed:e} allowed");
                // A router may choose other experts where two are nearly as good, and a recurrence may grow what is lost to
                // rounding. It is so if the reference does the same once it rounds as the CPU does.
                let from = subject.left_from_rounded(&found);
                match from <= LEFT * nmse {
                    true => {
                        let far = format!("{far}, {from:e} from the reference with its rounding");
                        flipped.entry(name.clone()).or_default().push(far);
                    }
                    false => {
                        let plain = subject.reference(BTreeSet::new());
                        let plain = distance(exact.iter().copied(), plain).nmse;
                        failed.push(format!(
                            "{far}, {from:e} from the reference with its rounding, which has {plain:e} without"
                        ));
                    }
                }
            }
            let mut one = subject.session(1).expect("it has loaded before");
            let each = one_by_one(&mut one, &golden.tokens);
            let d = distance(found.iter().copied(), each.iter().copied());
            if d.nmse.is_nan() || d.max_abs > 1e-5 {
                failed.push(format!(
                    "{name} on {devices}: token by token differs by {:e}",
                    d.max_abs
                ));
            }
        }
    }
    println!("{flipped:#?}");
    assert!(failed.is_empty(), "{}\n{failed:#?}", failed.len());
    // Rounding costs few models more than it costs the engine.
    assert!(flipped.len() <= 3, "{flipped:#?}");
}
