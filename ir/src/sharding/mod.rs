//! Shardings: the division of a value among the devices of a group.
//!
//! A sharding names, per axis, the split leaves of its factor tree and their [class], whose ranges are the indices of
//! each device.
//!
//! [class]: ClassData

mod axis;
mod class;

pub use axis::{AxisTree, ClassRef, MAX_INTERVALS, granule_intervals, total_len};
pub use class::ClassData;

use crate::dims::Dim;
use crate::entity::Class;
use crate::interval::Interval;
use crate::types::{RANK, TensorType};

/// The unreduced sum over the devices' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreduced {
    /// No unreduced sum.
    None,
    /// The value is the sum over the group's devices.
    Partial,
    /// [`Unreduced::Partial`], with each row zero except on the device that owns its expert in the class.
    OwnerMasked(Class),
}

/// The division of a value among devices; [`Sharding::mirrored`] on the host and on single devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sharding {
    /// The factor tree of each axis, with its split leaves; `None` for a whole axis.
    pub axes: [Option<Box<AxisTree>>; RANK],
    /// The unreduced sum over the devices. A value is never both split and unreduced.
    pub unreduced: Unreduced,
    /// Storage granule of axis 0 in elements: each device stores the whole blocks of this size that its range
    /// touches. The granule is 1 except for a quantised tensor whose ranges end inside blocks.
    pub granule: u64,
}

impl Default for Sharding {
    fn default() -> Self {
        Sharding::mirrored()
    }
}

impl Sharding {
    /// Returns the sharding of a value that is whole on every device.
    pub const fn mirrored() -> Sharding {
        Sharding {
            axes: [None, None, None, None],
            unreduced: Unreduced::None,
            granule: 1,
        }
    }

    /// Returns an unsplit sharding with an unreduced sum.
    pub const fn unreduced(unreduced: Unreduced) -> Sharding {
        Sharding {
            axes: [None, None, None, None],
            unreduced,
            granule: 1,
        }
    }

    /// Returns the sharding with these trees; unsplit trees count as whole.
    pub fn split(axes: [AxisTree; RANK]) -> Sharding {
        Sharding {
            axes: axes.map(|a| a.is_split().then(|| Box::new(a.simplify()))),
            unreduced: Unreduced::None,
            granule: 1,
        }
    }

    /// True if any axis is split.
    pub fn is_split(&self) -> bool {
        self.axes.iter().any(Option::is_some)
    }

    /// True if every device holds the whole value.
    pub fn is_mirrored(&self) -> bool {
        !self.is_split() && self.unreduced == Unreduced::None
    }

    /// Returns the sharding with its classes replaced by `name`.
    #[must_use]
    pub fn rename_classes(&self, name: &mut dyn FnMut(Class) -> Class) -> Sharding {
        let mut axis =
            |t: &Option<Box<AxisTree>>| t.as_ref().map(|t| Box::new(t.rename_classes(name)));
        let [a, b, c, d] = &self.axes;
        Sharding {
            axes: [axis(a), axis(b), axis(c), axis(d)],
            unreduced: match self.unreduced {
                Unreduced::OwnerMasked(c) => Unreduced::OwnerMasked(name(c)),
                other => other,
            },
            granule: self.granule,
        }
    }

    /// Returns the tree of an axis; one whole leaf if it is not split.
    pub fn tree(&self, axis: usize, size: &Dim) -> AxisTree {
        self.axes[axis]
            .as_deref()
            .cloned()
            .unwrap_or_else(|| AxisTree::whole(size.clone()))
    }

    /// Returns the type of the local tensor on device `rank`.
    pub fn local_type(
        &self,
        ty: &TensorType,
        classes: &[ClassData],
        rank: usize,
    ) -> Option<TensorType> {
        let mut out = ty.clone();
        for (axis, tree) in self.axes.iter().enumerate() {
            let Some(tree) = tree else { continue };
            out.dims[axis] = if axis == 0 && self.granule > 1 {
                let runs = tree.intervals(classes, rank)?;
                Dim::constant(total_len(&granule_intervals(&runs, self.granule)))
            } else {
                tree.local_size(classes, rank)?
            };
        }
        Some(out)
    }

    /// Returns the runs of global indices along `axis` that device `rank` stores.
    pub fn intervals(
        &self,
        axis: usize,
        size: &Dim,
        classes: &[ClassData],
        rank: usize,
    ) -> Option<Vec<Interval>> {
        match &self.axes[axis] {
            None => {
                let len = size.as_const()?;
                let whole = (len > 0).then_some(Interval { start: 0, len });
                Some(whole.into_iter().collect())
            }
            Some(tree) => {
                let runs = tree.intervals(classes, rank)?;
                Some(if axis == 0 && self.granule > 1 {
                    granule_intervals(&runs, self.granule)
                } else {
                    runs
                })
            }
        }
    }
}
