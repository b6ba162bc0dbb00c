//! Random graphs of few ops, random splits of these graphs, and their execution.

use crate::support::verified;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tpc_ir::stage::Executable;

use tpc_ir::factor::Var;
use tpc_ir::op::{InferredTypes, Input, InputKind, MulMat, Weight};
use tpc_ir::random::SplitMix64;
use tpc_ir::verify::verify;
use tpc_ir::{
    AxisTree, Bindings, ClassRef, DType, Dim, Graph, Group, Interval, Op, Output, Place, Sharding,
    Symbol, TensorType, Unreduced, Value, Verified, stage,
};
use tpc_passes::canonicalise::canonicalise;
use tpc_passes::factors::{Analysis, Factors};
use tpc_passes::lower::lower;
use tpc_passes::machine::{Link, Topology, Workload};
use tpc_passes::place::place_on_group;
use tpc_passes::plan::{Choice, PlanRequest, PlannedGraph, Refusal, SplitOption, plan, refusal};
use tpc_passes::rewrite::{Limits, Machine, RULES, RewriteRule, RewrittenGraph, rewrite};
use tpc_passes::shard::{ShardError, shard};
use tpc_runtime::ExecError;
use tpc_runtime::{Gelu, Interpreter, MemoryWeights, Options, Tensor};

/// A source of choices: random numbers, or numbers that proptest gives and shrinks.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    random: SplitMix64,
    /// Given numbers in reverse order of use; `None` to draw from the seed.
    given: Option<Vec<u64>>,
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng {
            random: SplitMix64::new(seed ^ 0x9E37_79B9_7F4A_7C15),
            given: None,
        }
    }

    /// Returns a source of given choices. After the last one, every choice is the simplest.
    pub(crate) fn of(choices: &[u64]) -> Rng {
        Rng {
            given: Some(choices.iter().rev().copied().collect()),
            ..Rng::new(0)
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        match &mut self.given {
            Some(given) => given.pop().unwrap_or(0),
            None => self.random.next_u64(),
        }
    }

    /// Returns a number from `low` to `high` inclusive.
    pub(crate) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// Returns a number in [-1, 1). Tensor elements are not recorded as choices.
    pub(crate) fn real(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[(self.next() % list.len() as u64) as usize]
    }
}

/// Builds a graph. Keeps the range of values of each input.
pub(crate) struct Builder {
    pub(crate) graph: Graph,
    pub(crate) rng: Rng,
    pub(crate) tokens: u64,
    /// The bound of each input's integers; 0 for reals.
    inputs: BTreeMap<String, (TensorType, u64)>,
    weights: MemoryWeights,
    n_weights: usize,
    /// Outputs besides the returned one.
    pub(crate) also: Vec<Value>,
}

pub(crate) fn d(n: u64) -> Dim {
    Dim::constant(n)
}

impl Builder {
    pub(crate) fn new(seed: u64) -> Builder {
        Builder::of(Rng::new(seed))
    }

    pub(crate) fn of(mut rng: Rng) -> Builder {
        let tokens = rng.range(1, 4);
        Builder {
            graph: Graph::new("random"),
            rng,
            tokens,
            inputs: BTreeMap::new(),
            weights: MemoryWeights::new(),
            n_weights: 0,
            also: Vec::new(),
        }
    }

    pub(crate) fn weight(&mut self, dims: [u64; 4]) -> Value {
        let name = format!("w{}", self.n_weights);
        self.n_weights += 1;
        let values: Vec<f32> = (0..dims.iter().product())
            .map(|_| self.rng.real() as f32)
            .collect();
        self.weights.insert_f32(name.clone(), dims, &values);
        let op = Weight {
            tensor: name.clone(),
            parts: None,
        };
        let ty = TensorType {
            dtype: DType::F32,
            dims: dims.map(d),
        };
        let inst = self.graph.push(op, vec![], vec![ty], Place::Host, None);
        let v = self.graph.inst(inst).results[0];
        self.graph.value_mut(v).name = name;
        v
    }

    pub(crate) fn dims(&self, v: Value) -> [Dim; 4] {
        self.graph.value(v).ty.dims.clone()
    }

