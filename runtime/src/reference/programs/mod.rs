//! Runs programs with the reference ops at the program's addresses. A launch runs the instructions that it covers.
//!
//! A wrong program gives wrong results, as on a fast executor: work memory is filled with poison before a batch, and
//! the places' queues run in a random order that respects the waits.

mod memory;

use std::collections::BTreeMap;
use std::sync::Arc;
use tpc_ir::random::Xorshift64;

use tpc_ir::op::{InputKind, Op};
use tpc_ir::program::{ArenaKind, BatchLayout, Phase, Program, Step, StorageFormat, Work};
use tpc_ir::{Bindings, Inst, Launch, Output, Value};

use super::ops::{OpContext, Options, eval, load_weight};
use super::rounding::round_activations;
use crate::error::ExecError;
use crate::executor::{Executor, Host, Interface, Outputs};
use crate::run::{BatchRun, Batches};
use crate::slot::input_tensor;
use crate::tensor::{Shape, Tensor};
use crate::weights::{WeightSource, pack};
use memory::ArenaBytes;

/// An executor of a [`Program`] on the reference ops.
#[derive(Clone, Debug)]
pub struct ProgramInterpreter<'p> {
    program: &'p Program,
    options: Options,
    arenas: Vec<ArenaBytes>,
    weights: BTreeMap<Value, Arc<Tensor>>,
    interface: Interface,
    /// Number of int8 terms for each product whose second operand is rounded as in the CPU executor.
    rounded: BTreeMap<Inst, usize>,
    random: Xorshift64,
    batches: Batches,
}

