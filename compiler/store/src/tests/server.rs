//! A server that speaks the hub's API.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::Duration;

use sha2::{Digest, Sha256};

pub(super) const COMMIT: &str = "89abcdef0123456789abcdef0123456789abcdef";

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) range: Option<String>,
    pub(super) authorization: Option<String>,
}

/// Faults of the hub.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// The status of the API in place of 200.
    pub(super) status: Option<&'static str>,
    /// The number of downloads that end early, and the bytes of each.
    pub(super) cuts: (usize, usize),
    /// True if the content differs from the listed hash.
    pub(super) damaged: bool,
    /// True if the server ignores ranges.
    pub(super) whole: bool,
    /// The delay of each download.
    pub(super) delay: Duration,
    /// The list of files in place of the true one.
    pub(super) tree: Option<String>,
    /// The number of files on a page of the list; 0 for one page.
    pub(super) page: usize,
    /// The hash of the redirect in place of the true one.
    pub(super) etag: Option<String>,
}

pub(super) struct FakeHub {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|b| format!("{b:02x}")).collect()
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut request = Request {
        path,
        range: None,
        authorization: None,
    };
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = Some(value.to_owned()),
            "authorization" => request.authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(request)
}

fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n");
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

/// The files and faults of a hub with the repository `u/n`.
struct Content {
    files: Vec<(String, Vec<u8>)>,
    faults: Mutex<Faults>,
}

impl Content {
    fn tree(&self, first: usize, most: usize) -> String {
        let item = |(path, bytes): &(String, Vec<u8>)| {
            let (hash, size) = (sha256(bytes), bytes.len());
            format!(
                r#"{{"type":"file","path":"{path}","size":{size},"oid":"{}","lfs":{{"oid":"{hash}","size":{size},"pointerSize":130}}}}"#,
                &hash[..40]
            )
        };
        let files = self.files.iter().skip(first).take(most);
        let items: Vec<String> = files.map(item).collect();
        format!("[{}]", items.join(","))
    }

    fn answer(&self, request: &Request, stream: &mut TcpStream) {
        let faults = self.faults.lock().unwrap().clone();
        let path = request.path.split('?').next().unwrap_or_default();
        let json = |stream: &mut TcpStream, text: String| {
            let status = faults.status.unwrap_or("200 OK");
            let headers = format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                text.len()
            );
            send(stream, status, &headers, text.as_bytes());
        };
        if path == "/api/models/u/n/refs" {
            let main = format!(
                r#"{{"branches":[{{"name":"old","targetCommit":"{}"}},{{"name":"main","targetCommit":"{COMMIT}"}}]}}"#,
                "1".repeat(40)
            );
            return json(stream, main);
        }
        if path == format!("/api/models/u/n/tree/{COMMIT}") {
            if faults.page > 0 {
                return self.page(request, stream, faults.page);
            }
            let whole = || self.tree(0, usize::MAX);
            return json(stream, faults.tree.clone().unwrap_or_else(whole));
        }
        let file = |path: &str| self.files.iter().find(|(name, _)| name == path);
        if let Some((name, bytes)) = path
            .strip_prefix(&format!("/u/n/resolve/{COMMIT}/"))
            .and_then(file)
        {
            let etag = faults.etag.clone().unwrap_or_else(|| sha256(bytes));
            let headers = format!(
                "Location: /cdn/{name}?signature=secret\r\nX-Repo-Commit: {COMMIT}\r\nX-Linked-Etag: \"{etag}\"\r\nContent-Length: 0\r\n"
            );
            return send(stream, "302 Found", &headers, b"");
        }
        match path.strip_prefix("/cdn/").and_then(file) {
            Some((_, bytes)) => self.content(request, stream, bytes),
            None => send(stream, "404 Not Found", "Content-Length: 0\r\n", b""),
        }
    }

    /// Sends a page of the list of files, whose `Link` header names the next one.
    fn page(&self, request: &Request, stream: &mut TcpStream, most: usize) {
        let (path, query) = request.path.split_once('?').unwrap_or_default();
        let first = query.split('&').find_map(|p| p.strip_prefix("cursor="));
        let first: usize = first.map_or(0, |n| n.parse().unwrap());
        let text = self.tree(first, most);
        let next = first + most;
        let link = match next < self.files.len() {
            true => format!("Link: <{path}?recursive=true&cursor={next}>; rel=\"next\"\r\n"),
            false => String::new(),
        };
        let headers = format!("{link}Content-Length: {}\r\n", text.len());
        send(stream, "200 OK", &headers, text.as_bytes());
    }

    fn content(&self, request: &Request, stream: &mut TcpStream, bytes: &[u8]) {
        let faults = self.faults.lock().unwrap().clone();
        std::thread::sleep(faults.delay);
        let mut bytes = bytes.to_vec();
        if faults.damaged {
            bytes[0] ^= 1;
        }
        let range = request
            .range
            .as_deref()
            .and_then(|r| r.strip_prefix("bytes="));
        let range = range.and_then(|r| r.split_once('-'));
        let first: usize = range.map_or(0, |(first, _)| first.parse().unwrap());
        let (status, headers, mut body) = match first > 0 && !faults.whole {
            false => (
                "200 OK",
                format!("Content-Length: {}\r\n", bytes.len()),
                &bytes[..],
            ),
            true => (
                "206 Partial Content",
                format!(
                    "Content-Range: bytes {first}-{}/{}\r\nContent-Length: {}\r\n",
                    bytes.len() - 1,
                    bytes.len(),
                    bytes.len() - first
                ),
                &bytes[first..],
            ),
        };
        let (cuts, most) = faults.cuts;
        if cuts > 0 {
            self.faults.lock().unwrap().cuts.0 -= 1;
            body = &body[..most.min(body.len())];
        }
        send(stream, status, &headers, body);
    }
}

impl FakeHub {
    pub(super) fn new(files: &[(&str, Vec<u8>)], faults: Faults) -> FakeHub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let files = files
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), bytes.clone()));
        let content = Arc::new(Content {
            files: files.collect(),
            faults: Mutex::new(faults),
        });
        let log = Arc::clone(&requests);
        spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (log, content) = (Arc::clone(&log), Arc::clone(&content));
                spawn(move || {
                    if let Some(request) = read(&stream) {
                        log.lock().unwrap().push(request.clone());
                        content.answer(&request, &mut stream);
                    }
                });
            }
        });
        FakeHub { url, requests }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the ranges of the requests for content.
    pub(super) fn downloads(&self) -> Vec<Option<String>> {
        let all = self.requests().into_iter();
        all.filter(|r| r.path.starts_with("/cdn/"))
            .map(|r| r.range)
            .collect()
    }
}
