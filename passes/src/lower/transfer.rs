//! Copies between the host and a group: each device fetches its own part; the host puts a split value together. Between
//! groups, each device puts the value together and keeps its part.

use tpc_ir::op::{Concat, Copy, Reshape};
use tpc_ir::{AxisTree, ClassRef, Dim, InstData, Place, RANK, Run, Sharding, TensorType, Value};

use super::runs::{within, without};
use super::{LowerError, Lowering};

impl Lowering<'_> {
    pub(super) fn copy(&mut self, data: &InstData, to: Place) -> Result<(), LowerError> {
        let (source, result) = (data.operands[0], data.results[0]);
        let from = self.from;
        let (src, dst) = (from.value(source), from.value(result));
        let mut parts = Vec::new();
        match (src.place, to) {
            (Place::Group(_), Place::Group(group)) => {
                for (rank, &device) in from.group(group).devices.iter().enumerate() {
                    let to = Place::Device(device);
                    let whole = self.gather(data, &src.sharding, &src.ty, rank, to)?;
                    parts.push(self.cut(data, rank, whole, &dst.sharding, &dst.ty, to)?);
                }
            }
            (Place::Group(_), _) => {
                parts.push(self.gather(data, &src.sharding, &src.ty, 0, to)?);
            }
            (_, Place::Group(group)) => {
                for (rank, &device) in from.group(group).devices.iter().enumerate() {
                    let v = self.part(source, 0);
                    let v = self.cut(data, rank, v, &dst.sharding, &dst.ty, src.place)?;
                    parts.push(self.push(
                        data,
                        rank,
                        Copy.into(),
                        vec![v],
                        Place::Device(device),
                    )?);
                }
            }
            _ => {
                let v = self.part(source, 0);
                parts.push(self.push(data, 0, Copy.into(), vec![v], to)?);
            }
        }
        self.map[result.index()] = parts;
        Ok(())
    }

    /// Cuts the part of rank `rank` out of a whole value on `place`.
    fn cut(
        &mut self,
        data: &InstData,
        rank: usize,
        mut v: Value,
        sharding: &Sharding,
        ty: &TensorType,
        place: Place,
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: data.op.name(),
            value: name.clone(),
            rank,
        };
        if let Some(at) = Isolated::of(sharding, ty) {
            let range = classes[at.class.class.index()]
                .range(rank, at.class.div)
                .ok_or_else(rebase)?;
            let local = sharding.local_type(ty, classes, rank).ok_or_else(rebase)?;
            v = self.push(
                data,
                rank,
                Reshape {
                    dims: at.dims(at.size.clone()),
                }
                .into(),
                vec![v],
                place,
            )?;
            v = self.select(data, rank, v, 1, &[range], place)?;
            return self.push(
                data,
                rank,
                Reshape { dims: local.dims }.into(),
                vec![v],
                place,
            );
        }
        for axis in 0..RANK {
            if sharding.axes[axis].is_some() {
                let runs = sharding
                    .runs(axis, &ty.dims[axis], classes, rank)
                    .ok_or_else(rebase)?;
                v = self.select(data, rank, v, axis, &runs, place)?;
            }
        }
        Ok(v)
    }

    /// Brings a group's value together on `to`, which is of rank `rank` there: each device sends the indices that it is
    /// the primary owner of. Of devices that all hold the value, `to` asks itself first, then those in turn.
    fn gather(
        &mut self,
        data: &InstData,
        sharding: &Sharding,
        ty: &TensorType,
        rank: usize,
        to: Place,
    ) -> Result<Value, LowerError> {
        let from = self.from;
        let source = data.operands[0];
        let split: Vec<usize> = (0..RANK).filter(|&a| sharding.axes[a].is_some()).collect();
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: "copy",
            value: name.clone(),
            rank: 0,
        };
        let axis = match split.as_slice() {
            [] => {
                let parts = &self.map[source.index()];
                let own = parts.iter().find(|&&v| self.out.value(v).place == to);
                if let Some(&v) = own {
                    return Ok(v);
                }
                let v = parts[rank % parts.len()];
                return self.push(data, 0, Copy.into(), vec![v], to);
            }
            [one] => *one,
            _ => return Err(rebase()),
        };
        let isolated = Isolated::of(sharding, ty);
        let tree = sharding.tree(axis, &ty.dims[axis]);
        let (axis, tree) = match &isolated {
            Some(at) => (
                1,
                AxisTree::Leaf {
                    size: at.size.clone(),
                    split: Some(at.class),
                },
            ),
            None => (axis, tree),
        };
        let mut pieces: Vec<(Run, Value)> = Vec::new();
        for rank in 0..self.map[source.index()].len() {
            let runs = tree.runs(&from.classes, rank).ok_or_else(rebase)?;
            // Segments that are not split come from the first device.
            let sent: Vec<Run> = pieces.iter().map(|(r, _)| *r).collect();
            let owned = without(
                &tree.owned_runs(&from.classes, rank).ok_or_else(rebase)?,
                &sent,
            );
            if owned.is_empty() {
                continue;
            }
            let mut part = self.part(source, rank);
            let place = self.out.value(part).place;
            if let Some(at) = &isolated {
                let local = Dim::constant(tpc_ir::sharding::runs_len(&runs));
                part = self.push(
                    data,
                    rank,
                    Reshape {
                        dims: at.dims(local),
                    }
                    .into(),
                    vec![part],
                    place,
                )?;
            }
            let sent = self.select(data, rank, part, axis, &within(&runs, &owned), place)?;
            let arrived = if place == to {
                sent
            } else {
                self.push(data, rank, Copy.into(), vec![sent], to)?
            };
            let mut at = 0;
            for run in &owned {
                let local = [Run {
                    start: at,
                    len: run.len,
                }];
                pieces.push((*run, self.select(data, rank, arrived, axis, &local, to)?));
                at += run.len;
            }
        }
        // The pieces are put in order.
        pieces.sort_by_key(|(r, _)| r.start);
        let whole = match pieces.as_slice() {
            [(_, one)] => *one,
            _ => {
                let pieces = pieces.into_iter().map(|(_, v)| v).collect();
                self.push(data, 0, Concat { axis: axis as u64 }.into(), pieces, to)?
            }
        };
        if isolated.is_some() {
            return self.push(
                data,
                0,
                Reshape {
                    dims: ty.dims.clone(),
                }
                .into(),
                vec![whole],
                to,
            );
        }
        Ok(whole)
    }
}

