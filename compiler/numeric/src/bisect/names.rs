//! Names of tensors in captures.

/// Returns the name; `None` if ggml made it from the tensor's position, such as `node_12` or `leaf_3 (view)`.
pub(super) fn given(name: &str) -> Option<&str> {
    let stem = name.split(" (").next().unwrap_or(name);
    let number = ["node_", "leaf_"].iter().find_map(|p| stem.strip_prefix(p));
    let numbered = number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    (!stem.is_empty() && !numbered).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::given;

    #[test]
    fn names_made_from_positions_are_not_names() {
        for (name, expected) in [
            ("Qcur-0", Some("Qcur-0")),
            ("Qcur-0 (view)", Some("Qcur-0 (view)")),
            ("node_12", None),
            ("node_12 (reshaped)", None),
            ("leaf_3", None),
            ("node_out", Some("node_out")),
            ("", None),
            (" (copy)", None),
        ] {
            assert_eq!(given(name), expected, "{name}");
        }
    }
}
