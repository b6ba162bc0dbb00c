//! Copies between the host and a group: each device fetches its part; the host assembles a split value. Between groups,
//! each device assembles the value and keeps its part.

use tpc_ir::op::{Concat, Copy, Reshape, Slice};
use tpc_ir::{
    AxisTree, ClassRef, Dim, InstData, Interval, Place, RANK, Sharding, TensorType, Value,
    ValueData,
};

use super::LowerError;
use super::intervals::{positions, subtract};
use super::lowering::{Lowering, Site};

impl Lowering<'_> {
    pub(super) fn copy(&mut self, data: &InstData, to: Place) -> Result<(), LowerError> {
        let (source, result) = (data.operands[0], data.results[0]);
        let from = self.from;
        let (src, dst) = (from.value(source), from.value(result));
        let mut parts = Vec::new();
        match (src.place, to) {
            (Place::Group(_), Place::Group(group)) => {
                for (rank, &device) in from.group(group).devices.iter().enumerate() {
                    let place = Place::Device(device);
                    let site = Site { data, rank, place };
                    let whole = self.gather(site, src)?;
                    parts.push(self.cut(site, whole, dst)?);
                }
            }
            (Place::Group(_), place) => {
                let rank = 0;
                parts.push(self.gather(Site { data, rank, place }, src)?);
            }
            (place, Place::Group(group)) => {
                for (rank, &device) in from.group(group).devices.iter().enumerate() {
                    let site = Site { data, rank, place };
                    let part = self.cut(site, self.part(source, 0), dst)?;
                    let there = site.on(Place::Device(device));
                    parts.push(self.push(there, Copy, vec![part])?);
                }
            }
            (_, place) => {
                let rank = 0;
                let whole = self.part(source, 0);
                parts.push(self.push(Site { data, rank, place }, Copy, vec![whole])?);
            }
        }
        self.map[result.index()] = parts;
        Ok(())
    }

    /// Cuts this device's part, with the sharding of `target`, from a whole value.
    fn cut(
        &mut self,
        site: Site<'_>,
        mut whole: Value,
        target: &ValueData,
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        let (sharding, ty) = (&target.sharding, &target.ty);
        if let Some(at) = FactorAxes::new(sharding, ty) {
            let range = classes[at.class.class.index()].range(site.rank, at.class.div);
            let local = sharding.local_type(ty, classes, site.rank);
            let (range, local) = range.zip(local).ok_or_else(|| self.rebase(site))?;
            let dims = at.dims(at.size.clone());
            let isolated = self.push(site, Reshape { dims }, vec![whole])?;
            let part = self.select(site, isolated, 1, &[range])?;
            return self.push(site, Reshape { dims: local.dims }, vec![part]);
        }
        for axis in 0..RANK {
            if sharding.axes[axis].is_some() {
                let tree = sharding.tree(axis, &ty.dims[axis]);
                whole = self.cut_axis(site, axis, &tree, whole)?;
            }
        }
        Ok(whole)
    }

    /// Gathers a group's value on one device from the primary owners. If all devices hold the value, this device comes
    /// first, then the others in order.
    fn gather(&mut self, site: Site<'_>, source: &ValueData) -> Result<Value, LowerError> {
        let from = self.from;
        let (sharding, ty) = (&source.sharding, &source.ty);
        let mut parts = self.map[site.data.operands[0].index()].clone();
        let split: Vec<usize> = (0..RANK).filter(|&a| sharding.axes[a].is_some()).collect();
        let axis = match split.as_slice() {
            [] => {
                let own = parts
                    .iter()
                    .find(|&&v| self.out.value(v).place == site.place);
                return match own {
                    Some(&v) => Ok(v),
                    None => self.push(site, Copy, vec![parts[site.rank % parts.len()]]),
                };
            }
            [one] => *one,
            _ => return Err(self.rebase(site)),
        };
        let Some(at) = FactorAxes::new(sharding, ty) else {
            let tree = sharding.tree(axis, &ty.dims[axis]);
            return self.gather_axis(site, axis, &tree, &parts);
        };
        let tree = AxisTree::Leaf {
            size: at.size.clone(),
            split: Some(at.class),
        };
        for (rank, part) in parts.iter_mut().enumerate() {
            let local = tree.local_size(&from.classes, rank);
            let dims = at.dims(local.ok_or_else(|| self.rebase(site))?);
            let there = self.sender(site, rank, *part);
            *part = self.push(there, Reshape { dims }, vec![*part])?;
        }
        let whole = self.gather_axis(site, 1, &tree, &parts)?;
        let dims = ty.dims.clone();
        self.push(site, Reshape { dims }, vec![whole])
    }

    fn sender<'s>(&self, site: Site<'s>, rank: usize, part: Value) -> Site<'s> {
        Site {
            rank,
            ..site.on(self.out.value(part).place)
        }
    }

    fn gather_axis(
        &mut self,
        site: Site<'_>,
        axis: usize,
        tree: &AxisTree,
        parts: &[Value],
    ) -> Result<Value, LowerError> {
        if let (AxisTree::Sum(segments), None) = (tree, tree.intervals(&self.from.classes, 0)) {
            return self.gather_segments(site, axis, segments, parts);
        }
        if !tree.is_split() {
            let first = parts[0];
            if self.out.value(first).place == site.place {
                return Ok(first);
            }
            return self.push(site, Copy, vec![first]);
        }
        let classes = &self.from.classes;
        let mut received: Vec<(Interval, Value)> = Vec::new();
        for (rank, &part) in parts.iter().enumerate() {
            let there = self.sender(site, rank, part);
            let held = tree.intervals(classes, rank);
            let owned = tree.owned_runs(classes, rank);
            let (held, owned) = held.zip(owned).ok_or_else(|| self.rebase(there))?;
            // Unsplit segments come from the first device.
            let sent: Vec<Interval> = received.iter().map(|(i, _)| *i).collect();
            let owned = subtract(&owned, &sent);
            if owned.is_empty() {
                continue;
            }
            let sent = self.select(there, part, axis, &positions(&held, &owned))?;
            let here = Site { rank, ..site };
            let arrived = if there.place == site.place {
                sent
            } else {
                self.push(here, Copy, vec![sent])?
            };
            let mut start = 0;
            for &interval in &owned {
                let len = interval.len;
                let local = [Interval { start, len }];
                received.push((interval, self.select(here, arrived, axis, &local)?));
                start += len;
            }
        }
        received.sort_by_key(|(i, _)| i.start);
        let in_order = received.into_iter().map(|(_, v)| v).collect();
        self.concat(site, axis, in_order)
    }

    fn gather_segments(
        &mut self,
        site: Site<'_>,
        axis: usize,
        segments: &[AxisTree],
        parts: &[Value],
    ) -> Result<Value, LowerError> {
        let classes = &self.from.classes;
        let mut wholes = Vec::new();
        let mut starts = vec![Dim::ZERO; parts.len()];
        for segment in segments {
            let mut local = Vec::new();
            for (rank, &part) in parts.iter().enumerate() {
                let there = self.sender(site, rank, part);
                let len = segment.local_size(classes, rank);
                let len = len.ok_or_else(|| self.rebase(there))?;
                let slice = next_slice(axis, &mut starts[rank], len);
                let slice = slice.ok_or_else(|| self.rebase(there))?;
                local.push(self.push(there, slice, vec![part])?);
            }
            wholes.push(self.gather_axis(site, axis, segment, &local)?);
        }
        self.push(site, Concat { axis: axis as u64 }, wholes)
    }

    fn cut_axis(
        &mut self,
        site: Site<'_>,
        axis: usize,
        tree: &AxisTree,
        whole: Value,
    ) -> Result<Value, LowerError> {
        if let Some(held) = tree.intervals(&self.from.classes, site.rank) {
            return self.select(site, whole, axis, &held);
        }
        let AxisTree::Sum(segments) = tree else {
            return if tree.is_split() {
                Err(self.rebase(site))
            } else {
                Ok(whole)
            };
        };
        let mut parts = Vec::new();
        let mut start = Dim::ZERO;
        for segment in segments {
            let len = segment.size().ok_or_else(|| self.rebase(site))?;
            let slice = next_slice(axis, &mut start, len).ok_or_else(|| self.rebase(site))?;
            let slice = self.push(site, slice, vec![whole])?;
            parts.push(self.cut_axis(site, axis, segment, slice)?);
        }
        self.push(site, Concat { axis: axis as u64 }, parts)
    }
}

/// Returns the slice of `len` indices from `start`, and moves `start` to its end. Returns `None` on overflow.
fn next_slice(axis: usize, start: &mut Dim, len: Dim) -> Option<Slice> {
    let next = start.checked_add(&len)?;
    Some(Slice {
        axis: axis as u64,
        start: std::mem::replace(start, next),
        len,
    })
}

/// The axes `[inner, factor, outer]` of a tensor with one split factor; `inner` and `outer` may be symbolic.
struct FactorAxes {
    class: ClassRef,
    size: Dim,
    inner: Dim,
    outer: Dim,
}

impl FactorAxes {
    /// Returns the axes for the only split leaf. `None` if there are several, if the leaf is in a sum, or if each axis
    /// is a single leaf.
    fn new(sharding: &Sharding, ty: &TensorType) -> Option<FactorAxes> {
        let mut out: Option<FactorAxes> = None;
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
                        out = Some(FactorAxes {
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

    fn dims(&self, size: Dim) -> [Dim; RANK] {
        [self.inner.clone(), size, self.outer.clone(), Dim::ONE]
    }
}
