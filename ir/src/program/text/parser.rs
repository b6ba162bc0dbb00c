use std::collections::HashMap;

use super::spans::Spans;
use crate::dims::{Bindings, Symbol};
use crate::entity::{Arena, Buffer, Inst, Launch, Value};
use crate::graph::Graph;
use crate::place::Place;
use crate::program::{
    ArenaData, ArenaKind, BatchShape, BufferData, Extent, Home, LaunchData, Layout, Phase, Program,
    Queue, Step, StorageFormat, Work,
};
use crate::text::{
    Kind, MAX_ERRORS, ParseError, ParseErrorKind, Parser, Referent, Span, Token, parse_with,
};
use crate::types::RANK;
use crate::verify::stage::Violations;
use crate::verify::{Verified, stage};

/// An unverified program and the positions of its parts in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedProgram {
    graph: Graph,
    shapes: Vec<BatchShape>,
    arenas: Vec<ArenaData>,
    buffers: Vec<BufferData>,
    homes: Vec<Option<Home>>,
    launches: Vec<LaunchData>,
    phases: Vec<Phase>,
    /// The positions in the text.
    pub spans: Spans,
}

impl ParsedProgram {
    /// The program's graph.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Verifies the graph; the rest of the program stays unverified.
    ///
    /// # Errors
    /// Returns an error if the graph is not at the stage of programs.
    pub fn program(self) -> Result<Program, Violations> {
        Ok(Program {
            graph: Verified::<stage::Programs>::new(self.graph)?,
            shapes: self.shapes,
            arenas: self.arenas,
            buffers: self.buffers,
            homes: self.homes,
            launches: self.launches,
            phases: self.phases,
        })
    }
}

/// Parses a program in [this form](super). Buffers may use the given storage formats and the file's format.
///
/// # Errors
/// Returns the defects by line, at most one per line and [`MAX_ERRORS`] in all.
pub fn parse(text: &str, formats: &[StorageFormat]) -> Result<ParsedProgram, Vec<ParseError>> {
    let mut lines = Lines {
        formats: formats.to_vec(),
        ..Lines::default()
    };
    let graph = parse_with(text, &mut |parser, word, start| {
        let line = match word {
            "shape" => Lines::shape,
            "arena" => Lines::arena,
            "buffer" => Lines::buffer,
            "home" => Lines::home,
            "launch" => Lines::launch,
            "phase" => Lines::phase,
            "queue" => Lines::queue,
            _ => return Ok(false),
        };
        parser.next()?;
        line(&mut lines, parser, start)?;
        Ok(true)
    })?;
    let mut errors = lines.resolve();
    if !errors.is_empty() {
        errors.truncate(MAX_ERRORS);
        return Err(errors);
    }
    let values = graph.graph.values().len();
    lines.homes.resize(values, None);
    lines.spans.homes.resize(values, None);
    lines.spans.graph = graph.spans;
    Ok(ParsedProgram {
        graph: graph.graph,
        shapes: lines.shapes,
        arenas: lines.arenas,
        buffers: lines.buffers,
        homes: lines.homes,
        launches: lines.launches,
        phases: lines.phases,
        spans: lines.spans,
    })
}

/// A wait for a place whose queue may be on a later line.
struct UnresolvedWait {
    phase: usize,
    queue: usize,
    step: usize,
    place: Place,
    span: Span,
}

#[derive(Default)]
struct Lines {
    formats: Vec<StorageFormat>,
    shapes: Vec<BatchShape>,
    arenas: Vec<ArenaData>,
    buffers: Vec<BufferData>,
    homes: Vec<Option<Home>>,
    launches: Vec<LaunchData>,
    phases: Vec<Phase>,
    pending: Vec<UnresolvedWait>,
    spans: Spans,
}

impl Lines {
    fn shape(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        p.expect(b'{', "`{` and the largest sizes")?;
        let mut most = Bindings::default().in_units(p.graph.cell_unit.0);
        let mut given = [false; Symbol::ALL.len()];
        p.list(b'}', "`,` or `}`", |p| {
            let (word, span) = p.word("a symbol such as `n_tokens`")?;
            let Some(symbol) = Symbol::from_name(word) else {
                let defect = "unknown symbol";
                return Err(ParseError::new(ParseErrorKind::Size { defect }, span));
            };
            if std::mem::replace(&mut given[symbol as usize], true) {
                let defect = "the symbol is given twice";
                return Err(ParseError::new(ParseErrorKind::Size { defect }, span));
            }
            p.expect(b'=', "`=`")?;
            most = most.with(symbol, p.int("the largest size")?.0);
            Ok(())
        })?;
        p.expect_end()?;
        self.shapes.push(BatchShape { most });
        self.spans.shapes.push(p.span_from(start));
        Ok(())
    }

