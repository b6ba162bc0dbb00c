use std::io::{self, Read};

use tpc_diag::Diagnostic;
use ureq::http::{HeaderMap, header};
use ureq::{Error, Timeout};

use super::address::Address;
use super::client::{Answer, Bytes, Client};
use super::content_range::ContentRange;
use super::{codes, status};

/// A hub's headers about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HubHeaders {
    /// The commit of the file, `X-Repo-Commit`.
    pub commit: Option<String>,
    /// The hash of the file's content, `X-Linked-Etag`.
    pub etag: Option<String>,
}

/// The bytes of a file, from a byte on.
pub struct Stream {
    /// The number of the first byte, from 0. A server without ranges begins at 0.
    pub first: u64,
    /// The length of the whole file, if the server sent it.
    pub whole: Option<u64>,
    /// The hub's headers.
    pub hub: HubHeaders,
    body: Box<dyn Read>,
}

impl Read for Stream {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.body.read(to)
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

impl HubHeaders {
    /// Reads the first headers of each name: the hub's come before the storage server's.
    fn read<'h>(headers: &(impl Iterator<Item = &'h HeaderMap> + Clone)) -> HubHeaders {
        let first = |name: &str| {
            headers
                .clone()
                .find_map(|h| text(h, name))
                .map(str::to_owned)
        };
        let bare = |tag: String| tag.trim_start_matches("W/").trim_matches('"').to_owned();
        HubHeaders {
            commit: first("x-repo-commit"),
            etag: first("x-linked-etag").map(bare),
        }
    }
}

/// A text, and the address of the text that continues it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The text.
    pub text: String,
    /// The address of the next page; `None` on the last page.
    pub next: Option<Address>,
}

/// Returns the target of a header such as `Link: <https://…>; rel="next"` (RFC 8288).
fn next_page(headers: &HeaderMap) -> Option<&str> {
    let links = text(headers, header::LINK.as_str())?.split(',');
    links
        .filter_map(|link| link.trim().strip_prefix('<')?.split_once('>'))
        .find(|(_, parameters)| {
            let all = parameters.split(';').map(str::trim);
            all.into_iter()
                .any(|p| p == "rel=\"next\"" || p == "rel=next")
        })
        .map(|(target, _)| target)
}

fn wrong(at: &Address, what: String) -> Diagnostic {
    let d = Diagnostic::new(&codes::WRONG_ANSWER, at.display_name(), what);
    d.help("try again, or download the file otherwise and give its path")
}

impl Client {
    /// Reads a text of at most `most` bytes, such as an answer of a hub's API.
    ///
    /// # Errors
    /// Returns TPC0431 to TPC0434 if the server refuses, does not answer, or sends a longer or other text.
    pub fn text(&self, address: &Address, most: u64) -> Result<Page, Diagnostic> {
        let Answer { response, from, .. } = self.get(address, Bytes::All)?;
        let (head, body) = response.into_parts();
        let next = next_page(&head.headers).and_then(|link| from.redirect_target(link));
        if head.status.as_u16() != 200 {
            let token = self.sends_token(address);
            return Err(status::refusal(
                address,
                head.status.as_u16(),
                &head.headers,
                token,
            ));
        }
        let mut out = Vec::new();
        let read = body.into_reader().take(most + 1).read_to_end(&mut out);
        read.map_err(|e| self.broken_read(address, &e))?;
        if out.len() as u64 > most {
            return Err(wrong(
                address,
                format!("the answer is longer than {most} bytes"),
            ));
        }
        match String::from_utf8(out) {
            Ok(text) => Ok(Page { text, next }),
            Err(_) => Err(wrong(address, "the answer is not UTF-8".to_owned())),
        }
    }

    /// Requests a file from byte `first` on. A server without ranges sends the whole file.
    ///
    /// # Errors
    /// Returns TPC0431 to TPC0434 if the server refuses, does not answer, or sends another range.
    pub fn stream(&self, address: &Address, first: u64) -> Result<Stream, Diagnostic> {
        let bytes = match first {
            0 => Bytes::All,
            _ => Bytes::From(first),
        };
        let Answer {
            response,
            redirects,
            ..
        } = self.get(address, bytes)?;
        let (head, body) = response.into_parts();
        let hub = HubHeaders::read(&redirects.iter().chain([&head.headers]));
        let encoding = text(&head.headers, header::CONTENT_ENCODING.as_str());
        if encoding.is_some_and(|e| e != "identity") {
            return Err(wrong(
                address,
                "the server compressed the answer".to_owned(),
            ));
        }
        let (first, whole) = match head.status.as_u16() {
            200 => (0, body.content_length()),
            206 => {
                let range = text(&head.headers, header::CONTENT_RANGE.as_str());
                match range
                    .and_then(ContentRange::parse)
                    .filter(|r| r.first == first)
                {
                    Some(range) => (first, range.whole),
                    None => return Err(wrong(address, "the server sent another range".to_owned())),
                }
            }
            other => {
                let token = self.sends_token(address);
                return Err(status::refusal(address, other, &head.headers, token));
            }
        };
        Ok(Stream {
            first,
            whole,
            hub,
            body: Box::new(body.into_reader()),
        })
    }

    /// Returns the diagnostic of a read that failed.
    pub(super) fn broken_read(&self, at: &Address, e: &io::Error) -> Diagnostic {
        let inner = e.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match inner {
            Some(timeout @ Error::Timeout(_)) => self.connection_error(at, timeout),
            _ if e.kind() == io::ErrorKind::TimedOut => {
                self.connection_error(at, &Error::Timeout(Timeout::PerRead))
            }
            _ => wrong(at, format!("the answer ends early: {e}")),
        }
    }
}
