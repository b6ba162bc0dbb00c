use std::fmt;

use tpc_diag::Diagnostic;

use super::codes;

/// The longest name of a repository, in bytes, as in llama.cpp.
const LONGEST_NAME: usize = 256;
/// The longest name of a file in a repository, in bytes.
const LONGEST_FILE: usize = 1024;
const LONGEST_QUANT: usize = 64;

/// A repository's name, such as `ggml-org/gemma-3-1b-it-GGUF`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repository {
    /// The user or organisation.
    pub user: String,
    /// The name below the user.
    pub name: String,
}

impl Repository {
    /// Parses `USER/NAME` by llama.cpp's rule: letters, digits and `_`, with single `.` or `-` between them.
    pub fn parse(text: &str) -> Option<Repository> {
        let (user, name) = text.split_once('/')?;
        let well_formed = |part: &str| {
            let mut special = true;
            for c in part.chars() {
                let base = c.is_ascii_alphanumeric() || c == '_';
                if !base && (special || !".-".contains(c)) {
                    return false;
                }
                special = !base;
            }
            !special
        };
        (text.len() <= LONGEST_NAME && well_formed(user) && well_formed(name)).then(|| Repository {
            user: user.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns the repository's folder in a hub cache.
    pub fn folder(&self) -> String {
        format!("models--{}--{}", self.user, self.name)
    }

    pub(super) fn is_like(&self, other: &Repository) -> bool {
        self.user.eq_ignore_ascii_case(&other.user) && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.user, self.name)
    }
}

/// A model in a repository, as `-hf` and `-hff` name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The repository.
    pub repository: Repository,
    /// The quantisation, such as `Q4_K_M`.
    pub quant: Option<String>,
    /// The file's path in the repository.
    pub file: Option<String>,
}

/// True for a relative path without `..`, empty parts and control characters.
pub(super) fn is_safe_file(file: &str) -> bool {
    let safe = |part: &str| !part.is_empty() && part != "." && part != "..";
    file.len() <= LONGEST_FILE
        && file.split('/').all(safe)
        && !file.contains('\\')
        && !file.chars().any(char::is_control)
}

impl Wanted {
    /// Parses `USER/NAME[:QUANT]` or `USER/NAME/FILE`.
    ///
    /// # Errors
    /// Returns TPC0445 for another form, or for a file name that leaves the repository.
    pub fn parse(text: &str) -> Result<Wanted, Diagnostic> {
        let wrong = |message: String| {
            let shown: String = text.chars().take(200).collect();
            let d = Diagnostic::new(&codes::REPOSITORY, shown, message);
            d.help("write -hf USER/NAME, -hf USER/NAME:Q4_K_M, or -hf USER/NAME -hff FILE.gguf")
        };
        let mut parts = text.splitn(3, '/');
        let (user, name) = (parts.next().unwrap_or_default(), parts.next());
        let Some(name) = name else {
            return Err(wrong("the repository lacks a user: USER/NAME".to_owned()));
        };
        let file = parts.next();
        if file.is_some_and(|f| !is_safe_file(f)) {
            return Err(wrong(
                "the file's name is not a relative path within the repository".to_owned(),
            ));
        }
        let (name, quant) = match (name.split_once(':'), file) {
            (Some((name, quant)), None) => (name, Some(quant)),
            _ => (name, None),
        };
        let Some(repository) = Repository::parse(&format!("{user}/{name}")) else {
            return Err(wrong("the text is not a repository's name".to_owned()));
        };
        let well_formed = |q: &&str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            !q.is_empty() && q.len() <= LONGEST_QUANT && q.chars().all(known)
        };
        if quant.is_some_and(|q| !well_formed(&q)) {
            return Err(wrong(
                "the quantisation has other characters than letters and digits".to_owned(),
            ));
        }
        // llama.cpp's older manifests name the default `latest`.
        let quant = quant.filter(|q| !q.eq_ignore_ascii_case("latest"));
        Ok(Wanted {
            repository,
            quant: quant.map(str::to_owned),
            file: file.map(str::to_owned),
        })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        match (&self.quant, &self.file) {
            (_, Some(file)) => write!(f, "/{file}"),
            (Some(quant), None) => write!(f, ":{quant}"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_repositories() {
        for good in ["a/b", "ggml-org/gemma-3-1b-it-GGUF", "u/Qwen2.5_7B", "_/_"] {
            assert_eq!(
                Repository::parse(good).map(|r| r.to_string()),
                Some(good.to_owned())
            );
        }
        for bad in [
            "a", "/", "a/", "/b", "a/b/c", "../b", "a/..", "a/b--c", "a/-b", "a/b.", "a b/c",
            "a\\b/c", "a/b\n",
        ] {
            assert_eq!(Repository::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn wanted_models() {
        for (text, quant, file) in [
            ("u/n", None, None),
            ("u/n:Q4_K_M", Some("Q4_K_M"), None),
            ("u/n:latest", None, None),
            ("u/n/f.gguf", None, Some("f.gguf")),
            ("u/n/d/e:f.gguf", None, Some("d/e:f.gguf")),
        ] {
            let wanted = Wanted::parse(text).expect(text);
            assert_eq!(
                (wanted.quant.as_deref(), wanted.file.as_deref()),
                (quant, file)
            );
        }
        for bad in [
            "n",
            "",
            "u/n:",
            "u/n:a/b",
            "u/n/../f.gguf",
            "u/n//f",
            "u/n/",
            "u/n/a\\b",
            "u/../f",
            "u/n:Q4 K",
            "a/b/c\u{7}",
        ] {
            let d = Wanted::parse(bad).expect_err(bad);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0445", true), "{bad}");
        }
    }
}
