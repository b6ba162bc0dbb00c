use tpc_gguf::{GgufFile, StrList};

use crate::placement::Difference;

/// Maximum difference between the numbers of tokens in llama.cpp.
const MOST_MORE: usize = 128;

/// The first token to compare. Earlier tokens are special in many vocabularies.
const FIRST: usize = 5;

/// Finds a difference between the models' tokens; `None` if they match or a file lacks tokens.
pub fn differs(model: &GgufFile, draft: &GgufFile) -> Option<Difference> {
    let kind = |f: &GgufFile| -> Option<String> {
        let kind = f.header().metadata().get_str("tokenizer.ggml.model");
        kind.ok().flatten().map(str::to_owned)
    };
    let (of_model, of_draft) = (kind(model)?, kind(draft)?);
    if of_model != of_draft {
        return Some(Difference::Kind(of_model, of_draft));
    }
    let tokens = |f: &GgufFile| -> Option<StrList> {
        let list = f.header().metadata().get_array_str("tokenizer.ggml.tokens");
        list.ok().flatten().cloned()
    };
    match (tokens(model), tokens(draft)) {
        (Some(model), Some(draft)) => compare_tokens(&model, &draft),
        // A header without tokens still has the number of tokens.
        _ => compare_counts(size(model)?, size(draft)?),
    }
}

fn size(file: &GgufFile) -> Option<usize> {
    let metadata = file.header().metadata();
    let arch = metadata.get_str("general.architecture").ok().flatten()?;
    let size = metadata.get_u64(&format!("{arch}.vocab_size"));
    usize::try_from(size.ok().flatten()?).ok()
}

fn compare_counts(model: usize, draft: usize) -> Option<Difference> {
    (model.abs_diff(draft) > MOST_MORE).then_some(Difference::Count(model, draft))
}

fn compare_tokens(model: &StrList, draft: &StrList) -> Option<Difference> {
    let (a, b) = (model.len(), draft.len());
    if a == 0 || b == 0 {
        return None;
    }
    if let Some(differs) = compare_counts(a, b) {
        return Some(differs);
    }
    let mut pairs = model.iter().zip(draft.iter()).enumerate().skip(FIRST);
    let (i, (x, y)) = pairs.find(|(_, (x, y))| x != y)?;
    Some(Difference::Token(i, x.to_owned(), y.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_compared_as_llama_cpp_does() {
        let list = |n: usize, odd: Option<usize>| -> StrList {
            (0..n)
                .map(|i| match odd == Some(i) {
                    true => "odd".to_owned(),
                    false => format!("t{i}"),
                })
                .collect()
        };
        let of = |a: &StrList, b: &StrList| compare_tokens(a, b);
        assert_eq!(of(&list(1000, None), &list(1000, None)), None);
        assert_eq!(of(&list(1000, None), &list(1128, Some(3))), None);
        assert_eq!(of(&list(1000, None), &list(0, None)), None);
        assert_eq!(
            of(&list(1000, None), &list(1129, None)),
            Some(Difference::Count(1000, 1129))
        );
        assert_eq!(
            of(&list(1000, None), &list(1000, Some(5))),
            Some(Difference::Token(5, "t5".to_owned(), "odd".to_owned()))
        );
    }
}
