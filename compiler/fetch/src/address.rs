use tpc_diag::Diagnostic;

use super::codes;

const HUGGING_FACE: [&str; 3] = ["huggingface.co", "www.huggingface.co", "hf.co"];

/// The address of a file on the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// True for `https`, false for `http`.
    pub(super) secure: bool,
    user: Option<String>,
    /// The host and port.
    pub(super) host: String,
    /// The path, beginning with `/`.
    pub(super) path: String,
    /// The text after `?`, which may contain a secret signature.
    query: Option<String>,
    /// True if the host speaks the API of the Hugging Face hub.
    hub: bool,
}

fn wrong(text: &str, what: &str, help: &str) -> Diagnostic {
    let shown: String = text.chars().take(200).collect();
    Diagnostic::new(&codes::ADDRESS, shown, what).help(help)
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Address {
    /// Parses the address of a file.
    ///
    /// A Hugging Face page (`/blob/`) or `hf://USER/NAME/FILE` becomes the address of the file (`/resolve/`).
    ///
    /// # Errors
    /// Returns TPC0430 for an unsupported scheme, a missing host, or the address of a repository.
    pub fn parse(text: &str) -> Result<Address, Diagnostic> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let rest = rest.split('#').next().unwrap_or_default();
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            "hf" => return Address::in_repository(text, rest),
            _ => {
                let help = "give an https:// address, or download the file and give its path";
                return Err(wrong(
                    text,
                    "the address is neither https:// nor http://",
                    help,
                ));
            }
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(escape(query))),
            None => (rest, None),
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(escape(user)), host),
            None => (None, authority),
        };
        let well_formed = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        if host.is_empty() || host.starts_with(':') || !host.chars().all(well_formed) {
            let help = "write https://HOST/PATH/FILE.gguf";
            return Err(wrong(text, "the address lacks a host", help));
        }
        let address = Address {
            secure,
            user,
            host: host.to_ascii_lowercase(),
            path: escape(path),
            query,
            hub: false,
        };
        address.of_file(text)
    }

    /// Parses `hf://USER/NAME/FILE`: a file on the main branch.
    fn in_repository(text: &str, rest: &str) -> Result<Address, Diagnostic> {
        let mut parts = rest.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(user), Some(name), Some(file)) if !file.is_empty() => Address::parse(&format!(
                "https://huggingface.co/{user}/{name}/resolve/main/{file}"
            )),
            _ => Err(wrong(
                text,
                "the address lacks a file of the repository",
                "write hf://USER/NAME/FILE.gguf",
            )),
        }
    }

    /// Converts the address of a Hugging Face page to the address of the file.
    fn of_file(mut self, text: &str) -> Result<Address, Diagnostic> {
        if !self.is_hugging_face() {
            return match self.path.len() > 1 {
                true => Ok(self),
                false => Err(wrong(
                    text,
                    "the address lacks a file",
                    "write https://HOST/PATH/FILE.gguf",
                )),
            };
        }
        let parts: Vec<&str> = self.path.split('/').filter(|p| !p.is_empty()).collect();
        match parts.as_slice() {
            [user, name, "blob", revision, file @ ..] if !file.is_empty() => {
                self.path = format!("/{user}/{name}/resolve/{revision}/{}", file.join("/"));
                Ok(self)
            }
            [_, _, "resolve" | "raw", _, _, ..] => Ok(self),
            [user, name, ..] if !["api", "datasets", "spaces"].contains(user) => {
                let help = format!(
                    "write -hf {user}/{name}:QUANT, or choose a file of \
                     https://huggingface.co/{user}/{name}/tree/main: \
                     https://huggingface.co/{user}/{name}/resolve/main/FILE.gguf"
                );
                Err(wrong(
                    text,
                    "the address names a repository instead of a file",
                    &help,
                ))
            }
            [] | [_] => Err(wrong(
                text,
                "the address lacks a repository",
                "write https://huggingface.co/USER/NAME/resolve/main/FILE.gguf",
            )),
            _ => Ok(self),
        }
    }

    pub(super) fn is_hugging_face(&self) -> bool {
        HUGGING_FACE.contains(&self.host.as_str())
    }

    /// Returns the address of a file below a hub, such as `https://huggingface.co`. `path` begins with `/`; its special
    /// characters are escaped.
    ///
    /// # Errors
    /// Returns TPC0430 if `endpoint` is not an address.
    pub fn on_hub(endpoint: &str, path: &str) -> Result<Address, Diagnostic> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
        let mut escaped = String::new();
        for byte in path.bytes() {
            match plain(byte) {
                true => escaped.push(char::from(byte)),
                false => escaped.push_str(&format!("%{byte:02X}")),
            }
        }
        let address = Address::parse(&format!("{}{escaped}", endpoint.trim_end_matches('/')))?;
        Ok(Address {
            hub: true,
            ..address
        })
    }

    /// Returns the address with this query, such as `recursive=true`.
    #[must_use]
    pub fn with_query(self, query: &str) -> Address {
        Address {
            query: Some(escape(query)),
            ..self
        }
    }

    /// Returns the page that lists the files of a repository on a hub.
    pub(super) fn listing(&self) -> Option<String> {
        let path = self.path.strip_prefix("/api/models").unwrap_or(&self.path);
        let mut parts = path.split('/').filter(|p| !p.is_empty());
        let (user, name) = (parts.next()?, parts.next()?);
        let host = match (self.is_hugging_face(), self.hub) {
            (true, _) => "https://huggingface.co".to_owned(),
            (_, true) => format!("{}://{}", self.scheme(), self.host),
            _ => return None,
        };
        Some(format!("{host}/{user}/{name}/tree/main"))
    }

    fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Returns the whole address, with credentials and query.
    pub fn request(&self) -> String {
        let user = self
            .user
            .as_ref()
            .map_or_else(String::new, |u| format!("{u}@"));
        let query = self
            .query
            .as_ref()
            .map_or_else(String::new, |q| format!("?{q}"));
        format!(
            "{}://{user}{}{}{query}",
            self.scheme(),
            self.host,
            self.path
        )
    }

    /// Returns the address without credentials and query, for messages.
    pub fn display_name(&self) -> String {
        format!("{}://{}{}", self.scheme(), self.host, self.path)
    }

    pub(super) fn sibling(&self, name: &str) -> Address {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        Address {
            path: format!("{folder}/{}", escape(name)),
            ..self.clone()
        }
    }

    /// Returns the target of a redirect, or `None` for a forbidden target.
    pub(super) fn redirect_target(&self, location: &str) -> Option<Address> {
        let location = location.trim();
        let absolute = if location.contains("://") {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{}:{location}", self.scheme())
        } else if location.starts_with('/') {
            format!("{}://{}{location}", self.scheme(), self.host)
        } else {
            let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{}://{}{folder}/{location}", self.scheme(), self.host)
        };
        let scheme = absolute.split("://").next()?.to_ascii_lowercase();
        let followed = scheme == "https" || (scheme == "http" && !self.secure);
        // Targets are not rewritten from `/blob/` to `/resolve/`.
        let (_, rest) = absolute.split_once("://")?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at(end);
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(escape(query))),
            None => (rest, None),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let well_formed = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        let path = if path.is_empty() {
            "/".to_owned()
        } else {
            escape(path)
        };
        (followed && !host.is_empty() && host.chars().all(well_formed)).then(|| Address {
            secure: scheme == "https",
            user: None,
            host: host.to_ascii_lowercase(),
            path,
            query,
            hub: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_files() {
        for (text, request) in [
            ("https://h.org/a/b.gguf", "https://h.org/a/b.gguf"),
            (
                "HTTP://H.org:81/b.gguf?x=1#frag",
                "http://h.org:81/b.gguf?x=1",
            ),
            ("https://u:p@h.org/b c.gguf", "https://u:p@h.org/b%20c.gguf"),
            (
                "https://huggingface.co/u/n/blob/main/f.gguf",
                "https://huggingface.co/u/n/resolve/main/f.gguf",
            ),
            (
                "https://hf.co/u/n/blob/main/d/f.gguf?download=true",
                "https://hf.co/u/n/resolve/main/d/f.gguf?download=true",
            ),
            (
                "hf://u/n/d/f.gguf",
                "https://huggingface.co/u/n/resolve/main/d/f.gguf",
            ),
        ] {
            assert_eq!(
                Address::parse(text).map(|a| a.request()),
                Ok(request.to_owned()),
                "{text}"
            );
        }
        let secret = Address::parse("https://u:p@h.org/b.gguf?sig=1").map(|a| a.display_name());
        assert_eq!(secret, Ok("https://h.org/b.gguf".to_owned()));
    }

    #[test]
    fn addresses_of_nothing() {
        for text in [
            "ftp://h.org/a.gguf",
            "file:///a.gguf",
            "https://",
            "https:///a.gguf",
            "https://h.org",
            "https://h.org/",
            "https://a b/c.gguf",
            "https://huggingface.co/u/n",
            "https://huggingface.co/u/n/tree/main",
            "https://huggingface.co/u",
            "hf://u/n",
            "s3://bucket/a.gguf",
            "nothing",
        ] {
            let d = Address::parse(text).expect_err(text);
            assert_eq!((d.code.id, d.help.is_some()), ("TPC0430", true), "{text}");
        }
    }

    #[test]
    fn redirects() {
        let from = Address::parse("https://u:p@h.org/a/b.gguf?q=1").expect("an address");
        let to = |location: &str| from.redirect_target(location).map(|a| a.request());
        assert_eq!(
            to("https://x.org/c?s=2"),
            Some("https://x.org/c?s=2".to_owned())
        );
        assert_eq!(to("/c"), Some("https://h.org/c".to_owned()));
        assert_eq!(to("c"), Some("https://h.org/a/c".to_owned()));
        assert_eq!(to("//x.org/c"), Some("https://x.org/c".to_owned()));
        // Downgrades to HTTP, other schemes, and a missing host.
        for refused in [
            "http://h.org/c",
            "file:///etc/passwd",
            "ftp://x/c",
            "https://",
            "javascript://x",
        ] {
            assert_eq!(to(refused), None, "{refused}");
        }
        let plain = Address::parse("http://h.org/a").expect("an address");
        assert!(plain.redirect_target("http://x.org/c").is_some());
        assert!(plain.redirect_target("https://x.org/c").is_some());
        assert_eq!(
            from.sibling("n.gguf").request(),
            "https://u:p@h.org/a/n.gguf?q=1"
        );
    }
}
