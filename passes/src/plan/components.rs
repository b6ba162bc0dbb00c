use std::collections::BTreeMap;

use petgraph::unionfind::UnionFind;

/// Returns the members of each connected component, ascending, ordered by their first members.
pub(super) fn components(sets: UnionFind<usize>) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    let mut position: BTreeMap<usize, usize> = BTreeMap::new();
    for (member, label) in sets.into_labeling().into_iter().enumerate() {
        let slot = *position.entry(label).or_insert(out.len());
        if slot == out.len() {
            out.push(Vec::new());
        }
        out[slot].push(member);
    }
    out
}
