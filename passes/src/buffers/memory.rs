use std::collections::BTreeMap;

use tpc_ir::program::{ArenaData, ArenaKind, BufferData, Extent, Home, StorageFormat};
use tpc_ir::{Arena, Buffer, Graph, Place, Value};

use super::aliases::Aliases;
use crate::layout::Layouts;

/// The memory layout of a program.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The arenas.
    pub arenas: Vec<ArenaData>,
    /// The buffers.
    pub buffers: Vec<BufferData>,
    /// The buffer of each value.
    pub of: Vec<Option<Buffer>>,
    /// Peak bytes of copied and reduced values, per place.
    pub staging: BTreeMap<Place, u64>,
    pub(super) shared: Aliases,
}

impl Memory {
    pub(super) fn arena(&mut self, place: Place, kind: ArenaKind) -> Arena {
        let found = self
            .arenas
            .iter()
            .position(|a| a.place == place && a.kind == kind);
        Arena::new(found.unwrap_or_else(|| {
            let bytes = 0;
            self.arenas.push(ArenaData { place, kind, bytes });
            self.arenas.len() - 1
        }))
    }

    pub(super) fn push_persistent(
        &mut self,
        place: Place,
        kind: ArenaKind,
        format: StorageFormat,
        bytes: u64,
        alignment: u64,
    ) -> Option<Buffer> {
        let arena = self.arena(place, kind);
        let data = &mut self.arenas[arena.index()];
        let offset = data.bytes.checked_next_multiple_of(alignment)?;
        data.bytes = offset.checked_add(bytes)?;
        Some(self.push(BufferData {
            arena,
            format,
            extents: vec![Extent { offset, bytes }],
        }))
    }

    pub(super) fn push(&mut self, data: BufferData) -> Buffer {
        self.buffers.push(data);
        Buffer::new(self.buffers.len() - 1)
    }

    /// Returns the memory location of each value. Returns `None` on overflow.
    pub fn homes(&self, graph: &Graph, layouts: &Layouts) -> Option<Vec<Option<Home>>> {
        let home = |(value, _)| {
            let layout = self.shared.layout(graph, layouts, value)?;
            Some(self.of[Value::index(value)].map(|buffer| Home { buffer, layout }))
        };
        graph.values().map(home).collect()
    }
}
