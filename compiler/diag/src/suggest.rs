//! Guessing which name was meant.

/// The name that takes the fewest edits to become, if those are few enough for a slip.
pub fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A name this long is no slip, and comparing it would take time that the input decides.
    if found.len() > 64 {
        return None;
    }
    names
        .into_iter()
        .map(|name| (edits(found, name), name))
        .min()
        .filter(|&(edits, name)| edits <= 1 + name.len() / 4)
        .map(|(_, name)| name)
}

/// A name cut to a length that suits a message.
pub fn shorten(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Letters inserted, removed or replaced to make `b` of `a` (Levenshtein's distance), case aside.
fn edits(a: &str, b: &str) -> usize {
    let lower = |c: char| c.to_ascii_lowercase();
    let b: Vec<char> = b.chars().map(lower).collect();
    // `row[j]` is the distance from the part of `a` seen so far to the first `j` letters of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().map(lower).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let names = ["llama", "qwen2", "qwen3", "gpt-oss", "command-r"];
        assert_eq!(nearest("lama", names), Some("llama"));
        assert_eq!(nearest("GPT_OSS", names), Some("gpt-oss"));
        assert_eq!(nearest("rwkv7", names), None);
        assert_eq!(nearest(&"l".repeat(100_000), names), None);
    }
}
