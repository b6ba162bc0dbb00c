use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::spawn;

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) path: String,
    /// The first and last byte of the range.
    pub(super) range: Option<(u64, u64)>,
    pub(super) authorization: Option<String>,
}

/// A server whose threads run until the process ends.
pub(super) struct Server {
    pub(super) host: String,
    requests: Arc<Mutex<Vec<Request>>>,
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
            "range" => {
                let (a, b) = value.strip_prefix("bytes=")?.split_once('-')?;
                request.range = Some((a.parse().ok()?, b.parse().ok()?));
            }
            "authorization" => request.authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(request)
}

impl Server {
    pub(super) fn new(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { break };
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                spawn(move || {
                    if let Some(request) = read(&stream) {
                        log.lock().unwrap().push(request.clone());
                        answer(&request, &mut stream);
                    }
                });
            }
        });
        Server { host, requests }
    }

    pub(super) fn of_files(files: Vec<(String, Vec<u8>)>) -> Server {
        Server::new(move |request, stream| {
            let path = request.path.split('?').next().unwrap_or_default();
            match files.iter().find(|(name, _)| path.ends_with(name.as_str())) {
                Some((_, bytes)) => part(stream, request, bytes),
                None => head(stream, "404 Not Found", &[("Content-Length", "0")]),
            }
        })
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Writes a status line and headers. Ignores errors, because the client may have disconnected.
pub(super) fn head(stream: &mut TcpStream, status: &str, headers: &[(&str, &str)]) {
    let mut text = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let _ = stream.write_all(format!("{text}\r\n").as_bytes());
}

pub(super) fn part(stream: &mut TcpStream, request: &Request, bytes: &[u8]) {
    let whole = bytes.len() as u64;
    let (first, last) = request.range.unwrap_or((0, whole - 1));
    if first >= whole {
        let range = format!("bytes */{whole}");
        head(
            stream,
            "416 Range Not Satisfiable",
            &[("Content-Range", &range), ("Content-Length", "0")],
        );
        return;
    }
    let last = last.min(whole - 1);
    let body = &bytes[usize::try_from(first).unwrap()..=usize::try_from(last).unwrap()];
    let range = format!("bytes {first}-{last}/{whole}");
    head(
        stream,
        "206 Partial Content",
        &[
            ("Content-Range", &range),
            ("Content-Length", &body.len().to_string()),
        ],
    );
    let _ = stream.write_all(body);
}
