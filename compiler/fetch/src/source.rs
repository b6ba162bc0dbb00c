use std::io::{self, Read};
use std::rc::Rc;

use tpc_diag::Diagnostic;
use tpc_gguf::{GgufFile, MAX_ELSEWHERE_BYTES, RangeSource};
use ureq::http::{HeaderMap, header};
use ureq::{Body, Error};

use super::address::Address;
use super::client::{Answer, Bytes, Client};
use super::content_range::ContentRange;
use super::{codes, status};

/// The maximum number of requests per file. Ranges double.
const MAX_REQUESTS: usize = 32;

/// Reads the headers of the model at an address, and of its sister shards.
///
/// # Errors
/// Returns TPC0430 to TPC0435, or the errors of an invalid header.
pub fn open(client: Client, address: Address) -> Result<GgufFile, Diagnostic> {
    GgufFile::open_elsewhere(&mut HttpFile::new(Rc::new(client), address))
}

/// The response of a server that ignores ranges and sends the whole file.
struct Stream {
    at: u64,
    body: Box<dyn Read>,
}

struct HttpFile {
    client: Rc<Client>,
    given: Address,
    /// The address after redirects.
    at: Address,
    name: String,
    len: Option<u64>,
    /// The server's version tag of the file.
    tag: Option<String>,
    stream: Option<Stream>,
    requests: usize,
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

fn is_page(bytes: &[u8]) -> bool {
    let head = bytes.get(..256).unwrap_or(bytes);
    let head = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let head = head.to_ascii_lowercase();
    head.starts_with(b"<!doctype") || head.starts_with(b"<html") || head.starts_with(b"<head")
}

impl HttpFile {
    fn new(client: Rc<Client>, address: Address) -> HttpFile {
        HttpFile {
            client,
            name: address.display_name(),
            at: address.clone(),
            given: address,
            len: None,
            tag: None,
            stream: None,
            requests: 0,
        }
    }

    fn wrong(&self, what: String) -> Diagnostic {
        let d = Diagnostic::new(&codes::WRONG_ANSWER, &self.name, what);
        d.help("try again, or download the file and plan the copy")
    }

    fn broken(&self, e: &io::Error, got: u64) -> Diagnostic {
        let inner = e.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match inner {
            Some(timeout @ Error::Timeout(_)) => self.client.connection_error(&self.at, timeout),
            _ if e.kind() == io::ErrorKind::TimedOut => self
                .client
                .connection_error(&self.at, &Error::Timeout(ureq::Timeout::PerRead)),
            _ => self.wrong(format!("the answer ends after {got} bytes: {e}")),
        }
    }

    /// Records the length of the file, which must be the same in all responses.
    fn learn_len(&mut self, len: u64) -> Result<(), Diagnostic> {
        match self.len.replace(len) {
            Some(before) if before != len => Err(self.wrong(format!(
                "the file has {len} bytes, but had {before} just before"
            ))),
            _ => Ok(()),
        }
    }

