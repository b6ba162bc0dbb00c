//! Addresses for the intermediate values of a batch.

use tpc_ir::program::{ArenaKind, BatchShape, BufferData, Extent, Layout, StorageFormat, Target};
use tpc_ir::{Arena, Buffer, Graph, TensorType};

use super::aliases::Aliases;
use super::free_list::FreeList;
use super::lifetimes::Lifetimes;
use super::memory::Memory;

#[derive(Clone, Copy)]
struct LiveBuffer {
    buffer: Buffer,
    arena: Arena,
    life: (usize, usize),
    is_staged: bool,
}

#[derive(Clone, Default)]
struct ArenaState {
    free: FreeList,
    /// Live bytes and peak bytes of results of copies and collectives.
    staged: u64,
    most_staged: u64,
}

impl ArenaState {
    fn begin(&mut self, of: LiveBuffer, bytes: u64, alignment: u64) -> Option<Extent> {
        let offset = self.free.take(bytes, alignment)?;
        if of.is_staged {
            self.staged = self.staged.saturating_add(bytes);
            self.most_staged = self.most_staged.max(self.staged);
        }
        Some(Extent { offset, bytes })
    }

    fn end(&mut self, of: LiveBuffer, extent: Extent, alignment: u64) {
        self.free.give(extent, alignment);
        if of.is_staged {
            self.staged = self.staged.saturating_sub(extent.bytes);
        }
    }
}

/// Assigns addresses to a batch's values outside launches, per batch shape. Returns `None` on overflow.
pub(super) fn assign_addresses(
    (graph, inside): (&Graph, &[bool]),
    shared: &Aliases,
    lifetimes: &Lifetimes,
    shapes: &[BatchShape],
    target: &dyn Target,
    memory: &mut Memory,
) -> Option<()> {
    let (lived, bytes) = buffers((graph, inside), shared, lifetimes, shapes, memory)?;
    let sorted = |at: fn(&LiveBuffer) -> usize| {
        let mut order: Vec<usize> = (0..lived.len()).collect();
        order.sort_by_key(|&i| at(&lived[i]));
        order
    };
    let begins = sorted(|l| l.life.0);
    let ends = sorted(|l| l.life.1);
    let alignment = target.alignment();
    for shape in 0..shapes.len() {
        let mut taken = vec![ArenaState::default(); memory.arenas.len()];
        let mut ending = ends.iter().map(|&i| lived[i]).peekable();
        for &i in &begins {
            let of = lived[i];
            while let Some(gone) = ending.next_if(|gone| gone.life.1 < of.life.0) {
                let extent = memory.buffers[gone.buffer.index()].extents[shape];
                taken[gone.arena.index()].end(gone, extent, alignment);
            }
            let bytes = bytes[i * shapes.len() + shape];
            let extent = taken[of.arena.index()].begin(of, bytes, alignment)?;
            memory.buffers[of.buffer.index()].extents.push(extent);
        }
        for (data, taken) in memory.arenas.iter_mut().zip(taken) {
            data.bytes = data.bytes.max(taken.free.peak());
            if taken.most_staged > 0 {
                let most = memory.staging.entry(data.place).or_default();
                *most = taken.most_staged.max(*most);
            }
        }
    }
    Some(())
}

fn buffers(
    (graph, inside): (&Graph, &[bool]),
    shared: &Aliases,
    lifetimes: &Lifetimes,
    shapes: &[BatchShape],
    memory: &mut Memory,
) -> Option<(Vec<LiveBuffer>, Vec<u64>)> {
    let (mut lived, mut bytes) = (Vec::new(), Vec::new());
    // Consecutive values often have the same type on every device.
    let mut last: Option<&TensorType> = None;
    for (value, data) in graph.values() {
        let op = graph.def_op(value);
        if shared.owners[value.index()] != value || op.is_stored() || inside[value.index()] {
            continue;
        }
        let arena = memory.arena(data.place, ArenaKind::Work);
        let buffer = memory.push(BufferData {
            arena,
            format: StorageFormat::FILE,
            extents: Vec::with_capacity(shapes.len()),
        });
        memory.of[value.index()] = Some(buffer);
        if last == Some(&data.ty) {
            bytes.extend_from_within(bytes.len() - shapes.len()..);
        } else {
            let dense = Layout::dense(&data.ty)?;
            for shape in shapes {
                bytes.push(dense.span_bytes(&data.ty, &shape.most)?);
            }
            last = Some(&data.ty);
        }
        lived.push(LiveBuffer {
            buffer,
            arena,
            life: lifetimes.of[value.index()],
            is_staged: op.is_transfer(),
        });
    }
    Some((lived, bytes))
}
