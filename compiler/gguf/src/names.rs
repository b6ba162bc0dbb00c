//! Lookup by name in an ordered list, without copies of the names.

/// A permutation of `0..n` that sorts a list of distinct names, for binary search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NameIndex(Vec<usize>);

/// Two positions of one name; `second` is the earliest position that repeats an earlier name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    pub(super) first: usize,
    pub(super) second: usize,
}

impl NameIndex {
    pub(super) fn build<T>(items: &[T], name: impl Fn(&T) -> &str) -> Result<NameIndex, Duplicate> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        // Equal names stay in list order, so neighbours are (earlier, later).
        order.sort_by(|&a, &b| name(&items[a]).cmp(name(&items[b])));
        let repeated = order
            .windows(2)
            .map(|w| Duplicate {
                first: w[0],
                second: w[1],
            })
            .filter(|d| name(&items[d.first]) == name(&items[d.second]))
            .min_by_key(|d| d.second);
        match repeated {
            Some(duplicate) => Err(duplicate),
            None => Ok(NameIndex(order)),
        }
    }

    pub(super) fn find<T>(
        &self,
        items: &[T],
        name: impl Fn(&T) -> &str,
        wanted: &str,
    ) -> Option<usize> {
        let found = self
            .0
            .binary_search_by(|&i| name(&items[i]).cmp(wanted))
            .ok()?;
        Some(self.0[found])
    }
}