    fn arena(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        let (n, _, handle) = p.handle(Kind::Arena)?;
        let place = place(p)?;
        let kinds = "`weights`, `states` or `work`";
        let kind = match p.peek()?.0 {
            Token::Word(word) => ArenaKind::ALL.into_iter().find(|k| k.name() == word),
            _ => None,
        };
        let Some(kind) = kind else {
            return p.expected_error(kinds);
        };
        p.next()?;
        p.expect_word("size", "`size`")?;
        let (bytes, _) = p.int("the number of bytes")?;
        p.expect_end()?;
        let entity = Referent::Entity(self.arenas.len());
        p.names.define(Kind::Arena, n, entity, handle)?;
        self.arenas.push(ArenaData { place, kind, bytes });
        self.spans.arenas.push(p.span_from(start));
        Ok(())
    }

    fn buffer(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        let (n, _, handle) = p.handle(Kind::Buffer)?;
        p.expect(b'=', "`=`")?;
        let arena = Arena::new(p.reference(Kind::Arena)?);
        let format = match p.peek()?.0 {
            Token::Word(word) => {
                let mut known = self.formats.iter().chain([&StorageFormat::FILE]);
                known.find(|f| f.name() == word).copied()
            }
            _ => None,
        };
        if format.is_some() {
            p.next()?;
        }
        p.expect(b'[', "`[` and ranges `offset:bytes`, or a stored format")?;
        let ranges = p.list(b']', "`,` or `]`", Parser::range)?;
        p.expect_end()?;
        let entity = Referent::Entity(self.buffers.len());
        p.names.define(Kind::Buffer, n, entity, handle)?;
        let extents = ranges.iter().map(|r| Extent {
            offset: r.start,
            bytes: r.len,
        });
        self.buffers.push(BufferData {
            arena,
            format: format.unwrap_or_default(),
            extents: extents.collect(),
        });
        self.spans.buffers.push(p.span_from(start));
        Ok(())
    }

    fn home(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        let (n, _, handle) = p.handle(Kind::Value)?;
        let referent = p.names.get(Kind::Value, n, &format!("v{n}"), handle)?;
        p.expect(b'=', "`=`")?;
        let buffer = Buffer::new(p.reference(Kind::Buffer)?);
        let offset = match p.eat_word("at")? {
            true => Some(p.dim()?),
            false => None,
        };
        let strides = match p.eat_word("strides")? {
            true => Some(strides(p)?),
            false => None,
        };
        p.expect_end()?;
        let Referent::Entity(value) = referent else {
            return Ok(());
        };
        let ty = &p.graph.value(Value::new(value)).ty;
        let mut layout = match (Layout::dense(ty), &strides) {
            (Some(dense), _) => dense,
            (None, Some(strides)) => Layout {
                offset: crate::dims::Dim::ZERO,
                strides: strides.clone(),
            },
            (None, None) => {
                let defect = "the value's rows are not whole blocks, or too large";
                return Err(ParseError::new(
                    ParseErrorKind::Size { defect },
                    p.span_from(start),
                ));
            }
        };
        layout.offset = offset.unwrap_or(layout.offset);
        layout.strides = strides.unwrap_or(layout.strides);
        if self.homes.len() <= value {
            self.homes.resize(value + 1, None);
            self.spans.homes.resize(value + 1, None);
        }
        if self.homes[value].is_some() {
            let (what, handle) = ("the home of", format!("v{n}"));
            return Err(ParseError::new(
                ParseErrorKind::Redefined { what, handle },
                p.span_from(start),
            ));
        }
        self.homes[value] = Some(Home { buffer, layout });
        self.spans.homes[value] = Some(p.span_from(start));
        Ok(())
    }

    fn launch(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        let (n, _, handle) = p.handle(Kind::Launch)?;
        let kernel = p.string_literal("the kernel's name in quotes")?;
        let mut places = vec![place(p)?];
        while p.eat(b',')? {
            places.push(place(p)?);
        }
        p.expect(b'=', "`=` or `,`")?;
        let work = if p.eat_word("compute")? {
            let mut insts = vec![inst(p)?];
            while p.eat(b',')? {
                insts.push(inst(p)?);
            }
            Work::Compute(insts)
        } else if p.eat_word("transfer")? {
            Work::Transfer(inst(p)?)
        } else if p.eat_word("store")? {
            let (output, span) = p.int("the number of an output")?;
            let defect = "the output number exceeds 2^32 - 1";
            let large = |_| ParseError::new(ParseErrorKind::Number { defect }, span);
            Work::Store(usize::try_from(output).map_err(large)?)
        } else {
            return p.expected_error("`compute`, `transfer` or `store`");
        };
        p.expect_end()?;
        let entity = Referent::Entity(self.launches.len());
        p.names.define(Kind::Launch, n, entity, handle)?;
        self.launches.push(LaunchData {
            kernel,
            places,
            work,
        });
        self.spans.launches.push(p.span_from(start));
        Ok(())
    }

