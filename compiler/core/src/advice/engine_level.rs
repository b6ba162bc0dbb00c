//! The lowest level that fits if another engine counts the memory. This count needs no plan, so the search uses it
//! before drafts.

use tpc_ir::{Device, Place};
use tpc_passes::footprint::Footprint;

use super::point::Point;
use super::search::Search;
use super::way_profile::WayProfile;

impl Search<'_> {
    /// Returns the point at the lowest level that fits according to the engine. Returns `point` unchanged if tpc's
    /// count applies, or if no level fits.
    pub(super) fn by_engine(&self, known: &WayProfile, point: Point) -> Point {
        let at = |level: u64| Point { level, ..point };
        let fits = |level: u64| self.engine_fits(known, &at(level));
        if fits(point.level).unwrap_or(true) {
            return point;
        }
        let last = self.space.last_level(point.chain);
        let (mut low, mut step) = (point.level, 1);
        // Double the step until a level fits. The lowest fitting level is between the last two levels.
        let mut high = loop {
            let next = (low + step).min(last);
            match fits(next) {
                Some(true) => break next,
                Some(false) if next < last => (low, step) = (next, step * 2),
                Some(false) | None => return point,
            }
        };
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match fits(middle) {
                Some(true) => high = middle,
                _ => low = middle,
            }
        }
        at(high)
    }

    /// True if a point fits according to the engine's count; `None` if tpc's count applies.
    fn engine_fits(&self, known: &WayProfile, point: &Point) -> Option<bool> {
        let changes = self.changes(known, point)?;
        let placement = self.space.placement(point, &changes);
        crate::pipeline::engine_memory::facts(&placement)?;
        let prepared = self.advisor.origin.prepare(&placement).ok()?;
        let way = &self.space.ways[point.way].way;
        let prints = prepared.engine_footprints(&placement, way).ok()??;
        let bytes = |place| prints.get(&place).map_or(0, Footprint::total);
        let devices = placement.devices.len();
        let each = (0..devices).map(|d| bytes(Place::Device(Device::new(d))));
        let topology = &placement.topology;
        Some(
            !topology.knows_memory(devices)
                || topology.has_room(&each.collect::<Vec<_>>(), bytes(Place::Host)),
        )
    }
}