    fn learn_tag(&mut self, headers: &HeaderMap) -> Result<(), Diagnostic> {
        let Some(tag) = text(headers, header::ETAG) else {
            return Ok(());
        };
        match self.tag.replace(tag.to_owned()) {
            Some(before) if before != tag => {
                Err(self.wrong("the file changed while it was read".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Requests a range. Appends a partial response to `to`; a whole file becomes the stream.
    fn ask(&mut self, from: u64, len: u64, to: &mut Vec<u8>) -> Result<(), Diagnostic> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return Err(self.wrong("the pieces from the server are too small".to_owned()));
        }
        let Answer {
            from: at, response, ..
        } = self.client.get(&self.at, Bytes::Range(from, len))?;
        self.at = at;
        let (head, body) = response.into_parts();
        if let Some(encoding) =
            text(&head.headers, header::CONTENT_ENCODING).filter(|e| *e != "identity")
        {
            let encoding: String = encoding.chars().take(40).collect();
            return Err(self.wrong(format!("the server compressed the answer (`{encoding}`)")));
        }
        match head.status.as_u16() {
            206 => {
                self.learn_tag(&head.headers)?;
                let range =
                    text(&head.headers, header::CONTENT_RANGE).and_then(ContentRange::parse);
                self.part(range, from, len, body, to)
            }
            200 => {
                self.learn_tag(&head.headers)?;
                if let Some(len) = body.content_length() {
                    self.learn_len(len)?;
                }
                self.whole(from, body)
            }
            // The range starts after the end of the file.
            416 => {
                let whole =
                    text(&head.headers, header::CONTENT_RANGE).and_then(|r| r.rsplit_once('/'));
                let whole = whole.and_then(|(_, n)| n.trim().parse().ok());
                self.learn_len(whole.unwrap_or(from))
            }
            other => {
                let token = self.client.sends_token(&self.given);
                Err(status::refusal(&self.given, other, &head.headers, token))
            }
        }
    }

    fn part(
        &mut self,
        range: Option<ContentRange>,
        from: u64,
        len: u64,
        body: Body,
        to: &mut Vec<u8>,
    ) -> Result<(), Diagnostic> {
        let Some(range) = range.filter(|r| r.first == from && r.last - r.first < len) else {
            return Err(self.wrong(format!(
                "the server did not send the requested range: {len} bytes from byte {from} on"
            )));
        };
        if let Some(whole) = range.whole {
            self.learn_len(whole)?;
        }
        let announced = range.last - range.first + 1;
        let before = to.len();
        let read = body.into_reader().take(announced).read_to_end(to);
        let got = (to.len() - before) as u64;
        read.map_err(|e| self.broken(&e, got))?;
        match got == announced {
            true => Ok(()),
            false => Err(self.wrong(format!(
                "the server announced {announced} bytes and sent {got}"
            ))),
        }
    }

    /// Makes the response the stream, and skips to byte `from`.
    fn whole(&mut self, from: u64, body: Body) -> Result<(), Diagnostic> {
        let mut body: Box<dyn Read> = Box::new(body.into_reader());
        let skipped = io::copy(
            &mut body.by_ref().take(from.min(MAX_ELSEWHERE_BYTES)),
            &mut io::sink(),
        );
        match skipped {
            Ok(n) if n == from => {
                self.stream = Some(Stream { at: from, body });
                Ok(())
            }
            Ok(n) => Err(self.wrong(format!("the answer ends after {n} bytes"))),
            Err(e) => Err(self.broken(&e, 0)),
        }
    }

    fn take_from_stream(
        &mut self,
        stream: &mut Stream,
        len: u64,
        to: &mut Vec<u8>,
    ) -> Result<u64, Diagnostic> {
        let before = to.len();
        let read = stream.body.by_ref().take(len).read_to_end(to);
        let got = (to.len() - before) as u64;
        stream.at += got;
        read.map_err(|e| self.broken(&e, stream.at))?;
        match self.len {
            Some(whole) if got < len && stream.at < whole => Err(self.wrong(format!(
                "the server announced {whole} bytes and sent {}",
                stream.at
            ))),
            _ => Ok(got),
        }
    }
}

impl RangeSource for HttpFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn read(&mut self, from: u64, len: u64, to: &mut Vec<u8>) -> Result<(), Diagnostic> {
        let start = to.len();
        let mut got = 0;
        while got < len {
            if self.len.is_some_and(|whole| from + got >= whole) {
                break;
            }
            if let Some(mut stream) = self.stream.take().filter(|s| s.at == from + got) {
                let n = self.take_from_stream(&mut stream, len - got, to)?;
                self.stream = Some(stream);
                // The end of a file of unknown length.
                if n < len - got {
                    break;
                }
            } else {
                self.ask(from + got, len - got, to)?;
            }
            got = (to.len() - start) as u64;
        }
        if from == 0 && is_page(&to[start..]) {
            let d = Diagnostic::new(
                &codes::PAGE,
                &self.name,
                "the server sent a web page instead of a file",
            );
            return Err(d.help(match self.given.listing() {
                Some(listing) => {
                    format!("give the address of a file of {listing}, with /resolve/ or /blob/")
                }
                None => "give the address of the page's download button".to_owned(),
            }));
        }
        Ok(())
    }

    fn len(&self) -> Option<u64> {
        self.len
    }

    fn sibling(&self, name: &str) -> Result<Box<dyn RangeSource>, Diagnostic> {
        let address = self.given.sibling(name);
        Ok(Box::new(HttpFile::new(Rc::clone(&self.client), address)))
    }
}
