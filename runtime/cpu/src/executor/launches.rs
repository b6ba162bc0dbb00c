//! A program's launches and their kernels.

use tpc_ir::program::{Phase, Program, Step, Tensors, WeightPart};
use tpc_ir::{Arena, Bindings, DType, Dim, Interval, Launch, Op, Value};
use tpc_runtime::host::{launch_label, launch_op, max_sizes};
use tpc_runtime::{ExecError, Options};

use super::collective::Exchange;
use super::options::CpuOptions;
use super::product::{Needs, Packed};
use super::scripts::Script;
use super::terms::Terms;
use crate::kernel::Kernel;
use crate::ops::size_of;
use crate::target::{ROWS16, sizes, stack};

#[derive(Debug)]
pub(super) enum Action {
    Kernel(Kernel),
    /// Copies the first operand, then updates the copy.
    Update(Kernel, Kernel),
    Product(Packed),
    /// Packed experts, and the experts on this device.
    Experts(Packed, Option<Interval>),
    /// A packed table, and its rows on this device.
    Rows(Packed, Option<Interval>),
    /// A collective, and its participants' steps.
    Exchange(Exchange, Vec<Meeting>),
}

/// A participant's step of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) participant: usize,
    pub(super) queue: usize,
    pub(super) steps: usize,
}

#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) action: Action,
    /// The first slot of the operands; results follow.
    pub(super) slots: usize,
    pub(super) operands: usize,
    pub(super) results: usize,
    /// The kernel's size, if batches differ in it.
    pub(super) size: Option<Dim>,
    /// True if the previous product has prepared the activations.
    pub(super) kept: bool,
}

impl Prepared {
    /// Sets the kernel's size for this batch.
    pub(super) fn resize(&mut self, sizes: &Bindings) -> Result<(), ExecError> {
        let Some(size) = &self.size else {
            return Ok(());
        };
        let kernel = match &mut self.action {
            Action::Kernel(kernel) | Action::Update(_, kernel) => kernel,
            Action::Product(_) | Action::Experts(..) | Action::Rows(..) | Action::Exchange(..) => {
                return Ok(());
            }
        };
        let value = size.eval(sizes).and_then(|n| usize::try_from(n).ok());
        let value = value.ok_or_else(|| ExecError::Size {
            what: size.to_string(),
        })?;
        kernel.resize(value).map_err(super::io::error)
    }
}

struct Source<'a> {
    program: &'a Program,
    first_byte: &'a FirstByte<'a>,
    options: CpuOptions,
    tensors: &'a Tensors,
}

pub(super) type FirstByte<'a> = dyn Fn(Arena) -> *mut u8 + 'a;

#[derive(Debug, Default)]
pub(super) struct Launches {
    pub(super) prepared: Vec<Prepared>,
    pub(super) slots: Vec<Value>,
    pub(super) scratch: usize,
    pub(super) needs: Needs,
    pub(super) row: usize,
}

impl Launches {
    pub(super) fn new(
        program: &Program,
        first_byte: &FirstByte<'_>,
        options: CpuOptions,
    ) -> Result<Launches, ExecError> {
        let mut out = Launches::default();
        let tensors = Tensors::of(&program.graph);
        let source = Source {
            program,
            first_byte,
            options,
            tensors: &tensors,
        };
        for i in 0..program.launches.len() {
            let prepared = out
                .prepare(&source, Launch::new(i))
                .map_err(|e| e.at(|| launch_label(program, Launch::new(i))))?;
            out.prepared.push(prepared);
        }
        out.share_sums(program, &tensors);
        Ok(out)
    }

    /// Prepares single ops on one place each.
    pub(super) fn of_ops(
        program: &Program,
        first_byte: &FirstByte<'_>,
        options: CpuOptions,
        ops: &[(Op, Vec<Value>, Vec<Value>)],
    ) -> Result<Launches, ExecError> {
        let mut out = Launches::default();
        let source = Source {
            program,
            first_byte,
            options,
            tensors: &Tensors::of(&program.graph),
        };
        for (op, operands, results) in ops {
            let action = out.action(&source, (op, operands, results))?;
            let prepared = out.prepared(action, (op, operands, results));
            out.prepared.push(prepared);
        }
        Ok(out)
    }

