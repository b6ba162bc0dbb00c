//! Finds the known name nearest to a misspelt one.

use strsim::osa_distance;

/// Returns the name in `names` within 1 + length/4 edits that is nearest to `found`. Case is ignored.
///
/// An edit inserts, removes or replaces a letter, or swaps two neighbours.
pub fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(found, names, |name| 1 + name.len() / 4)
}

/// Returns the nearest of `codes` within one edit, because codes are similar.
pub fn nearest_code<'a>(found: &str, codes: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(found, codes, |_| 1)
}

fn nearest_within<'a>(
    found: &str,
    names: impl IntoIterator<Item = &'a str>,
    most: fn(&str) -> usize,
) -> Option<&'a str> {
    // A longer text is not a misspelt name, and the comparison would be slow.
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

/// Truncates a name for a message.
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
