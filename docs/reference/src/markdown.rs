//! Markdown tables and headings.

/// Returns a table with this head; a `|` in a cell is escaped.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(&head.map(str::to_owned));
    out.push_str(&format!("|{}\n", "---|".repeat(N)));
    for row in rows {
        out.push_str(&line(&row.map(|cell| cell.replace('|', "\\|"))));
    }
    out
}

/// Returns the anchor of a heading in the rendered book.
pub(crate) fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