    /// Marks products that share activations with the previous product (q, k and v; gate and up), so that tpc
    /// prepares them once.
    pub(super) fn keep_activations(&mut self, phase: &Phase, script: &Script) {
        let mut last: Option<(Value, bool, Terms)> = None;
        for &(queue, i) in script {
            let Step::Launch(launch) = phase.queues[queue].steps[i] else {
                continue;
            };
            let launch = &mut self.prepared[launch.index()];
            if let Action::Product(weight) | Action::Experts(weight, _) = &launch.action {
                let read = self.slots[launch.slots + 1];
                let form = weight.format.takes_quantised();
                // A product that needs one term of the activations can reuse the first of two terms.
                launch.kept = last.is_some_and(|(value, of, terms)| {
                    (value, of) == (read, form) && weight.terms <= terms
                });
                if !launch.kept {
                    last = Some((read, form, weight.terms));
                }
            }
        }
    }

    fn prepare(&mut self, source: &Source<'_>, launch: Launch) -> Result<Prepared, ExecError> {
        let program = source.program;
        let (op, operands, results) = launch_op(program, launch)?;
        let work = (&op, operands.as_slice(), results.as_slice());
        let action = match op.is_collective() {
            true => {
                let dtype = [program.graph.value(operands[0]).ty.dtype];
                let copy = Op::Copy(tpc_ir::op::Copy);
                let copy = select(&copy, &dtype, &dtype, source.options.options)?;
                Action::Exchange(Exchange::new(&op, copy), meetings(program, launch))
            }
            false => self.action(source, work)?,
        };
        Ok(self.prepared(action, work))
    }

    fn prepared(
        &mut self,
        action: Action,
        (op, operands, results): (&Op, &[Value], &[Value]),
    ) -> Prepared {
        let size = size_of(op).filter(|size| size.as_const().is_none());
        let slots = self.slots.len();
        self.slots.extend(operands.iter().chain(results));
        Prepared {
            action,
            slots,
            operands: operands.len(),
            results: results.len(),
            size: size.cloned(),
            kept: false,
        }
    }

    fn action(
        &mut self,
        source: &Source<'_>,
        (op, operands, results): (&Op, &[Value], &[Value]),
    ) -> Result<Action, ExecError> {
        let (program, options) = (source.program, source.options.options);
        if op.is_collective() {
            return Err(malformed("the op runs on several places"));
        }
        let weight = match operands.first() {
            Some(&first) => packed(program, source.first_byte, first)?,
            None => None,
        };
        if let Some(weight) = weight {
            return match op {
                Op::GetRows(op) => Ok(Action::Rows(weight, op.window)),
                Op::MulMat(_) => Ok(Action::Product(self.product(
                    source,
                    (op, operands),
                    weight,
                )?)),
                Op::MulMatId(id) => Ok(Action::Experts(
                    self.product(source, (op, operands), weight)?,
                    id.window,
                )),
                _ => Err(malformed(
                    "an op that is not a product reads a packed weight",
                )),
            };
        }
        let shape = program.shapes.last().map(|s| s.most).unwrap_or_default();
        let kernel = select_bound(program, op, (operands, results), &shape, options)?;
        for shape in &program.shapes {
            let of = |values: &[Value]| -> Result<Vec<[usize; 4]>, ExecError> {
                values
                    .iter()
                    .map(|v| max_sizes(program, *v, &shape.most))
                    .collect()
            };
            let bytes = kernel.scratch_bytes(&of(operands)?, &of(results)?);
            self.scratch = self.scratch.max(bytes);
        }
        if op.is_update() && program.home(operands[0]) != program.home(results[0]) {
            let dtype = [program.graph.value(results[0]).ty.dtype];
            let copy = select(&Op::Copy(tpc_ir::op::Copy), &dtype, &dtype, options)?;
            return Ok(Action::Update(copy, kernel));
        }
        Ok(Action::Kernel(kernel))
    }

