use std::fmt;

use super::spans::Spans;
use crate::dims::{Dim, Symbol};
use crate::entity::{Arena, Buffer, Inst, Launch, Value};
use crate::op::quoted;
use crate::place::Place;
use crate::program::{
    BatchShape, BufferData, Home, LaunchData, Layout, Phase, Program, Step, StorageFormat, Work,
};
use crate::text::{Printer, Span};

/// The text of a program and the positions of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedProgram {
    /// The text.
    pub text: String,
    /// The spans of the program's parts.
    pub spans: Spans,
}

/// Prints a program, valid or not, for [`parse`](super::parse()). Dangling handles do not parse.
pub fn print(program: &Program) -> PrintedProgram {
    let mut p = Lines {
        printer: Printer::default(),
        spans: Spans::default(),
    };
    p.printer.graph(&program.graph);
    p.memory(program);
    p.homes(program);
    p.work(program);
    PrintedProgram {
        text: p.printer.text,
        spans: Spans {
            graph: p.printer.spans,
            ..p.spans
        },
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self).text)
    }
}

struct Lines {
    printer: Printer,
    spans: Spans,
}

impl Lines {
    fn gap(&mut self) {
        self.printer.text.push('\n');
    }

    fn line(&mut self, args: fmt::Arguments<'_>) -> Span {
        let start = self.printer.text.len();
        self.printer.put(args);
        self.printer.end_line(start)
    }

    fn memory(&mut self, program: &Program) {
        self.gap();
        for BatchShape { most } in &program.shapes {
            let sizes = Symbol::ALL.map(|s| format!("{} = {}", s.name(), most.get(s)));
            let span = self.line(format_args!("shape {{{}}}", sizes.join(", ")));
            self.spans.shapes.push(span);
        }
        self.gap();
        for (i, arena) in program.arenas.iter().enumerate() {
            let (name, kind) = (Arena::new(i), arena.kind.name());
            let (place, bytes) = (arena.place, arena.bytes);
            let span = self.line(format_args!("arena {name} @{place} {kind} size {bytes}"));
            self.spans.arenas.push(span);
        }
        self.gap();
        for (
            i,
            BufferData {
                arena,
                format,
                extents,
            },
        ) in program.buffers.iter().enumerate()
        {
            let format = match *format == StorageFormat::FILE {
                true => String::new(),
                false => format!(" {}", format.name()),
            };
            let ranges: Vec<String> = extents
                .iter()
                .map(|e| format!("{}:{}", e.offset, e.bytes))
                .collect();
            let (name, ranges) = (Buffer::new(i), ranges.join(", "));
            let span = self.line(format_args!("buffer {name} = {arena}{format} [{ranges}]"));
            self.spans.buffers.push(span);
        }
    }

    fn homes(&mut self, program: &Program) {
        self.gap();
        self.spans.homes = vec![None; program.graph.values().len()];
        for ((value, data), home) in program.graph.values().zip(&program.homes) {
            let Some(Home { buffer, layout }) = home else {
                continue;
            };
            let start = self.printer.text.len();
            self.printer.put(format_args!("home {value} = {buffer}"));
            let dense = Layout::dense(&data.ty);
            if layout.offset != Dim::ZERO {
                self.printer.put(format_args!(" at {}", layout.offset));
            }
            if dense.is_none_or(|d| d.strides != layout.strides) {
                self.printer.text.push_str(" strides [");
                self.printer.list(layout.strides.iter());
                self.printer.text.push(']');
            }
            self.spans.homes[value.index()] = Some(self.printer.end_line(start));
        }
    }

    fn work(&mut self, program: &Program) {
        self.gap();
        for (i, launch) in program.launches.iter().enumerate() {
            let span = self.launch(program, Launch::new(i), launch);
            self.spans.launches.push(span);
        }
        for phase in &program.phases {
            self.gap();
            let span = self.line(format_args!("phase {}", phase.lookahead));
            self.spans.phases.push(span);
            let queues = phase
                .queues
                .iter()
                .map(|q| self.queue(phase, q.place, &q.steps));
            let queues = queues.collect();
            self.spans.queues.push(queues);
        }
    }

    fn launch(&mut self, program: &Program, name: Launch, launch: &LaunchData) -> Span {
        let start = self.printer.text.len();
        let kernel = quoted(&launch.kernel);
        self.printer.put(format_args!("launch {name} {kernel} "));
        self.printer.list(launch.places.iter().map(at));
        let inst = |i: &Inst| inst_name(program, *i);
        match &launch.work {
            Work::Compute(insts) => {
                self.printer.text.push_str(" = compute ");
                self.printer.list(insts.iter().map(inst));
            }
            Work::Transfer(i) => self.printer.put(format_args!(" = transfer {}", inst(i))),
            Work::Store(output) => self.printer.put(format_args!(" = store {output}")),
        }
        self.printer.end_line(start)
    }

    fn queue(&mut self, phase: &Phase, place: Place, steps: &[Step]) -> Span {
        let start = self.printer.text.len();
        self.printer.put(format_args!("queue {} = [", at(&place)));
        self.printer.list(steps.iter().map(|step| match *step {
            Step::Launch(launch) => launch.to_string(),
            Step::Wait { queue, steps } => match phase.queues.get(queue) {
                Some(q) => format!("{}:{steps}", at(&q.place)),
                None => format!("q{queue}:{steps}"),
            },
        }));
        self.printer.text.push(']');
        self.printer.end_line(start)
    }
}

fn at(place: &Place) -> String {
    format!("@{place}")
}

fn inst_name(program: &Program, inst: Inst) -> String {
    let results = match inst.index() < program.graph.insts().len() {
        true => program.graph.inst(inst).results.as_slice(),
        false => &[],
    };
    results
        .first()
        .map_or_else(|| inst.to_string(), Value::to_string)
}