impl<'p> ProgramInterpreter<'p> {
    /// Returns an interpreter of a verified program with its weights loaded. `seed` determines the order of the queues.
    ///
    /// # Errors
    /// Returns an error if a weight is missing, its type or sizes differ from the declaration, or memory does not
    /// suffice.
    pub fn new(
        program: &'p Program,
        weights: &dyn WeightSource,
        options: Options,
        seed: u64,
    ) -> Result<ProgramInterpreter<'p>, ExecError> {
        let arenas: Result<Vec<ArenaBytes>, ExecError> = program
            .arenas
            .iter()
            .map(|a| ArenaBytes::poisoned(usize::try_from(a.bytes).unwrap_or(usize::MAX)))
            .collect();
        let mut out = ProgramInterpreter {
            program,
            options,
            arenas: arenas?,
            weights: BTreeMap::new(),
            interface: Interface::from_graph(&program.graph),
            rounded: BTreeMap::new(),
            random: Xorshift64::new(seed | 1),
            batches: Batches::default(),
        };
        out.load(weights)?;
        out.reset_states()?;
        Ok(out)
    }

    /// Rounds the activations of these products as the CPU executor does, to a number of int8 terms in blocks of 32.
    /// Other ops stay exact, so a comparison with the CPU executor does not see this rounding.
    pub fn with_rounded_products(
        mut self,
        products: BTreeMap<Inst, usize>,
    ) -> ProgramInterpreter<'p> {
        self.rounded = products;
        self
    }

    fn load(&mut self, source: &dyn WeightSource) -> Result<(), ExecError> {
        let graph = &self.program.graph;
        let weights = || {
            graph
                .values()
                .filter_map(|(v, data)| match graph.def_op(v) {
                    Op::Weight(op) => Some((v, data, op)),
                    _ => None,
                })
        };
        for (value, data, op) in weights() {
            let (tensor, _) = load_weight(op, &data.ty, source)?;
            if self.format(value)? != StorageFormat::FILE {
                // Only kernels read this storage format.
                self.weights.insert(value, Arc::new(tensor));
                continue;
            }
            let packed = pack(&op.tensor, source.weight(&op.tensor)?, op.parts.as_deref())?;
            let (arena, base) = self.base(value, 0)?;
            let len = packed.bytes.len();
            let to = self.arenas[arena].range(base as usize, len)?;
            to.copy_from_slice(&packed.bytes);
        }
        let sizes = Bindings::default();
        for (value, data, _) in weights() {
            if self.weights.contains_key(&value) {
                continue;
            }
            let (arena, base) = self.base(value, 0)?;
            let at = self.locate(value, &sizes)?;
            let tensor = self.arenas[arena].read(base, &at, data.ty.dtype)?;
            self.weights.insert(value, Arc::new(tensor));
        }
        Ok(())
    }

    fn base(&self, value: Value, shape: usize) -> Result<(usize, u64), ExecError> {
        let home = self.program.home(value).ok_or_else(|| homeless(value))?;
        let buffer = self.program.buffer(home.buffer);
        Ok((buffer.arena.index(), buffer.extent(shape).offset))
    }

    fn format(&self, value: Value) -> Result<StorageFormat, ExecError> {
        let home = self.program.home(value).ok_or_else(|| homeless(value))?;
        Ok(self.program.buffer(home.buffer).format)
    }

    fn locate(&self, value: Value, sizes: &Bindings) -> Result<BatchLayout, ExecError> {
        let home = self.program.home(value).ok_or_else(|| homeless(value))?;
        let ty = &self.program.graph.value(value).ty;
        home.layout
            .locate(ty, sizes)
            .ok_or_else(|| ExecError::Size {
                what: format!("of {value}"),
            })
    }

    fn read(&self, value: Value, at: &At<'_>) -> Result<Tensor, ExecError> {
        if let Some(weight) = self.weights.get(&value) {
            return Ok(Tensor::clone(weight));
        }
        let (arena, base) = self.base(value, at.shape)?;
        let located = self.locate(value, at.sizes)?;
        self.arenas[arena].read(base, &located, self.program.graph.value(value).ty.dtype)
    }

    fn write(&mut self, value: Value, tensor: &Tensor, at: &At<'_>) -> Result<(), ExecError> {
        let (arena, base) = self.base(value, at.shape)?;
        let located = self.locate(value, at.sizes)?;
        let dtype = self.program.graph.value(value).ty.dtype;
        self.arenas[arena].write(base, &located, dtype, tensor)
    }

    fn inputs(&mut self, ahead: u32, at: &At<'_>, host: &mut dyn Host) -> Result<(), ExecError> {
        let program = self.program;
        for (value, data) in program.graph.values() {
            let Op::Input(input) = program.graph.def_op(value) else {
                continue;
            };
            let needs = match input.kind {
                InputKind::NextTokens(n) => n,
                _ => 0,
            };
            if needs == ahead {
                let shape = Shape::of(&data.ty, at.sizes)?;
                let tensor =
                    input_tensor(&shape, &data.ty, |ty, to| host.input(&input.kind, ty, to))?;
                self.write(value, &tensor, at)?;
            }
        }
        Ok(())
    }

    fn queues(&mut self, phase: &Phase, at: &At<'_>) -> Result<(), ExecError> {
        let mut done = vec![0_usize; phase.queues.len()];
        loop {
            let ready: Vec<usize> = (0..done.len())
                .filter(|&q| self.is_ready(phase, q, &done))
                .collect();
            if ready.is_empty() {
                break;
            }
            let q = ready[self.random(ready.len())];
            let step = phase.queues[q].steps[done[q]];
            if let Step::Launch(launch) = step {
                self.launch(launch, at)?;
                for (other, queue) in phase.queues.iter().enumerate() {
                    if other != q && self.program.launch(launch).places.contains(&queue.place) {
                        done[other] += 1;
                    }
                }
            }
            done[q] += 1;
        }
        let stuck = done
            .iter()
            .zip(&phase.queues)
            .any(|(n, q)| *n < q.steps.len());
        match stuck {
            true => Err(ExecError::Malformed {
                what: "a queue waits forever".into(),
            }),
            false => Ok(()),
        }
    }

    fn is_ready(&self, phase: &Phase, q: usize, done: &[usize]) -> bool {
        match phase.queues[q].steps.get(done[q]) {
            None => false,
            Some(Step::Wait { queue, steps }) => done[*queue] >= *steps,
            Some(step @ Step::Launch(launch)) => {
                let places = &self.program.launch(*launch).places;
                phase.queues.iter().zip(done).all(|(queue, &n)| {
                    !places.contains(&queue.place) || queue.steps.get(n) == Some(step)
                })
            }
        }
    }

    fn random(&mut self, below: usize) -> usize {
        ((self.random.next_u64() >> 33) % below as u64) as usize
    }

    fn launch(&mut self, launch: Launch, at: &At<'_>) -> Result<(), ExecError> {
        let program = self.program;
        let graph = &program.graph;
        if let Work::Store(n) = program.launch(launch).work {
            if let Output::State { state, value } = &graph.outputs[n] {
                let tensor = self.read(*value, at)?;
                self.write(*state, &tensor, at)?;
            }
            return Ok(());
        }
        let mut inside: BTreeMap<Value, Tensor> = BTreeMap::new();
        for &inst in program.launch(launch).covered_insts() {
            let results = self
                .run(inst, &inside, at)
                .map_err(|e| e.at(|| format!("{launch} {inst} {}", graph.inst(inst).op.name())))?;
            let values = graph.inst(inst).results.iter();
            inside.extend(values.copied().zip(results));
        }
        for (value, tensor) in &inside {
            if program.home(*value).is_some() {
                self.write(*value, tensor, at)?;
            }
        }
        Ok(())
    }

    fn run(
        &self,
        inst: Inst,
        inside: &BTreeMap<Value, Tensor>,
        at: &At<'_>,
    ) -> Result<Vec<Tensor>, ExecError> {
        let data = self.program.graph.inst(inst);
        let operands: Result<Vec<Tensor>, ExecError> = data
            .operands
            .iter()
            .map(|v| match inside.get(v) {
                Some(t) => Ok(t.clone()),
                None => self.read(*v, at),
            })
            .collect();
        let mut operands = operands?;
        if let Some(&terms) = self.rounded.get(&inst)
            && let Some(activations) = operands.get_mut(1)
        {
            let (dims, mut data) = (activations.dims(), activations.reals()?.into_owned());
            round_activations(dims[0], terms, &mut data);
            *activations = Tensor::reals_of(dims, data)?;
        }
        let operands: Vec<&Tensor> = operands.iter().collect();
        let shapes: Result<Vec<Shape>, ExecError> = data
            .results
            .iter()
            .map(|&v| Shape::of(&self.program.graph.value(v).ty, at.sizes))
            .collect();
        let ctx = OpContext {
            bindings: at.sizes,
            options: self.options,
        };
        eval(&data.op, &operands, &shapes?, &ctx)
    }

    fn outputs(&self, phase: usize, at: &At<'_>, out: &mut Outputs) -> Result<(), ExecError> {
        let graph = &self.program.graph;
        let named = graph.outputs.iter().filter_map(|o| match o {
            Output::Named(_, value) => Some(*value),
            Output::State { .. } => None,
        });
        for (i, value) in named.enumerate() {
            if self.program.phase_of(value) == phase && !out.are_unread() {
                *out.place(i)? = Some(self.read(value, at)?);
            }
        }
        Ok(())
    }
}

