//! Copies between the host and a group: each device fetches its own part; the host puts a split value together. Between
//! groups, each device puts the value together and keeps its part.

use tpc_ir::op::{Concat, Copy, Reshape, Slice};
use tpc_ir::{
    AxisTree, ClassRef, Dim, InstData, Interval, Place, RANK, Sharding, TensorType, Value,
};

use super::intervals::{within, without};
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
                let tree = sharding.tree(axis, &ty.dims[axis]);
                v = self.cut_axis(data, rank, axis, &tree, v, place)?;
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
        let mut parts = self.map[source.index()].clone();
        if let Some(at) = &isolated {
            for (rank, part) in parts.iter_mut().enumerate() {
                let local = tree.local_size(&from.classes, rank).ok_or_else(rebase)?;
                let dims = at.dims(local);
                let place = self.out.value(*part).place;
                *part = self.push(data, rank, Reshape { dims }.into(), vec![*part], place)?;
            }
        }
        let whole = self.gather_axis(data, axis, &tree, &parts, to)?;
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

    /// Brings an axis together on `to` of which each device holds its part.
    fn gather_axis(
        &mut self,
        data: &InstData,
        axis: usize,
        tree: &AxisTree,
        parts: &[Value],
        to: Place,
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: "copy",
            value: name.clone(),
            rank: 0,
        };
        if let (AxisTree::Sum(segments), None) = (tree, tree.intervals(classes, 0)) {
            // Sizes known only at run time: segment by segment.
            let mut wholes = Vec::new();
            let mut at = vec![Dim::ZERO; parts.len()];
            for segment in segments {
                let mut local = Vec::new();
                for (rank, &part) in parts.iter().enumerate() {
                    let len = segment.local_size(classes, rank).ok_or_else(rebase)?;
                    let next = at[rank].checked_add(&len).ok_or_else(rebase)?;
                    let start = std::mem::replace(&mut at[rank], next);
                    let axis = axis as u64;
                    let place = self.out.value(part).place;
                    let slice = Slice { axis, start, len };
                    local.push(self.push(data, rank, slice.into(), vec![part], place)?);
                }
                wholes.push(self.gather_axis(data, axis, segment, &local, to)?);
            }
            return self.push(data, 0, Concat { axis: axis as u64 }.into(), wholes, to);
        }
        if !tree.is_split() {
            let first = parts[0];
            if self.out.value(first).place == to {
                return Ok(first);
            }
            return self.push(data, 0, Copy.into(), vec![first], to);
        }
        let mut pieces: Vec<(Interval, Value)> = Vec::new();
        for (rank, &part) in parts.iter().enumerate() {
            let runs = tree.intervals(classes, rank).ok_or_else(rebase)?;
            // Segments that are not split come from the first device.
            let sent: Vec<Interval> = pieces.iter().map(|(r, _)| *r).collect();
            let owned = without(&tree.owned_runs(classes, rank).ok_or_else(rebase)?, &sent);
            if owned.is_empty() {
                continue;
            }
            let place = self.out.value(part).place;
            let sent = self.select(data, rank, part, axis, &within(&runs, &owned), place)?;
            let arrived = if place == to {
                sent
            } else {
                self.push(data, rank, Copy.into(), vec![sent], to)?
            };
            let mut at = 0;
            for run in &owned {
                let local = [Interval {
                    start: at,
                    len: run.len,
                }];
                pieces.push((*run, self.select(data, rank, arrived, axis, &local, to)?));
                at += run.len;
            }
        }
        // The pieces are put in order.
        pieces.sort_by_key(|(r, _)| r.start);
        match pieces.as_slice() {
            [(_, one)] => Ok(*one),
            _ => {
                let pieces = pieces.into_iter().map(|(_, v)| v).collect();
                self.push(data, 0, Concat { axis: axis as u64 }.into(), pieces, to)
            }
        }
    }

    /// Cuts the part of rank `rank` out of an axis of a whole value on `place`.
    fn cut_axis(
        &mut self,
        data: &InstData,
        rank: usize,
        axis: usize,
        tree: &AxisTree,
        v: Value,
        place: Place,
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        if let Some(runs) = tree.intervals(classes, rank) {
            return self.select(data, rank, v, axis, &runs, place);
        }
        let name = self.name(data);
        let rebase = || LowerError::Rebase {
            op: data.op.name(),
            value: name.clone(),
            rank,
        };
        let AxisTree::Sum(segments) = tree else {
            return if tree.is_split() {
                Err(rebase())
            } else {
                Ok(v)
            };
        };
        let mut parts = Vec::new();
        let mut start = Dim::ZERO;
        for segment in segments {
            let len = segment.size().ok_or_else(rebase)?;
            let next = start.checked_add(&len).ok_or_else(rebase)?;
            let slice = Slice {
                axis: axis as u64,
                start: std::mem::replace(&mut start, next),
                len,
            };
            let whole = self.push(data, rank, slice.into(), vec![v], place)?;
            parts.push(self.cut_axis(data, rank, axis, segment, whole, place)?);
        }
        self.push(
            data,
            rank,
            Concat { axis: axis as u64 }.into(),
            parts,
            place,
        )
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
