//! A server that speaks the API of the Hugging Face hub, with the repository `u/n`.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

const COMMIT: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// A file with its SHA-256.
#[derive(Clone)]
pub(crate) struct HubFile {
    pub(crate) name: &'static str,
    pub(crate) hash: String,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct HubServer {
    pub(crate) url: String,
    files: Arc<Vec<HubFile>>,
    /// The names of the sent files, each with its number of bytes.
    sent: Arc<Mutex<Vec<(String, usize)>>>,
}

/// The first and last byte of a range.
type ByteRange = (usize, Option<usize>);

/// Reads a request: the path and the range.
fn read(stream: &TcpStream) -> Option<(String, Option<ByteRange>)> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut range = None;
    for line in lines.map_while(Result::ok).take_while(|l| !l.is_empty()) {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            let (first, last) = value.split_once('-')?;
            range = Some((first.parse().ok()?, last.parse().ok()));
        }
    }
    Some((path, range))
}

fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

impl HubServer {
    pub(crate) fn new(files: Vec<HubFile>) -> HubServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = HubServer {
            url: format!("http://{}", listener.local_addr().unwrap()),
            files: Arc::new(files),
            sent: Arc::default(),
        };
        let own = server.clone();
        spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                spawn(move || own.answer(stream));
            }
        });
        server
    }

    pub(crate) fn sent(&self) -> Vec<(String, usize)> {
        self.sent.lock().unwrap().clone()
    }

    fn tree(&self) -> String {
        let item = |f: &HubFile| {
            let (name, hash, size) = (f.name, &f.hash, f.bytes.len());
            format!(
                r#"{{"type":"file","path":"{name}","size":{size},"oid":"{}","lfs":{{"oid":"{hash}","size":{size}}}}}"#,
                &hash[..40]
            )
        };
        let items: Vec<String> = self.files.iter().map(item).collect();
        format!("[{}]", items.join(","))
    }

    fn answer(&self, mut stream: TcpStream) {
        let Some((path, range)) = read(&stream) else {
            return;
        };
        let path = path.split('?').next().unwrap_or_default();
        if path == "/api/models/u/n/refs" {
            let refs = format!(r#"{{"branches":[{{"name":"main","targetCommit":"{COMMIT}"}}]}}"#);
            return send(&mut stream, "200 OK", "", refs.as_bytes());
        }
        if path == format!("/api/models/u/n/tree/{COMMIT}") {
            return send(&mut stream, "200 OK", "", self.tree().as_bytes());
        }
        let name = path.strip_prefix(&format!("/u/n/resolve/{COMMIT}/"));
        let Some(file) = name.and_then(|n| self.files.iter().find(|f| f.name == n)) else {
            return send(&mut stream, "404 Not Found", "", b"");
        };
        // Two processes at once wait for each other.
        sleep(Duration::from_millis(100));
        let whole = file.bytes.len();
        let (first, last) = range.unwrap_or((0, None));
        let end = last.map_or(whole, |last| (last + 1).min(whole));
        let body = &file.bytes[first..end];
        self.sent
            .lock()
            .unwrap()
            .push((file.name.to_owned(), body.len()));
        let common = format!(
            "X-Repo-Commit: {COMMIT}\r\nX-Linked-Etag: \"{}\"\r\n",
            file.hash
        );
        match range {
            Some(_) => {
                let range = format!(
                    "{common}Content-Range: bytes {first}-{}/{whole}\r\n",
                    end - 1
                );
                send(&mut stream, "206 Partial Content", &range, body);
            }
            None => send(&mut stream, "200 OK", &common, body),
        }
    }
}
