//! The cores of each device's threads.

use tpc_ir::Place;

/// The cores of each device's threads, by device number. The system places the threads of a device without cores.
///
/// A device with cores has at most one thread per core. Its threads stay on their cores, and its weights, states and
/// work buffers are in the memory of these cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreSets(Vec<Vec<usize>>);

impl CoreSets {
    /// Creates the sets. `cores[d]` are the logical CPUs of device `d`, one per physical core, as the system numbers
    /// them; none if the system places the device's threads.
    pub const fn new(cores: Vec<Vec<usize>>) -> CoreSets {
        CoreSets(cores)
    }

    /// Returns the cores of each place; an empty set for the host.
    pub(crate) fn of_places(&self, places: &[Place]) -> Vec<&[usize]> {
        let of = |place: &Place| match place {
            Place::Device(d) => self.0.get(d.index()).map_or(&[][..], Vec::as_slice),
            _ => &[],
        };
        places.iter().map(of).collect()
    }
}

/// Divides threads evenly among groups, at least one per group and at most one per core. Groups that have cores left get
/// the threads that full groups cannot use.
pub(crate) fn divide(threads: usize, cores: &[&[usize]]) -> Vec<usize> {
    let mut out = vec![1; cores.len()];
    let mut left = threads.saturating_sub(cores.len());
    loop {
        let has_room = |i: &usize| cores[*i].is_empty() || out[*i] < cores[*i].len();
        let open: Vec<usize> = (0..cores.len()).filter(has_room).collect();
        if open.is_empty() || left < open.len() {
            return out;
        }
        left -= open.len();
        open.into_iter().for_each(|i| out[i] += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_divided_among_groups() {
        let (none, two, eight) = (&[][..], &[0, 1][..], &[2, 3, 4, 5, 6, 7, 8, 9][..]);
        for (threads, cores, expected) in [
            (8, &[none, none][..], vec![4, 4]),
            (5, &[none, none], vec![2, 2]),
            (0, &[none, none], vec![1, 1]),
            (10, &[eight, two], vec![8, 2]),
            (6, &[eight, two], vec![4, 2]),
            (64, &[eight, two], vec![8, 2]),
            (7, &[none, two], vec![5, 2]),
            (4, &[], vec![]),
        ] {
            assert_eq!(divide(threads, cores), expected, "{threads} {cores:?}");
        }
    }
}
