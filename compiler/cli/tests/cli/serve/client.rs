//! A server process, and a client that speaks HTTP/1.1.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::support::TPC;

/// A running server.
pub(super) struct Served {
    pub(super) child: Child,
    pub(super) address: String,
}

/// An answer of the server.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    #[track_caller]
    pub(super) fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// Returns the JSON of an answer with status 200.
    #[track_caller]
    pub(super) fn ok(&self) -> Json {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()
    }

    /// Returns the error of an answer with this status.
    #[track_caller]
    pub(super) fn error(&self, status: u16) -> Json {
        assert_eq!(self.status, status, "{}", self.body);
        let error = self.json()["error"].clone();
        assert!(
            error["message"].is_string() && error["type"].is_string(),
            "{error}"
        );
        error
    }

    /// Returns the chunks of a stream, and checks its end.
    #[track_caller]
    pub(super) fn chunks(&self) -> Vec<Json> {
        assert_eq!(self.status, 200, "{}", self.body);
        let lines = self.body.lines().filter_map(|l| l.strip_prefix("data: "));
        let mut lines: Vec<&str> = lines.collect();
        assert_eq!(lines.pop(), Some("[DONE]"), "{}", self.body);
        lines
            .iter()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }
}

impl Served {
    /// Starts a server on a free port, and waits until it is ready.
    #[track_caller]
    pub(super) fn start(model: &str, options: &[&str]) -> Served {
        Served::with_env(model, options, &[])
    }

    #[track_caller]
    pub(super) fn with_env(model: &str, options: &[&str], env: &[(&str, &str)]) -> Served {
        let mut child = Command::new(TPC)
            .args(["serve", model, "--port", "0"])
            .args(options)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("serving at http://") else {
            let mut stderr = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut stderr);
            panic!("{line} {stderr}");
        };
        // The log must not fill the pipe.
        let mut log = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = log.read_to_string(&mut text);
            assert!(!text.contains("panicked"), "{text}");
        });
        Served {
            address: address.to_owned(),
            child,
        }
    }

    /// Sends a request without waiting for its answer.
    pub(super) fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            self.address,
            body.len()
        );
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(body);
        stream
    }

    pub(super) fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        answer(self.send(method, path, headers, body))
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "", b"")
    }

    pub(super) fn post(&self, path: &str, body: &Json) -> Answer {
        let headers = "Content-Type: application/json\r\n";
        self.request("POST", path, headers, body.to_string().as_bytes())
    }

    /// Continues a list of tokens with a completion.
    pub(super) fn complete(&self, prompt: &Json, options: &Json) -> Answer {
        let mut body = json!({ "prompt": prompt, "max_tokens": 8, "temperature": 0 });
        let options = options.as_object().unwrap();
        let fields = body.as_object_mut().unwrap();
        fields.extend(options.iter().map(|(k, v)| (k.clone(), v.clone())));
        self.post("/v1/completions", &body)
    }

    /// Sends a signal.
    pub(super) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end of the server.
    pub(super) fn ended(&mut self, most: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < most {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Returns the number of slots that answer a request.
    pub(super) fn busy(&self) -> usize {
        let slots = self.get("/slots").ok();
        let slots = slots.as_array().unwrap().iter();
        slots.filter(|s| s["is_processing"] == true).count()
    }

    /// Waits until no slot answers a request.
    #[track_caller]
    pub(super) fn idle(&self) {
        for _ in 0..2000 {
            if self.busy() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("a slot is still busy");
    }

    /// Returns a number of `/metrics`.
    #[track_caller]
    pub(super) fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}\n{text}"))
            .parse()
            .unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to its end.
pub(super) fn answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let at = bytes.windows(4).position(|w| w == b"\r\n\r\n");
    let Some(at) = at else {
        return Answer {
            status: 0,
            head: String::from_utf8_lossy(&bytes).into_owned(),
            body: String::new(),
        };
    };
    let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
    let body = match head.contains("transfer-encoding: chunked") {
        true => dechunked(&bytes[at + 4..]),
        false => bytes[at + 4..].to_vec(),
    };
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(at) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..at]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let end = (at + 2 + size).min(rest.len());
        out.extend(&rest[at + 2..end]);
        rest = &rest[(end + 2).min(rest.len())..];
    }
    out
}
