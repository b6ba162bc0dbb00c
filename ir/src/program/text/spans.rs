use std::fmt;

use crate::entity::{Arena, Buffer, Launch, Value};
use crate::text::{self, Entity, Span};

/// A part of a program, for diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// An entity of the graph; [`Entity::Graph`] for the whole program.
    Graph(Entity),
    /// A shape of batches, by its position.
    Shape(usize),
    /// An arena.
    Arena(Arena),
    /// A buffer.
    Buffer(Buffer),
    /// The home of a value, or the value itself without a home.
    Home(Value),
    /// A launch.
    Launch(Launch),
    /// A phase, by its position.
    Phase(usize),
    /// A queue, by phase and position in the phase.
    Queue(usize, usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Graph(e) => e.fmt(f),
            Part::Shape(n) => write!(f, "shape {n}"),
            Part::Arena(a) => a.fmt(f),
            Part::Buffer(b) => b.fmt(f),
            Part::Home(v) => v.fmt(f),
            Part::Launch(l) => l.fmt(f),
            Part::Phase(n) => write!(f, "phase {n}"),
            Part::Queue(phase, queue) => write!(f, "queue {queue} of phase {phase}"),
        }
    }
}

/// The span of every part of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The spans of its graph.
    pub graph: text::Spans,
    /// The lines of the shapes.
    pub shapes: Vec<Span>,
    /// The lines of the arenas.
    pub arenas: Vec<Span>,
    /// The lines of the buffers.
    pub buffers: Vec<Span>,
    /// The line of each value's home.
    pub homes: Vec<Option<Span>>,
    /// The lines of the launches.
    pub launches: Vec<Span>,
    /// The lines of the phases.
    pub phases: Vec<Span>,
    /// The lines of each phase's queues.
    pub queues: Vec<Vec<Span>>,
}

impl Spans {
    /// Returns the span of a part, if present.
    pub fn get(&self, part: Part) -> Option<Span> {
        match part {
            Part::Graph(e) => self.graph.get(e),
            Part::Shape(n) => self.shapes.get(n).copied(),
            Part::Arena(a) => self.arenas.get(a.index()).copied(),
            Part::Buffer(b) => self.buffers.get(b.index()).copied(),
            Part::Home(v) => {
                let home = self.homes.get(v.index()).copied().flatten();
                home.or_else(|| self.graph.get(Entity::Value(v)))
            }
            Part::Launch(l) => self.launches.get(l.index()).copied(),
            Part::Phase(n) => self.phases.get(n).copied(),
            Part::Queue(phase, queue) => self.queues.get(phase)?.get(queue).copied(),
        }
    }
}
