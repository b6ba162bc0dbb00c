//! The addresses of a batch.

use tpc_ir::program::Program;
use tpc_ir::{Bindings, Symbol, Value};
use tpc_runtime::ExecError;

use super::memory::Region;
use crate::view::View;

/// Per value, the view that launches are given. It is kept from batch to batch, and only what depends on a size that has
/// changed is worked out again.
#[derive(Debug)]
pub(super) struct Frame {
    /// Views by value; of values without a home, an empty one.
    views: Vec<View>,
    /// The views of launches, one after another.
    slots: Vec<View>,
    /// Per value, its slots.
    slots_of: Vec<Vec<u32>>,
    /// Per value with a home, the symbols on which its view depends, a bit each, and whether its buffer moves with the shape.
    depends: Vec<(Value, u32, bool)>,
    /// The batch that the views are of.
    of: Option<(usize, Bindings)>,
}

impl Frame {
    /// The frame of a program whose launches have the values `slots`, one after another.
    pub(super) fn new(program: &Program, slots: &[Value]) -> Frame {
        let values = || program.graph.values();
        let mut slots_of = vec![Vec::new(); values().len()];
        for (i, value) in slots.iter().enumerate() {
            slots_of[value.index()].push(i as u32);
        }
        let views: Vec<View> = values()
            .map(|(_, v)| View::dense(std::ptr::null_mut(), v.ty.dtype, [0; 4]))
            .collect();
        let depends = values().filter_map(|(value, data)| {
            let home = program.home(value)?;
            let layout = &home.layout;
            let sizes = || {
                let strides = layout.strides.iter();
                data.ty.dims.iter().chain(strides).chain([&layout.offset])
            };
            let mask = Symbol::ALL
                .into_iter()
                .filter(|s| sizes().any(|d| d.mentions(*s)))
                .fold(0, |mask, s| mask | 1 << s as u32);
            let moves = program.buffer(home.buffer).extents.len() > 1;
            Some((value, mask, moves))
        });
        Frame {
            slots: slots.iter().map(|v| views[v.index()]).collect(),
            slots_of,
            depends: depends.collect(),
            views,
            of: None,
        }
    }

    /// The view of a value for the current batch.
    pub(super) fn view(&self, value: Value) -> View {
        self.views[value.index()]
    }

    /// The views of launches, one after another.
    pub(super) fn slots(&self) -> &[View] {
        &self.slots
    }

    /// Works out the views for a batch, and tells whether any size has changed.
    ///
    /// # Errors
    /// [`ExecError::Size`] where a size has no value.
    pub(super) fn set(
        &mut self,
        program: &Program,
        arenas: &[Region],
        shape: usize,
        sizes: &Bindings,
    ) -> Result<bool, ExecError> {
        let (changed, moved) = match &self.of {
            Some((s, of)) => {
                let differs = |s: &Symbol| of.get(*s) != sizes.get(*s);
                let changed = Symbol::ALL.into_iter().filter(differs);
                (changed.fold(0, |mask, s| mask | 1 << s as u32), *s != shape)
            }
            None => (u32::MAX, true),
        };
        let first = self.of.is_none();
        self.of = None;
        for &(value, mask, moves) in &self.depends {
            if !first && mask & changed == 0 && !(moves && moved) {
                continue;
            }
            let Some(home) = program.home(value) else {
                continue;
            };
            let ty = &program.graph.value(value).ty;
            let located = home.layout.locate(ty, sizes);
            let located = located.ok_or_else(|| ExecError::Size {
                what: format!("of {value}"),
            })?;
            let buffer = program.buffer(home.buffer);
            let offset = buffer.extent(shape).offset + located.offset;
            let arena = &arenas[buffer.arena.index()];
            let view = View::new(
                arena.ptr().wrapping_add(offset as usize),
                ty.dtype,
                located.dims.map(|d| d as usize),
                located.strides.map(|s| s as usize),
            );
            self.views[value.index()] = view;
            for &slot in &self.slots_of[value.index()] {
                self.slots[slot as usize] = view;
            }
        }
        self.of = Some((shape, *sizes));
        Ok(changed != 0)
    }
}