/// A split factor of a value as an axis of its own: the value's elements as `[inner, factor, outer]`, whatever the
/// sizes around it, symbolic ones included.
struct Isolated {
    class: ClassRef,
    size: Dim,
    inner: Dim,
    outer: Dim,
}

impl Isolated {
    /// The one split leaf of a value that is no sum and is not the whole of an axis.
    fn of(sharding: &Sharding, ty: &TensorType) -> Option<Isolated> {
        let mut out: Option<Isolated> = None;
        let mut inner = Dim::ONE;
        for axis in 0..RANK {
            let tree = sharding.tree(axis, &ty.dims[axis]);
            let factors = match &tree {
                AxisTree::Leaf { .. } => std::slice::from_ref(&tree),
                AxisTree::Product(k) => k.as_slice(),
                AxisTree::Sum(_) => return None,
            };
            for f in factors.iter().rev() {
                let AxisTree::Leaf { size, split } = f else {
                    return None;
                };
                match (split, &mut out) {
                    (Some(_), Some(_)) => return None,
                    (Some(class), None) => {
                        out = Some(Isolated {
                            class: *class,
                            size: size.clone(),
                            inner: inner.clone(),
                            outer: Dim::ONE,
                        });
                    }
                    (None, Some(at)) => at.outer = at.outer.checked_mul(size)?,
                    (None, None) => inner = inner.checked_mul(size)?,
                }
            }
        }
        out.filter(|_| {
            !sharding
                .axes
                .iter()
                .flatten()
                .all(|t| matches!(**t, AxisTree::Leaf { .. }))
        })
    }

    /// The sizes of the value, with `size` indices of the factor.
    fn dims(&self, size: Dim) -> [Dim; RANK] {
        [self.inner.clone(), size, self.outer.clone(), Dim::ONE]
    }
}