    fn input(&mut self, ty: TensorType, bound: u64) -> Value {
        let name = format!("in{}", self.inputs.len());
        let op = Input {
            kind: InputKind::Other(name.clone()),
        };
        let inst = self
            .graph
            .push(op, vec![], vec![ty.clone()], Place::Host, None);
        self.inputs.insert(name.clone(), (ty, bound));
        let v = self.graph.inst(inst).results[0];
        self.graph.value_mut(v).name = name;
        v
    }

    pub(crate) fn plain(&mut self, dims: [Dim; 4]) -> Value {
        self.input(
            TensorType {
                dtype: DType::F32,
                dims,
            },
            0,
        )
    }

    pub(crate) fn index(&mut self, dims: [Dim; 4], bound: u64) -> Value {
        self.input(
            TensorType {
                dtype: DType::I32,
                dims,
            },
            bound,
        )
    }

    /// Adds real numbers: an input, or a product whose sum may be unreduced.
    pub(crate) fn real(&mut self, dims: [Dim; 4]) -> Value {
        if self.rng.one_in(2) {
            return self.plain(dims);
        }
        let k = d(self.rng.range(1, 6));
        let [m, n, p, q] = dims;
        let a = self.plain([k.clone(), m, p.clone(), q.clone()]);
        let b = self.plain([k, n, p, q]);
        self.push(MulMat, vec![a, b])
    }

    pub(crate) fn push(&mut self, op: impl Into<Op>, operands: Vec<Value>) -> Value {
        self.graph
            .push_with_inference(op, operands, Place::Host, None)
            .expect("the generator makes valid ops")
    }

    pub(crate) fn push_two(&mut self, op: impl Into<Op>, operands: Vec<Value>) -> [Value; 2] {
        let op = op.into();
        let types: Vec<&TensorType> = operands.iter().map(|&v| &self.graph.value(v).ty).collect();
        let types = match op.infer(&types).expect("the generator makes valid ops") {
            InferredTypes::Types(t) => t,
            InferredTypes::Declared => panic!("the types follow from the operands"),
        };
        let inst = self.graph.push(op, operands, types, Place::Host, None);
        let results = self.graph.inst(inst).results.clone();
        results.try_into().expect("two results")
    }

    /// Makes the wanted values the outputs, in order of their numbers.
    fn finish(&mut self, out: Value) {
        for (i, v) in [out].into_iter().chain(self.also.clone()).enumerate() {
            self.graph.outputs.push(Output::Named(format!("out{i}"), v));
        }
    }

    pub(crate) fn t(&self) -> Dim {
        Symbol::NTokens.into()
    }

