//! Names without layer numbers, so that equal layers have equal names.

use serde::Serialize;

/// A name, split at the layer number if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(super) enum Name {
    Whole(String),
    /// Text before and after the number: `blk.` and `.attn_q.weight`.
    Numbered(String, String),
}

impl Name {
    pub(super) fn new(name: &str, layer: Option<u32>) -> Name {
        let number = layer.map(|l| l.to_string());
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let found = number.as_ref().and_then(|n| {
            name.match_indices(n.as_str())
                .map(|(at, _)| (&name[..at], &name[at + n.len()..]))
                .find(|(a, b)| !digit(a.chars().next_back()) && !digit(b.chars().next()))
        });
        match found {
            Some((a, b)) => Name::Numbered(a.to_owned(), b.to_owned()),
            None => Name::Whole(name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_layer_and_no_part_of_another() {
        let numbered = |a: &str, b: &str| Name::Numbered(a.to_owned(), b.to_owned());
        let q = Name::new("blk.3.attn_q.weight", Some(3));
        assert_eq!(q, numbered("blk.", ".attn_q.weight"));
        assert_eq!(Name::new("blk.13.x3", Some(3)), numbered("blk.13.x", ""));
        assert_eq!(Name::new("cache_k_l3", Some(3)), numbered("cache_k_l", ""));
        let whole = Name::Whole("blk.3.x".to_owned());
        assert_eq!(Name::new("blk.3.x", Some(1)), whole);
        assert_eq!(Name::new("blk.3.x", None), whole);
    }
}
