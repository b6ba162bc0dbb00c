//! Numbers for the distinct items of a table.

/// Returns the number of an item in a table of distinct items; a new item is added.
pub(super) fn number_of<T: PartialEq>(table: &mut Vec<T>, item: T) -> usize {
    let known = table.iter().position(|known| *known == item);
    known.unwrap_or_else(|| {
        table.push(item);
        table.len() - 1
    })
}