    pub(crate) fn bindings(&self) -> Bindings {
        Bindings::default().with(Symbol::NTokens, self.tokens)
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// No class could be split.
    Nothing,
    /// The splits contradict each other.
    PropagationConflict,
    /// The programs computed the outputs of the unsplit graph.
    Ran,
}

/// Returns ranges that cover `size` indices: uneven, possibly empty or overlapping.
pub(crate) fn random_ranges(rng: &mut Rng, size: u64, devices: usize) -> Vec<Interval> {
    let mut cuts: Vec<u64> = (1..devices).map(|_| rng.range(0, size)).collect();
    cuts.push(0);
    cuts.push(size);
    cuts.sort_unstable();
    let overlap = rng.one_in(4);
    cuts.windows(2)
        .map(|w| {
            let more = if overlap {
                rng.range(0, size - w[1]).min(2)
            } else {
                0
            };
            let start = if overlap && w[0] > 0 && rng.one_in(2) {
                w[0] - 1
            } else {
                w[0]
            };
            Interval::from_bounds(start.min(w[1]), w[1] + more)
        })
        .scan(0, |at, r| {
            *at = r.start.max(*at);
            Some(Interval::from_bounds(*at, r.end().max(*at)))
        })
        .collect()
}

pub(crate) fn random_choice(
    rng: &mut Rng,
    factors: &Factors,
    analysis: &Analysis,
    devices: usize,
) -> Choice {
    let free: Vec<Var> = analysis
        .leaves
        .keys()
        .copied()
        .filter(|&l| {
            matches!(
                refusal(factors, analysis, l),
                None | Some(Refusal::NotStored)
            )
        })
        .collect();
    let mut options: Vec<SplitOption> = Vec::new();
    for _ in 0..4 {
        if free.is_empty() {
            break;
        }
        let leaf = *rng.pick(&free);
        let size = factors
            .space
            .size(leaf)
            .as_const()
            .expect("refusal rules out symbols");
        let mut leaves = vec![leaf];
        let mut total = size;
        let minors: Vec<Var> = analysis.leaves[&leaf]
            .co_occurring
            .iter()
            .copied()
            .filter(|m| free.contains(m) && analysis.leaves[m].before.iter().eq([&Some(leaf)]))
            .collect();
        if !minors.is_empty() && rng.one_in(2) {
            let minor = *rng.pick(&minors);
            total *= factors
                .space
                .size(minor)
                .as_const()
                .expect("refusal rules out symbols");
            leaves.push(minor);
        }
        let taken = |o: &SplitOption| {
            o.leaves.iter().any(|a| {
                leaves
                    .iter()
                    .any(|b| a == b || analysis.leaves[a].co_occurring.contains(b))
            })
        };
        if options.iter().any(taken) {
            continue;
        }
        let ranges = if leaves.len() > 1 {
            // Chain ranges do not overlap; their projections do.
            let mut cuts: Vec<u64> = (1..devices).map(|_| rng.range(0, total)).collect();
            cuts.extend([0, total]);
            cuts.sort_unstable();
            cuts.windows(2)
                .map(|w| Interval::from_bounds(w[0], w[1]))
                .collect()
        } else {
            random_ranges(rng, total, devices)
        };
        options.push(SplitOption {
            group: Group::new(0),
            leaves,
            ranges,
            granule: 1,
            shares_blocks: false,
            kind: "random",
            required: false,
        });
    }
    Choice::from_options(options)
}

/// Splits the graph with the output `out` at random, runs it whole and split, and compares.
///
/// # Panics
/// Panics if the sharded graph does not verify, cannot be lowered, or computes other numbers.
pub(crate) fn split_and_run(mut b: Builder, out: Value) -> Fate {
    let devices = b.rng.range(1, 5) as usize;
    split_by(b, out, devices, |rng, _, factors, analysis| {
        random_choice(rng, factors, analysis, devices)
    })
}

/// Splits the graph with the output `out` by `choose`, runs it whole and split, and compares. `choose` takes the graph
/// as built and as placed.
///
/// # Panics
/// Panics if the sharded graph does not verify, cannot be lowered, or computes other numbers.
pub(crate) fn split_by(
    mut b: Builder,
    out: Value,
    devices: usize,
    choose: impl FnOnce(&mut Rng, (&Graph, &Graph), &Factors, &Analysis) -> Choice,
) -> Fate {
    b.finish(out);
    verify(&b.graph).expect("the generator makes valid graphs");
    let placed = verified(place_on_group(&b.graph, &names(devices)));
    let factors = Factors::infer(&placed);
    assert!(
        factors.is_stable(&placed),
        "a second pass refines something"
    );
    let analysis = Analysis::new(&placed, &factors);
    let choice = choose(&mut b.rng, (&b.graph, &placed), &factors, &analysis);
    if choice.options.is_empty() {
        return Fate::Nothing;
    }
    compare(&mut b, &placed, &factors, &analysis, &choice)
}

/// Splits the graph as the planner does, runs it whole and split, and compares. Returns the number of split classes.
///
/// # Panics
/// Panics if the plan cannot be carried out, does not verify, or computes other numbers.
pub(crate) fn plan_and_run(b: Builder, out: Value) -> usize {
    plan_and_run_with(b, out, |_, _| ())
}

pub(crate) fn plan_and_run_with(
    mut b: Builder,
    out: Value,
    change: impl FnOnce(&mut Builder, &mut PlanRequest),
) -> usize {
    b.finish(out);
    let devices = b.rng.range(2, 8) as usize;
    let workload = Workload::new(64, 64, 16, 1);
    let mut request = PlanRequest::new(Topology::default(), workload, names(devices));
    if b.rng.one_in(2) {
        // With free links the planner splits every class.
        request.topology.link = Link::new(1e18, 0.0);
    }
    if b.rng.one_in(3) {
        request.tensor_split = Some(
            (0..devices)
                .map(|_| b.rng.range(0, 3) as f64 + 0.1)
                .collect(),
        );
    }
    change(&mut b, &mut request);
    let model = verified(b.graph.clone());
    let PlannedGraph {
        graph,
        factors,
        analysis,
        choice,
        ..
    } = plan(&model, &request).unwrap_or_else(|e| panic!("{e}"));
    let fate = compare(&mut b, &graph, &factors, &analysis, &choice);
    assert!(
        matches!(fate, Fate::Ran),
        "the planner contradicts itself\n{}",
        b.graph
    );
    choice.options.len()
}

fn names(devices: usize) -> Vec<String> {
    (0..devices).map(|i| format!("cpu:{i}")).collect()
}

fn compare(
    b: &mut Builder,
    placed: &Verified<stage::Placed>,
    factors: &Factors,
    analysis: &Analysis,
    choice: &Choice,
) -> Fate {
    let sharded = match shard(placed, factors, analysis, choice) {
        Ok(s) => verified(s),
        Err(ShardError::Clash(_)) => return Fate::PropagationConflict,
        Err(e) => panic!("{e}\n{placed}"),
    };
    let trial = Trial::of(b);
    execute(b, &trial, &sharded);
    // Draw one of the equal graphs: late and early sums, and mixtures.
    let any = Some(b.rng.next());
    execute(
        b,
        &trial,
        &rewritten(
            &sharded,
            Limits {
                seed: any,
                ..Limits::default()
            },
        ),
    );
    Fate::Ran
}

fn rewritten(sharded: &Verified<stage::Sharded>, limits: Limits) -> Verified<stage::Sharded> {
    verified(rewritten_by(sharded, limits, RULES).graph)
}

fn rewritten_by(
    sharded: &Verified<stage::Sharded>,
    limits: Limits,
    rules: &[&'static RewriteRule],
) -> RewrittenGraph {
    let (topology, workload) = (Topology::default(), Workload::new(64, 64, 16, 1));
    let machine = Machine {
        topology: &topology,
        workload: &workload,
    };
    let out = rewrite(sharded, machine, limits, rules);
    assert!(out.report.is_saturated(), "{sharded}");
    out
}

/// Splits the graph with the output `out` at random, rewrites it by these rules, runs one of the equal graphs and
/// compares. Returns true if the named rule matched.
///
/// # Panics
/// Panics if the rewritten graph does not verify, cannot be lowered, or computes other numbers.
pub(crate) fn rewrite_and_run(
    mut b: Builder,
    out: Value,
    rules: &[&'static RewriteRule],
    name: &str,
) -> bool {
    let devices = b.rng.range(2, 4) as usize;
    b.finish(out);
    let placed = verified(place_on_group(&b.graph, &names(devices)));
    let factors = Factors::infer(&placed);
    let analysis = Analysis::new(&placed, &factors);
    let choice = random_choice(&mut b.rng, &factors, &analysis, devices);
    let Ok(sharded) = shard(&placed, &factors, &analysis, &choice) else {
        return false;
    };
    let sharded = verified(sharded);
    let any = Some(b.rng.next());
    let limits = Limits {
        seed: any,
        ..Limits::default()
    };
    let made = rewritten_by(&sharded, limits, rules);
    let fired = made.report.matches().contains_key(name);
    if fired {
        let trial = Trial::of(&mut b);
        execute(&b, &trial, &verified(made.graph));
    }
    fired
}

/// Counts this thread's programs with and without a proof.
#[derive(Clone, Copy, Debug, Default)]
struct Proofs {
    found: u64,
    missing: u64,
}

impl Proofs {
    const fn count(&mut self, found: bool) {
        if found {
            self.found += 1;
        } else {
            self.missing += 1;
        }
    }
}

thread_local! {
    static PROOFS: RefCell<Proofs> = RefCell::default();
}

/// Asserts that at most `in_thousand` of 1,000 programs were not proved. All programs were correct, but random graphs
/// have forms that no model has.
pub(super) fn unproved_at_most(in_thousand: u64) {
    let Proofs { found, missing } = PROOFS.take();
    println!("{missing} of {} programs were not proved", found + missing);
    assert!(found > 0 && missing * 1000 <= in_thousand * (found + missing));
}

fn execute(b: &Builder, trial: &Trial, sharded: &Verified<stage::Sharded>) {
    let programs = canonicalise(lower(sharded).unwrap_or_else(|e| panic!("{e}\n{sharded}")));
    let programs = verified(programs);
    let proof = super::support::proved(&trial.model, &programs);
    PROOFS.with_borrow_mut(|p| p.count(proof.is_ok()));
    let nmse = trial
        .nmse(b, &programs)
        .unwrap_or_else(|e| panic!("{e}\n{programs}"));
    assert!(nmse <= EXACT, "NMSE {nmse}\n{sharded}\n{programs}");
}

/// The maximum NMSE for another order of sums.
const EXACT: f64 = 1e-20;

struct Trial {
    model: Verified<stage::Model>,
    bindings: Bindings,
    values: BTreeMap<String, Tensor>,
    whole: Vec<f64>,
}

impl Trial {
    fn of(b: &mut Builder) -> Trial {
        let bindings = b.bindings();
        let mut values: BTreeMap<String, Tensor> = BTreeMap::new();
        for (name, (ty, bound)) in &b.inputs {
            let dims: [usize; 4] =
                std::array::from_fn(|i| ty.dims[i].eval(&bindings).expect("small") as usize);
            let n = dims.iter().product();
            let tensor = if *bound > 0 {
                // Distinct along axis 0 if possible, so that indexed writes do not collide.
                let shift = b.rng.next() % bound;
                let data = (0..n)
                    .map(|i: usize| ((i as u64 + shift) % bound) as i64)
                    .collect();
                Tensor::ints_of(dims, data)
            } else {
                Tensor::reals_of(dims, (0..n).map(|_| b.rng.real()).collect())
            };
            values.insert(name.clone(), tensor.expect("sizes agree"));
        }
        let mut out = Trial {
            model: verified(b.graph.clone()),
            bindings,
            values,
            whole: Vec::new(),
        };
        out.whole = out
            .run(b, &out.model)
            .unwrap_or_else(|e| panic!("{e}\n{}", b.graph));
        out
    }

    fn run<S: Executable>(&self, b: &Builder, graph: &Verified<S>) -> Result<Vec<f64>, ExecError> {
        let options = Options {
            gelu: Gelu::Exact,
            ..Options::default()
        };
        let mut interpreter = Interpreter::new(graph, &b.weights, options)?;
        let mut inputs = |kind: &InputKind, _: &TensorType| match kind {
            InputKind::Other(name) => Ok(self.values[name].clone()),
            other => panic!("unexpected input {other:?}"),
        };
        let out = interpreter.run(&self.bindings, &mut inputs)?;
        let numbers = |t: &Tensor| -> Vec<f64> {
            let ints = |_| t.ints().expect("integers").iter().map(|&i| i as f64);
            t.reals()
                .map_or_else(|e| ints(e).collect(), Cow::into_owned)
        };
        Ok(out.values().flat_map(numbers).collect())
    }

    fn nmse(&self, b: &Builder, programs: &Verified<stage::Programs>) -> Result<f64, ExecError> {
        let parts = self.run(b, programs)?;
        assert_eq!(self.whole.len(), parts.len(), "{programs}");
        Ok(tpc_core::golden::distance(self.whole.iter().copied(), parts).nmse)
    }
}

/// The verifier's verdict on a sharded graph, compared with the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Accepted, with correct outputs.
    Admitted,
    /// Rejected; the graph cannot be lowered, or has wrong outputs.
    Refused,
    /// Rejected, but the outputs are correct.
    FalseAlarm,
}

/// Plans the graph with the output `out`, changes the sharded graph at random, and compares the verifier's verdict with
/// the outputs.
///
/// # Panics
/// Panics if the verifier admits a graph that cannot be lowered or computes other numbers.
pub(crate) fn judge(mut b: Builder, out: Value) -> Option<Verdict> {
    b.finish(out);
    let devices = b.rng.range(2, 4) as usize;
    let workload = Workload::new(64, 64, 16, 1);
    let mut request = PlanRequest::new(Topology::default(), workload, names(devices));
    request.topology.link = Link::new(1e18, 0.0);
    let p = plan(&verified(b.graph.clone()), &request).unwrap_or_else(|e| panic!("{e}"));
    let sharded = shard(&p.graph, &p.factors, &p.analysis, &p.choice);
    let sharded = verified(sharded.unwrap_or_else(|e| panic!("{e}\n{}", p.graph)));
    let any = Some(b.rng.next());
    let mut sharded = rewritten(
        &sharded,
        Limits {
            seed: any,
            ..Limits::default()
        },
    )
    .into_graph();
    if !resharded(&mut sharded, &mut b.rng) {
        return None;
    }
    let trial = Trial::of(&mut b);
    let admitted = verify(&sharded).is_ok();
    // A rejected graph may violate the invariants of lowering.
    let sharded = Verified::unchecked(sharded);
    let made = catch_unwind(AssertUnwindSafe(|| {
        let programs = canonicalise(lower(&sharded).map_err(|e| e.to_string())?);
        let programs = Verified::new(programs).map_err(|e| e.to_string())?;
        let proved = super::support::proved(&trial.model, &programs).is_ok();
        let nmse = trial.nmse(&b, &programs).map_err(|e| e.to_string())?;
        Ok::<_, String>((nmse, proved))
    }));
    let right = matches!(made, Ok(Ok((nmse, _))) if nmse <= EXACT);
    let proved = matches!(made, Ok(Ok((_, true))));
    assert!(right || !proved, "proved, but {made:?}\n{sharded}");
    assert!(right || !admitted, "admitted, but {made:?}\n{sharded}");
    Some(match (admitted, right) {
        (true, _) => Verdict::Admitted,
        (false, false) => Verdict::Refused,
        (false, true) => Verdict::FalseAlarm,
    })
}

/// Changes the sharding of a value on the group, or the ranges of a class. Returns false if there is no such value or
/// class.
fn resharded(graph: &mut Graph, rng: &mut Rng) -> bool {
    let live = live(graph);
    let on_group: Vec<Value> = graph
        .values()
        .filter(|(v, data)| live.contains(v) && matches!(data.place, Place::Group(_)))
        .map(|(v, _)| v)
        .collect();
    let mut used = Vec::new();
    for &v in &on_group {
        let axes = &graph.value(v).sharding.axes;
        axes.iter().flatten().for_each(|a| a.classes(&mut used));
    }
    if used.is_empty() {
        return false;
    }
    let class = rng.pick(&used).class;
    let v = *rng.pick(&on_group);
    let old = graph.value(v).sharding.clone();
    let new = match rng.range(0, 4) {
        0 => Sharding::mirrored(),
        1 => Sharding::unreduced(Unreduced::Partial),
        2 => {
            let like = |w: &&Value| graph.value(**w).ty == graph.value(v).ty;
            let alike: Vec<&Value> = on_group.iter().filter(like).collect();
            graph.value(**rng.pick(&alike)).sharding.clone()
        }
        3 => {
            let axis = rng.range(0, 3) as usize;
            let mut axes = [None, None, None, None];
            let size = graph.value(v).ty.dims[axis].as_const();
            if size == Some(graph.class(class).size) {
                let class = ClassRef { class, div: 1 };
                axes[axis] = Some(Box::new(AxisTree::Leaf {
                    size: graph.value(v).ty.dims[axis].clone(),
                    split: Some(class),
                }));
            }
            Sharding {
                axes,
                ..Sharding::mirrored()
            }
        }
        _ => {
            let data = &mut graph.classes[class.index()];
            let rank = rng.range(0, data.ranges.len() as u64 - 1) as usize;
            let range = &mut data.ranges[rank];
            if range.len == 0 {
                return false;
            }
            range.len -= 1;
            return true;
        }
    };
    let changed = new != old;
    graph.value_mut(v).sharding = new;
    changed
}

fn live(graph: &Graph) -> BTreeSet<Value> {
    let mut out: BTreeSet<Value> = graph.outputs.iter().map(Output::value).collect();
    for (_, data) in graph.insts().rev() {
        if data.results.iter().any(|v| out.contains(v)) {
            out.extend(&data.operands);
        }
    }
    out
}
