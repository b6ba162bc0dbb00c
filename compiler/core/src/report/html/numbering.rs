/// Returns an item's index in a table of distinct items. Adds new items.
pub(super) fn number_of<T: PartialEq>(table: &mut Vec<T>, item: T) -> usize {
    let known = table.iter().position(|known| *known == item);
    known.unwrap_or_else(|| {
        table.push(item);
        table.len() - 1
    })
}
