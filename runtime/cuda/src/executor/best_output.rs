//! The output `logits`. Devices can find its largest elements.
//!
//! The host then reads some kilobytes instead of all logits. This works if the host only copies and joins results of
//! devices.

use std::collections::BTreeSet;

use tpc_ir::program::Program;
use tpc_ir::{DType, Launch, Op, Place, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::{max_sizes, outputs};

use super::place::device_index;
use crate::kernels::BestMemory;

/// The name of the output.
const LOGITS: &str = "logits";

/// The parts of the output on devices, and the launches that bring them to the host.
#[derive(Debug)]
pub(super) struct BestOutput {
    /// The index of the output.
    pub(super) output: usize,
    /// The phase that computes the output.
    pub(super) phase: usize,
    pub(super) parts: Vec<OutputPart>,
    /// The launches that copy and join the parts.
    pub(super) tail: BTreeSet<Launch>,
}

/// The logits of some tokens.
#[derive(Clone, Debug)]
pub(super) struct OutputPart {
    pub(super) value: Value,
    pub(super) device: usize,
    /// The token of the first logit.
    pub(super) first: u64,
    /// The memory of the largest logits, by batch shape.
    pub(super) memory: Vec<BestMemory>,
}

impl OutputPart {
    /// Returns the bytes of the memory in the largest batch.
    pub(super) fn bytes(&self) -> usize {
        self.memory.iter().map(|m| m.bytes()).max().unwrap_or(0)
    }
}

/// Returns the output; `None` if the host computes it.
pub(super) fn best_output(program: &Program) -> Result<Option<BestOutput>, ExecError> {
    let named = program.graph.outputs.iter().filter_map(|o| match o {
        tpc_ir::Output::Named(name, _) => Some(name),
        tpc_ir::Output::State { .. } => None,
    });
    let Some(output) = named.into_iter().position(|name| name == LOGITS) else {
        return Ok(None);
    };
    let (phase, value) = outputs(program)[output];
    let mut out = BestOutput {
        output,
        phase,
        parts: Vec::new(),
        tail: BTreeSet::new(),
    };
    let found = out.add(program, value, 0)? && !out.parts.is_empty();
    Ok(found.then_some(out))
}

impl BestOutput {
    /// Adds the parts of a value on the host, which has the logits from token `first` on. Returns false if the host
    /// computes the value.
    fn add(&mut self, program: &Program, value: Value, first: u64) -> Result<bool, ExecError> {
        let data = program.graph.inst(program.graph.value(value).def.0);
        let launch = program.launches.iter().position(|l| {
            l.covered_insts()
                .contains(&program.graph.value(value).def.0)
        });
        let Some(launch) = launch.filter(|_| program.graph.value(value).place == Place::Host)
        else {
            return Ok(false);
        };
        self.tail.insert(Launch::new(launch));
        match &data.op {
            Op::Copy(_) => self.add_part(program, data.operands[0], first),
            Op::Concat(concat) if concat.axis == 0 => {
                let mut first = first;
                for part in &data.operands {
                    let size = program.graph.value(*part).ty.dims[0].as_const();
                    let (Some(size), true) = (size, self.add(program, *part, first)?) else {
                        return Ok(false);
                    };
                    first += size;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn add_part(&mut self, program: &Program, value: Value, first: u64) -> Result<bool, ExecError> {
        let ty = &program.graph.value(value).ty;
        let Some(device) = device_index(program, value)? else {
            return Ok(false);
        };
        let mut memory = Vec::new();
        for shape in &program.shapes {
            let [elements, rows, rest @ ..] = max_sizes(program, value, &shape.most)?;
            if rest != [1, 1] || ty.dtype != DType::F32 {
                return Ok(false);
            }
            memory.push(BestMemory::of(elements, rows));
        }
        if ty.dims[0].as_const() != Some(0) {
            self.parts.push(OutputPart {
                value,
                device,
                first,
                memory,
            });
        }
        Ok(true)
    }
}