struct At<'a> {
    sizes: &'a Bindings,
    shape: usize,
}

fn homeless(value: Value) -> ExecError {
    ExecError::Malformed {
        what: format!("the program declares no `home` for {value}"),
    }
}

impl Executor for ProgramInterpreter<'_> {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn lookahead(&self, run: &BatchRun) -> Option<u32> {
        run.lookahead(self.program)
    }

    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError> {
        let program = self.program;
        let Some(next) = run.next(program, &mut self.batches)? else {
            return Ok(());
        };
        let (phase, shape) = (&program.phases[next.phase], next.shape);
        if next.first {
            for (arena, data) in self.arenas.iter_mut().zip(&program.arenas) {
                if data.kind == ArenaKind::Work {
                    arena.poison();
                }
            }
        }
        let sizes = *run.sizes();
        let at = At {
            sizes: &sizes,
            shape,
        };
        self.inputs(phase.lookahead, &at, host)?;
        self.queues(phase, &at)?;
        self.outputs(next.phase, &at, outputs)?;
        run.advance();
        Ok(())
    }

    fn commit(&mut self) {}

    fn discard(&mut self) {}

    fn reset_states(&mut self) -> Result<(), ExecError> {
        for (arena, data) in self.arenas.iter_mut().zip(&self.program.arenas) {
            if data.kind == ArenaKind::States {
                arena.clear();
            }
        }
        Ok(())
    }
}
