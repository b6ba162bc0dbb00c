use tpc_diag::{Diagnostic, codes};
use tpc_models::Drafting;

/// The sources of drafted tokens that `--spec-type` names. Only the model's own blocks change a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DraftSources {
    /// `draft-mtp`: the model's own drafting blocks.
    pub blocks: bool,
    /// `draft-simple`: a second model.
    pub model: bool,
    /// `ngram-simple`: repetitions in the text.
    pub ngram: bool,
}

impl DraftSources {
    /// The names of the sources.
    pub const NAMES: [&'static str; 4] = ["none", "draft-mtp", "draft-simple", "ngram-simple"];

    /// Returns the drafting that plans include.
    pub const fn drafting(self) -> Drafting {
        match self.blocks {
            true => Drafting::Mtp,
            false => Drafting::None,
        }
    }
}

/// Parses llama.cpp's names of drafting strategies, separated by commas.
///
/// # Errors
/// Returns TPC0400 for an unknown name.
pub fn parse_draft_sources(text: &str) -> Result<DraftSources, Diagnostic> {
    let mut out = DraftSources::default();
    for name in text.split(',') {
        match name.trim() {
            "none" => {}
            "draft-mtp" => out.blocks = true,
            "draft-simple" => out.model = true,
            "ngram-simple" => out.ngram = true,
            _ => {
                let message = format!("unknown drafting strategy `{name}`");
                let d = Diagnostic::new(&codes::COMMAND_LINE, "--spec-type", message);
                return Err(d.help(match name.starts_with("ngram") {
                    true => "use ngram-simple: tpc has one lookup of repeated text",
                    false => {
                        "use draft-mtp, ngram-simple, draft-simple with --model-draft, or none"
                    }
                }));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_llama_cpps() {
        let found = parse_draft_sources("draft-mtp, ngram-simple").expect("names");
        assert_eq!(
            (found.blocks, found.model, found.ngram),
            (true, false, true)
        );
        assert_eq!(found.drafting(), Drafting::Mtp);
        assert_eq!(parse_draft_sources("none"), Ok(DraftSources::default()));
        for name in DraftSources::NAMES {
            assert!(parse_draft_sources(name).is_ok(), "{name}");
        }
        for bad in ["", "mtp", "draft-eagle3", "ngram-mod", "draft-mtp,,none"] {
            let d = parse_draft_sources(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0400", true), "{bad}");
        }
    }
}
