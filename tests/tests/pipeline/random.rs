//! Random graphs of few ops, random splits of them, and their execution both ways.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tpc_ir::factor::Var;
use tpc_ir::op::{Inferred, Input, InputKind, MulMat};
use tpc_ir::verify::verify;
use tpc_ir::{Bindings, DType, Dim, Graph, Op, Output, Place, Range, Symbol, TensorType, Value};
use tpc_passes::factors::{Analysis, Factors};
use tpc_passes::lower::lower;
use tpc_passes::plan::{Choice, Refusal, SplitOption, refusal};
use tpc_passes::shard::{ShardError, Users, shard};
use tpc_runtime::reference::{Gelu, Interpreter, MemoryWeights, Options, Tensor};

/// A small deterministic generator of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    pub(super) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub(super) fn real(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
    }

    pub(super) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[(self.next() % list.len() as u64) as usize]
    }
}

/// Builds a graph from inputs, remembering what they may hold.
pub(super) struct Builder {
    pub(super) graph: Graph,
    pub(super) rng: Rng,
    pub(super) tokens: u64,
    /// Per input, the bound of its integers; 0 for reals.
    inputs: BTreeMap<String, (TensorType, u64)>,
    /// Further outputs, beside the one that a case returns.
    pub(super) also: Vec<Value>,
}

pub(super) fn d(n: u64) -> Dim {
    Dim::constant(n)
}

impl Builder {
    pub(super) fn new(seed: u64) -> Builder {
        let mut rng = Rng::new(seed);
        let tokens = rng.range(1, 4);
        Builder {
            graph: Graph::new("random"),
            rng,
            tokens,
            inputs: BTreeMap::new(),
            also: Vec::new(),
        }
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

    pub(super) fn plain(&mut self, dims: [Dim; 4]) -> Value {
        self.input(
            TensorType {
                dtype: DType::F32,
                dims,
            },
            0,
        )
    }

    /// Integers below `bound`.
    pub(super) fn index(&mut self, dims: [Dim; 4], bound: u64) -> Value {
        self.input(
            TensorType {
                dtype: DType::I32,
                dims,
            },
            bound,
        )
    }

    /// Real numbers: an input, or a product whose sum may be pending.
    pub(super) fn real(&mut self, dims: [Dim; 4]) -> Value {
        if self.rng.one_in(2) {
            return self.plain(dims);
        }
        let k = d(self.rng.range(1, 6));
        let [m, n, p, q] = dims;
        let a = self.plain([k.clone(), m, p.clone(), q.clone()]);
        let b = self.plain([k, n, p, q]);
        self.push(MulMat, vec![a, b])
    }

    pub(super) fn push(&mut self, op: impl Into<Op>, operands: Vec<Value>) -> Value {
        self.graph
            .push_inferred(op, operands, Place::Host, None)
            .expect("the generator makes valid ops")
    }

    /// An op with two results.
    pub(super) fn push_two(&mut self, op: impl Into<Op>, operands: Vec<Value>) -> [Value; 2] {
        let op = op.into();
        let types: Vec<&TensorType> = operands.iter().map(|&v| &self.graph.value(v).ty).collect();
        let types = match op.infer(&types).expect("the generator makes valid ops") {
            Inferred::Types(t) => t,
            Inferred::Declared => panic!("the types follow from the operands"),
        };
        let inst = self.graph.push(op, operands, types, Place::Host, None);
        let results = self.graph.inst(inst).results.clone();
        results.try_into().expect("two results")
    }

    pub(super) fn t(&self) -> Dim {
        Symbol::NTokens.into()
    }

    pub(super) fn bindings(&self) -> Bindings {
        Bindings::default().with(Symbol::NTokens, self.tokens)
    }
}

/// What became of a random split.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// Nothing could be split.
    Nothing,
    /// The splits contradict each other.
    Clash,
    /// The verifier rejects them.
    Rejected,
    /// They ran, and gave what the unsplit graph gives.
    Ran,
}

/// Ranges that cover `size` indices: uneven, possibly empty, possibly overlapping.
pub(super) fn random_ranges(rng: &mut Rng, size: u64, devices: usize) -> Vec<Range> {
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
            Range::from_bounds(start.min(w[1]), w[1] + more)
        })
        .scan(0, |at, r| {
            // Starts must not descend.
            *at = r.start.max(*at);
            Some(Range::from_bounds(*at, r.end().max(*at)))
        })
        .collect()
}