    fn product(
        &mut self,
        source: &Source<'_>,
        (op, operands): (&Op, &[Value]),
        weight: Packed,
    ) -> Result<Packed, ExecError> {
        let program = source.program;
        for shape in &program.shapes {
            if let Op::MulMatId(_) = op {
                let ids = max_sizes(program, operands[2], &shape.most)?;
                self.needs.join(Needs {
                    experts: weight.n,
                    routes: ids[0] * ids[1],
                    ..Needs::default()
                });
            }
        }
        let two = source.options.two_terms;
        let small = (source.tensors).reads_at_most(&program.graph, (op, operands), two);
        let terms = if small { Terms::Two } else { Terms::One };
        let weight = Packed { terms, ..weight };
        for shape in &program.shapes {
            let x = max_sizes(program, operands[1], &shape.most)?;
            let rows = x[1] * x[2] * x[3];
            self.needs.join(Needs::of_rows(&weight, rows));
            self.row = self.row.max(x[0]);
        }
        Ok(weight)
    }
}

pub(super) fn select_bound(
    program: &Program,
    op: &Op,
    (operands, results): (&[Value], &[Value]),
    sizes: &Bindings,
    options: Options,
) -> Result<Kernel, ExecError> {
    let bound = op.map_dims(&mut |d| d.eval(sizes).map(tpc_ir::Dim::constant));
    let bound = bound.ok_or_else(|| malformed("a size is not bound"))?;
    let dtypes = |values: &[Value]| -> Vec<DType> {
        values
            .iter()
            .map(|v| program.graph.value(*v).ty.dtype)
            .collect()
    };
    select(&bound, &dtypes(operands), &dtypes(results), options)
}

pub(super) fn select(
    op: &Op,
    operands: &[DType],
    results: &[DType],
    options: Options,
) -> Result<Kernel, ExecError> {
    Kernel::select(op, operands, results, options).map_err(|e| ExecError::NoKernel {
        what: e.to_string(),
    })
}

fn packed(
    program: &Program,
    first_byte: &FirstByte<'_>,
    value: Value,
) -> Result<Option<Packed>, ExecError> {
    let Some(home) = program.home(value) else {
        return Ok(None);
    };
    let buffer = program.buffer(home.buffer);
    if buffer.format != ROWS16 {
        return Ok(None);
    }
    let ty = &program.graph.value(value).ty;
    let dims = sizes(ty).ok_or_else(|| malformed("the sizes of a weight are not bound"))?;
    let part = match program.graph.def_op(value) {
        Op::Weight(op) => WeightPart::of(op, ty),
        _ => WeightPart::whole(ty),
    };
    let (format, n) = stack(part).ok_or_else(|| malformed("a weight is not packed"))?;
    let extent = buffer.extent(0);
    if (format.bytes() * n) as u64 != extent.bytes {
        return Err(malformed("a packed weight has the wrong size"));
    }
    Ok(Some(Packed {
        format,
        n,
        stack: [dims[2], dims[3]],
        ptr: first_byte(buffer.arena).wrapping_add(extent.offset as usize),
        terms: Terms::One,
    }))
}

fn meetings(program: &Program, launch: Launch) -> Vec<Meeting> {
    let places = &program.launch(launch).places;
    let phase = program.phases.iter().find(|p| {
        let mut steps = p.queues.iter().flat_map(|q| &q.steps);
        steps.any(|s| *s == Step::Launch(launch))
    });
    let of = |(participant, place): (usize, &tpc_ir::Place)| {
        let mut queues = phase.iter().flat_map(|p| p.queues.iter().enumerate());
        let (q, queue) = queues.find(|(_, q)| q.place == *place)?;
        let mut steps = queue.steps.iter();
        let steps = steps.position(|s| *s == Step::Launch(launch))?;
        Some(Meeting {
            participant,
            queue: q,
            steps,
        })
    };
    places.iter().enumerate().filter_map(of).collect()
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
