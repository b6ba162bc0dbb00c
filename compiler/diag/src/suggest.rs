//! "Did you mean": the known name that a misspelt one is nearest to.

use strsim::osa_distance;

/// The nearest of `names`, if it is at most one edit and a quarter of its length away, case aside.
///
/// An edit inserts, removes or replaces a letter, or swaps two neighbours.
pub fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(found, names, |name| 1 + name.len() / 4)
}

/// The nearest of `codes`, if it is one edit away: most of what codes have is the same in all.
pub fn nearest_code<'a>(found: &str, codes: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(found, codes, |_| 1)
}

/// The nearest of `names`, if it is at most so many edits away.
fn nearest_within<'a>(
    found: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: fn(&str) -> usize,
) -> Option<&'a str> {
    // A longer text is no misspelt name, and comparing it would take time that the input decides.
    if found.len() > 64 {
        return None;
    }
    let lower = str::to_ascii_lowercase;
    let found = lower(found);
    names
        .into_iter()
        .map(|name| (osa_distance(&found, &lower(name)), name))
        .min()
        .filter(|&(edits, name)| edits <= most(name))
        .map(|(_, name)| name)
}

/// A name cut to a length that suits a message.
pub fn shorten(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_recognised_and_a_stranger_is_not() {
        let names = ["llama", "qwen2", "qwen3", "gpt-oss", "command-r"];
        assert_eq!(nearest("lama", names), Some("llama"));
        assert_eq!(nearest("GPT_OSS", names), Some("gpt-oss"));
        assert_eq!(nearest("qwne3", names), Some("qwen3"));
        assert_eq!(nearest("rwkv7", names), None);
        assert_eq!(nearest(&"l".repeat(100_000), names), None);
        let codes = ["TPC0301", "TPC0909"];
        assert_eq!(nearest_code("TPC0302", codes), Some("TPC0301"));
        assert_eq!(nearest_code("TPC9999", codes), None);
    }
}
