use std::fmt;
use std::ops::Range;

use crate::entity::{Class, Device, Group, Inst, Value};

/// Consecutive bytes of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span of the bytes `[start, end)`.
    pub const fn new(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    /// Returns the span as a range of byte offsets.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the line of the span's start, from 1.
    pub fn line(self, text: &str) -> usize {
        let before = text.as_bytes().get(..self.start);
        let before = before.unwrap_or(text.as_bytes());
        1 + before.iter().filter(|&&b| b == b'\n').count()
    }
}

/// An entity of a graph, for diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// The whole graph.
    Graph,
    /// A device.
    Device(Device),
    /// A group of devices.
    Group(Group),
    /// A class of split factors.
    Class(Class),
    /// An instruction.
    Inst(Inst),
    /// A value.
    Value(Value),
    /// An output, by its position in [`Graph::outputs`](crate::Graph).
    Output(usize),
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entity::Graph => f.write_str("the graph"),
            Entity::Device(d) => d.fmt(f),
            Entity::Group(g) => g.fmt(f),
            Entity::Class(c) => c.fmt(f),
            Entity::Inst(i) => i.fmt(f),
            Entity::Value(v) => v.fmt(f),
            Entity::Output(i) => write!(f, "output {i}"),
        }
    }
}

/// The span of every entity, in the order of the graph's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The line `graph`.
    pub graph: Span,
    /// The lines of the devices.
    pub devices: Vec<Span>,
    /// The lines of the groups.
    pub groups: Vec<Span>,
    /// The lines of the classes.
    pub classes: Vec<Span>,
    /// The lines of the instructions.
    pub insts: Vec<Span>,
    /// The definitions of the values, up to the sharding.
    pub values: Vec<Span>,
    /// The lines of the outputs.
    pub outputs: Vec<Span>,
}

impl Spans {
    /// Returns the span of an entity, if present.
    pub fn get(&self, entity: Entity) -> Option<Span> {
        match entity {
            Entity::Graph => Some(self.graph),
            Entity::Device(d) => self.devices.get(d.index()).copied(),
            Entity::Group(g) => self.groups.get(g.index()).copied(),
            Entity::Class(c) => self.classes.get(c.index()).copied(),
            Entity::Inst(i) => self.insts.get(i.index()).copied(),
            Entity::Value(v) => self.values.get(v.index()).copied(),
            Entity::Output(i) => self.outputs.get(i).copied(),
        }
    }
}
