use tpc_ir::program::{BatchLayout, Program};
use tpc_ir::{Arena, Bindings, DType, Symbol, Value};

use crate::error::ExecError;

/// The view of every value, as passed to launches. `set` updates only views that depend on a changed size.
#[derive(Debug)]
pub struct Frame<V> {
    /// Empty view for a value without a buffer.
    views: Vec<V>,
    slots: Vec<V>,
    slots_of: Vec<Vec<u32>>,
    /// Values with a buffer: a bit mask of the symbols in the view, and true if the buffer moves with the shape.
    depends: Vec<(Value, u32, bool)>,
    of: Option<(usize, Bindings)>,
}

/// Changes from the previous batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// True if a size has changed.
    pub sizes: bool,
    /// True if a view has changed.
    pub views: bool,
}

impl<V: Copy> Frame<V> {
    /// Returns the frame of a program whose launches use the values `slots`. `empty` makes the view of a value without
    /// a buffer.
    pub fn new(program: &Program, slots: &[Value], empty: impl Fn(DType) -> V) -> Frame<V> {
        let values = || program.graph.values();
        let mut slots_of = vec![Vec::new(); values().len()];
        for (i, value) in slots.iter().enumerate() {
            slots_of[value.index()].push(i as u32);
        }
        let views: Vec<V> = values().map(|(_, v)| empty(v.ty.dtype)).collect();
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

    /// Returns a value's view for the current batch.
    pub fn view(&self, value: Value) -> V {
        self.views[value.index()]
    }

    /// Returns the views of all slots, in launch order.
    pub fn slots(&self) -> &[V] {
        &self.slots
    }

    /// Updates the views for a batch and returns the changes. `view` makes a view of a type at an offset in an arena.
    ///
    /// # Errors
    /// Returns [`ExecError::Size`] if a size cannot be evaluated.
    pub fn set(
        &mut self,
        program: &Program,
        shape: usize,
        sizes: &Bindings,
        view: impl Fn(Arena, DType, &BatchLayout) -> V,
    ) -> Result<Change, ExecError> {
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
        let mut views = false;
        for &(value, mask, moves) in &self.depends {
            if !first && mask & changed == 0 && !(moves && moved) {
                continue;
            }
            let Some(home) = program.home(value) else {
                continue;
            };
            let ty = &program.graph.value(value).ty;
            let located = home.layout.locate(ty, sizes);
            let mut located = located.ok_or_else(|| ExecError::Size {
                what: format!("of {value}"),
            })?;
            let buffer = program.buffer(home.buffer);
            located.offset += buffer.extent(shape).offset;
            let view = view(buffer.arena, ty.dtype, &located);
            views = true;
            self.views[value.index()] = view;
            for &slot in &self.slots_of[value.index()] {
                self.slots[slot as usize] = view;
            }
        }
        self.of = Some((shape, *sizes));
        Ok(Change {
            sizes: changed != 0,
            views,
        })
    }
}