/// Random splits of the graph's factors.
pub(super) fn random_choice(
    rng: &mut Rng,
    factors: &Factors,
    analysis: &Analysis,
    devices: usize,
) -> (Choice, bool) {
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
    let mut has_chain = false;
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
            .with
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
                    .any(|b| a == b || analysis.leaves[a].with.contains(b))
            })
        };
        if options.iter().any(taken) {
            continue;
        }
        has_chain |= leaves.len() > 1;
        let ranges = if leaves.len() > 1 {
            // Chain ranges do not overlap; their projections do.
            let mut cuts: Vec<u64> = (1..devices).map(|_| rng.range(0, total)).collect();
            cuts.extend([0, total]);
            cuts.sort_unstable();
            cuts.windows(2)
                .map(|w| Range::from_bounds(w[0], w[1]))
                .collect()
        } else {
            random_ranges(rng, total, devices)
        };
        options.push(SplitOption {
            leaves,
            ranges,
            granule: 1,
            shares_blocks: false,
            kind: "random",
        });
    }
    (Choice::from_options(options), has_chain)
}

/// Splits the builder's graph (whose output is `out`) at random, runs both forms and compares.
///
/// # Panics
/// When what the planner's passes make cannot be lowered or run, or verifies only because the verifier errs.
pub(super) fn split_and_run(mut b: Builder, out: Value) -> Fate {
    let names: Vec<String> = (0..=b.also.len()).map(|i| format!("out{i}")).collect();
    for (name, v) in names.iter().zip([out].iter().chain(&b.also)) {
        b.graph.outputs.push(Output::Named(name.clone(), *v));
    }
    let graph = &b.graph;
    verify(graph).expect("the generator makes valid graphs");
    let devices = b.rng.range(1, 5) as usize;
    let factors = Factors::infer(graph);
    assert!(factors.is_stable(graph), "a second pass refines something");
    let analysis = Analysis::of(graph, &factors);
    let users = Users::of_graph(graph);
    let (choice, has_chain) = random_choice(&mut b.rng, &factors, &analysis, devices);
    if choice.options.is_empty() {
        return Fate::Nothing;
    }
    let cpus: Vec<String> = (0..devices).map(|i| format!("cpu:{i}")).collect();
    let sharded = match shard(graph, &factors, &analysis, &users, &choice, &cpus) {
        Ok(s) => s,
        Err(ShardError::Clash(_)) => return Fate::Clash,
        Err(e) => panic!("{e}\n{graph}"),
    };
    if let Err(errors) = verify(&sharded) {
        assert!(
            has_chain,
            "rejected without a chain: {}\n{sharded}",
            errors[0]
        );
        return Fate::Rejected;
    }
    let programs = lower(&sharded).unwrap_or_else(|e| panic!("{e}\n{sharded}"));
    if let Err(errors) = verify(&programs) {
        panic!("{}\n{programs}", errors[0]);
    }
    let bindings = b.bindings();
    let mut values: BTreeMap<String, Tensor> = BTreeMap::new();
    for (name, (ty, bound)) in &b.inputs {
        let dims: [usize; 4] =
            std::array::from_fn(|i| ty.dims[i].eval(&bindings).expect("small") as usize);
        let n = dims.iter().product();
        let tensor = if *bound > 0 {
            // Distinct along axis 0 where possible, so that writes by index do not collide.
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
    let run = |g: &Graph| -> Vec<f64> {
        let options = Options { gelu: Gelu::Exact };
        let mut interpreter =
            Interpreter::new(g, &MemoryWeights::new(), options).expect("no weights to miss");
        let mut inputs = |kind: &InputKind, _: &TensorType| match kind {
            InputKind::Other(name) => Ok(values[name].clone()),
            other => panic!("unexpected input {other:?}"),
        };
        let out = interpreter
            .run(&bindings, &mut inputs)
            .unwrap_or_else(|e| panic!("{e}\n{g}"));
        let numbers = |t: &Tensor| -> Vec<f64> {
            let ints = |_| t.ints().expect("integers").iter().map(|&i| i as f64);
            t.reals()
                .map_or_else(|e| ints(e).collect(), Cow::into_owned)
        };
        names.iter().flat_map(|n| numbers(&out[n])).collect()
    };
    let (whole, parts) = (run(graph), run(&programs));
    assert_eq!(whole.len(), parts.len(), "{sharded}\n{programs}");
    let nmse = tpc::golden::distance(whole, parts).nmse;
    assert!(nmse <= 1e-20, "NMSE {nmse}\n{sharded}\n{programs}");
    Fate::Ran
}
