use tpc_gguf::SplitName;

pub(super) fn is_address(path: &str) -> bool {
    let head = path.get(..8).unwrap_or(path).to_ascii_lowercase();
    head.starts_with("http://") || head.starts_with("https://")
}

/// Returns the path of a model's first shard, which programs accept for the whole model. Other paths are unchanged.
pub(super) fn first_shard(path: &str) -> String {
    let (folder, name) = match path.rfind('/') {
        Some(at) => path.split_at(at + 1),
        None => ("", path),
    };
    // A URL may have a query after the name.
    let (name, query) = match name.find('?').filter(|_| is_address(path)) {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    match SplitName::parse(name) {
        Some(shard) => format!("{folder}{}{query}", shard.sibling(1)),
        None => path.to_owned(),
    }
}

/// Returns a path that cannot be read as an option.
pub(super) fn path_word(path: &str) -> String {
    if path.starts_with('-') {
        format!("./{path}")
    } else {
        path.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_options() {
        assert_eq!(path_word("-c"), "./-c");
        assert_eq!(path_word("a/-c"), "a/-c");
    }

    #[test]
    fn the_first_shard_stands_for_all() {
        for (given, expected) in [
            ("m-00002-of-00003.gguf", "m-00001-of-00003.gguf"),
            ("a/m-00003-of-00003.gguf", "a/m-00001-of-00003.gguf"),
            (
                "https://h/m-00002-of-00003.gguf?download=true",
                "https://h/m-00001-of-00003.gguf?download=true",
            ),
            ("a-00002-of-00003/m.gguf", "a-00002-of-00003/m.gguf"),
            ("m.gguf", "m.gguf"),
        ] {
            assert_eq!(first_shard(given), expected);
        }
        assert!(is_address("HTTPS://h/m") && !is_address("h/m") && !is_address("日本語"));
    }
}
