//! Models at addresses on a local server.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::spawn;

use serde_json::Value as Json;

use super::support::{SMALL, path, tpc, words};

/// Answers a request for a range of `bytes`; answers 404 for other names.
fn answer(mut stream: TcpStream, bytes: &[u8]) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let wanted = lines.next()?.ok()?;
    let mut range = None;
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            let (a, b) = value.split_once('-')?;
            range = Some((a.parse::<usize>().ok()?, b.parse::<usize>().ok()?));
        }
    }
    if !wanted.contains("/m.gguf") {
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok()?;
        return None;
    }
    let (first, last) = range?;
    let last = last.min(bytes.len() - 1);
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        bytes.len(),
        last + 1 - first
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&bytes[first..=last]).ok()
}

/// Serves one file and returns the address.
fn serve(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap();
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            answer(stream, &bytes);
        }
    });
    format!("http://{host}")
}

#[test]
fn a_plan_by_address_is_that_of_the_file() {
    let file = path(SMALL);
    let url = format!(
        "{}/m.gguf?signature=secret",
        serve(fs::read(&file).unwrap())
    );
    let json = |model: &str| -> Json {
        let ran = tpc([
            "plan",
            model,
            "--devices",
            "2",
            "-c",
            "4k",
            "--format",
            "json",
        ]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(!ran.stderr.contains("secret") && !ran.stdout.contains("secret"));
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let (here, there) = (json(&file), json(&url));
    for key in ["tensors", "devices", "collectives", "verdict"] {
        assert_eq!(here[key], there[key], "{key}");
    }
    let ran = tpc(["inspect", &url]);
    assert!(
        ran.status == 0 && ran.stdout.contains("header read by address"),
        "{}",
        ran.stderr
    );
    let ran = tpc([
        "lint",
        &url,
        "--devices",
        "2",
        "-c",
        "4k",
        "--format",
        "sarif",
    ]);
    assert!(
        ran.status == 0 && ran.stdout.contains("\"http://127.0.0.1"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_is_not_there_is_told() {
    let ran = tpc(["plan", &format!("{}/other.gguf", serve(vec![0]))]);
    let text = words(&ran.stderr);
    assert!(
        ran.status == 2 && text.contains("TPC0431") && text.contains("spelling"),
        "{text}"
    );
}