    /// A rejected line also begins a phase, so that its queues are not reported.
    fn phase(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        self.phases.push(Phase {
            lookahead: 0,
            queues: Vec::new(),
        });
        self.spans.phases.push(start);
        self.spans.queues.push(Vec::new());
        let (ahead, span) = p.int("the number of tokens ahead")?;
        p.expect_end()?;
        let defect = "the number of tokens exceeds 2^32 - 1";
        let large = |_| ParseError::new(ParseErrorKind::Number { defect }, span);
        let ahead = u32::try_from(ahead).map_err(large)?;
        if let (Some(phase), Some(span)) = (self.phases.last_mut(), self.spans.phases.last_mut()) {
            phase.lookahead = ahead;
            *span = p.span_from(start);
        }
        Ok(())
    }

    fn queue(&mut self, p: &mut Parser<'_>, start: Span) -> Result<(), ParseError> {
        let at = place(p)?;
        p.expect(b'=', "`=`")?;
        p.expect(b'[', "`[` and steps")?;
        let phase = self.phases.len().checked_sub(1);
        let queue = self.phases.last().map_or(0, |p| p.queues.len());
        let mut pending = Vec::new();
        let mut step = 0;
        let steps = p.list(b']', "`,` or `]`", |p| {
            step += 1;
            let begin = p.peek()?.1;
            if p.peek()?.0 != Token::Punct(b'@') {
                return Ok(Step::Launch(Launch::new(p.reference(Kind::Launch)?)));
            }
            let place = place(p)?;
            p.expect(b':', "`:` and a number of steps")?;
            let (steps, span) = p.int("a number of steps")?;
            let defect = "the number of steps exceeds the limit of a queue";
            let large = |_| ParseError::new(ParseErrorKind::Number { defect }, span);
            let steps = usize::try_from(steps).map_err(large)?;
            pending.push(UnresolvedWait {
                phase: phase.unwrap_or(0),
                queue,
                step: step - 1,
                place,
                span: p.span_from(begin),
            });
            // A placeholder, which `resolve` replaces.
            Ok(Step::Wait {
                queue: usize::MAX,
                steps,
            })
        })?;
        p.expect_end()?;
        let (Some(phase), Some(spans)) = (self.phases.last_mut(), self.spans.queues.last_mut())
        else {
            let expected = "a line `phase` above the first queue";
            let found = "`queue`".to_owned();
            return Err(ParseError::new(
                ParseErrorKind::Syntax { expected, found },
                start,
            ));
        };
        phase.queues.push(Queue { place: at, steps });
        spans.push(p.span_from(start));
        self.pending.extend(pending);
        Ok(())
    }

    /// Resolves the place of each wait to the first queue of that place in the phase.
    fn resolve(&mut self) -> Vec<ParseError> {
        let positions: Vec<HashMap<Place, usize>> = self
            .phases
            .iter()
            .map(|phase| {
                let queues = phase.queues.iter().enumerate().rev();
                queues.map(|(i, q)| (q.place, i)).collect()
            })
            .collect();
        let mut errors = Vec::new();
        let mut last = None;
        for wait in self.pending.drain(..) {
            let (phase, line) = (wait.phase, (wait.phase, wait.queue));
            match positions[phase].get(&wait.place) {
                Some(&found) => {
                    let step = &mut self.phases[phase].queues[wait.queue].steps[wait.step];
                    if let Step::Wait { queue, .. } = step {
                        *queue = found;
                    }
                }
                None if last == Some(line) => {}
                None => {
                    last = Some(line);
                    let (what, handle) = ("the phase's queue of", format!("@{}", wait.place));
                    errors.push(ParseError::new(
                        ParseErrorKind::Undefined { what, handle },
                        wait.span,
                    ));
                }
            }
        }
        errors
    }
}

fn place(p: &mut Parser<'_>) -> Result<Place, ParseError> {
    p.expect(b'@', "`@` and a place")?;
    p.place()
}

fn strides(p: &mut Parser<'_>) -> Result<[crate::dims::Dim; RANK], ParseError> {
    let span = p.peek()?.1;
    p.expect(b'[', "`[` and four strides")?;
    let strides = p.list(b']', "`,`, `]`, `*`, `+` or `-`", Parser::dim)?;
    strides.try_into().map_err(|strides: Vec<_>| {
        let found = strides.len();
        ParseError::new(ParseErrorKind::Rank { found }, p.span_from(span))
    })
}

/// Reads an instruction, named by a result.
fn inst(p: &mut Parser<'_>) -> Result<Inst, ParseError> {
    Ok(match p.referent(Kind::Value)? {
        Referent::Entity(i) => p.graph.value(Value::new(i)).def.0,
        Referent::Rejected => Inst::new(0),
    })
}
