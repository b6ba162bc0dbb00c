use tpc_gguf::SplitName;

/// Parts of file names that llama.cpp does not load as a model: data for quantisation, image encoders, draft heads.
const OTHER_FILES: [&str; 6] = ["imatrix", "mmproj", "mtp-", "dflash-", "eagle3-", "dspark-"];

/// Quantisations that llama.cpp prefers, if the name has none.
const PREFERRED: [&str; 2] = ["Q4_K_M", "Q8_0"];

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub(super) fn has_gguf_extension(path: &str) -> bool {
    let tail = path.len().checked_sub(5).and_then(|at| path.get(at..));
    tail.is_some_and(|t| t.eq_ignore_ascii_case(".gguf"))
}

/// True if a path in a repository names a model instead of an image encoder, a draft head or other data.
pub(super) fn is_model(path: &str) -> bool {
    let name = file_name(path);
    has_gguf_extension(name) && !OTHER_FILES.iter().any(|part| name.contains(part))
}

/// True for a file that is not a shard, and for the first shard.
pub(super) fn is_first(path: &str) -> bool {
    SplitName::parse(file_name(path)).is_none_or(|s| s.number == 1)
}

/// True if the path has the quantisation, followed by `.` or `-`.
fn has_quant(path: &str, quant: &str) -> bool {
    let (path, quant) = (path.to_ascii_lowercase(), quant.to_ascii_lowercase());
    path.match_indices(&quant)
        .any(|(at, found)| path[at + found.len()..].starts_with(['.', '-']))
}

/// Chooses a repository's model by llama.cpp's rule: the first path with the quantisation; without one, Q4_K_M, then
/// Q8_0, then the first model. Returns its position in `paths`; for a split model, the first shard's.
pub(super) fn choose(paths: &[&str], quant: Option<&str>) -> Option<usize> {
    let candidate = |p: &str| is_model(p) && is_first(p);
    let with = |quant: &str| {
        paths
            .iter()
            .position(|p| candidate(p) && has_quant(p, quant))
    };
    match quant {
        Some(quant) => with(quant),
        None => {
            let preferred = PREFERRED.iter().find_map(|q| with(q));
            preferred.or_else(|| paths.iter().position(|p| candidate(p)))
        }
    }
}

/// Returns the paths of all shards of the model at `path`.
pub(super) fn shards(path: &str) -> Vec<String> {
    let name = file_name(path);
    let folder = &path[..path.len() - name.len()];
    match SplitName::parse(name) {
        None => vec![path.to_owned()],
        Some(split) => (1..=split.count)
            .map(|n| format!("{folder}{}", split.sibling(n)))
            .collect(),
    }
}

/// Returns the quantisation in a file's name: the last part after `-` or `.`.
pub(super) fn quant_of(path: &str) -> Option<String> {
    let name = file_name(path);
    let stem = match SplitName::parse(name) {
        Some(split) => split.prefix,
        None if has_gguf_extension(name) => name[..name.len() - 5].to_owned(),
        None => return None,
    };
    let tag = &stem[stem.rfind(['-', '.'])? + 1..];
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!tag.is_empty() && tag.chars().all(known)).then(|| tag.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantisations_are_chosen_as_in_llama_cpp() {
        let files = [
            "BF16/m-BF16-00001-of-00002.gguf",
            "BF16/m-BF16-00002-of-00002.gguf",
            "README.md",
            "m-IQ4_XS.gguf",
            "m-Q4_K_M.gguf",
            "m-Q4_K_S.gguf",
            "m-Q8_0.gguf",
            "mmproj-m-Q4_K_M.gguf",
            "m-imatrix.gguf",
        ];
        let chosen = |quant: Option<&str>| choose(&files, quant).map(|at| files[at]);
        assert_eq!(chosen(None), Some("m-Q4_K_M.gguf"));
        assert_eq!(chosen(Some("q8_0")), Some("m-Q8_0.gguf"));
        assert_eq!(chosen(Some("BF16")), Some(files[0]));
        // A part of a quantisation is another quantisation.
        assert_eq!(chosen(Some("Q4_K")), None);
        assert_eq!(chosen(Some("Q2_K")), None);
        assert_eq!(choose(&["m-Q8_0.gguf", "m-Q5_0.gguf"], None), Some(0));
        assert_eq!(choose(&["m-Q5_0.gguf", "m-F16.gguf"], None), Some(0));
        assert_eq!(choose(&["m-00002-of-00002.gguf"], None), None);
        assert_eq!(choose(&["mmproj-F16.gguf", "a.safetensors"], None), None);
    }

    #[test]
    fn shards_and_quantisations_of_names() {
        assert_eq!(
            shards("d/m-Q4-00001-of-00002.gguf"),
            ["d/m-Q4-00001-of-00002.gguf", "d/m-Q4-00002-of-00002.gguf"]
        );
        assert_eq!(shards("m.gguf"), ["m.gguf"]);
        for (name, quant) in [
            ("a/m-Q4_K_M.gguf", Some("Q4_K_M")),
            ("m.f16.gguf", Some("F16")),
            ("m-IQ2_XXS-00001-of-00003.gguf", Some("IQ2_XXS")),
            ("m.gguf", None),
            ("m-Q4", None),
            ("ü.gguf", None),
        ] {
            assert_eq!(quant_of(name).as_deref(), quant, "{name}");
        }
    }
}
