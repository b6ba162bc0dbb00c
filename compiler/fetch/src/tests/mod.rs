mod server;

use std::io::Write;
use std::time::{Duration, Instant};

use tpc_diag::Diagnostic;
use tpc_gguf::{GgufFile, GgufWriter, StrList};
use tpc_ir::DType;

use super::{Address, Client, Limits, Token, open};
use server::{Server, head, part};

const LIMITS: Limits = Limits {
    connect: Duration::from_millis(800),
    read: Duration::from_millis(600),
    whole: Duration::from_millis(1500),
    redirects: 3,
};

fn get_with(url: &str, token: Option<Token>) -> Result<GgufFile, Diagnostic> {
    let client = Client::new(LIMITS, token, None)?;
    open(client, Address::parse(url)?)
}

fn get(url: &str) -> Result<GgufFile, Diagnostic> {
    get_with(url, None)
}

fn model(tokens: usize) -> Vec<u8> {
    let mut w = GgufWriter::new("m");
    let tokens: Vec<String> = (0..tokens).map(|i| format!("token{i}")).collect();
    w.meta("general.architecture", "llama");
    w.meta(
        "tokenizer.ggml.tokens",
        tokens.iter().map(String::as_str).collect::<StrList>(),
    );
    w.tensor("t", DType::F32, &[1024, 2048]);
    let mut out = Vec::new();
    w.write(&mut out, |_, t, sink| {
        sink.write_all(&vec![7; usize::try_from(t.bytes).unwrap()])
    })
    .unwrap();
    out
}

fn shards() -> Vec<(String, Vec<u8>)> {
    let shard = |n: u16| {
        let mut w = GgufWriter::new("shard");
        w.meta("split.no", n - 1)
            .meta("split.count", 3u16)
            .meta("split.tensors.count", 3i32);
        w.tensor(&format!("t{n}"), DType::F32, &[8]);
        let mut out = Vec::new();
        w.write_header(&mut out).unwrap();
        out
    };
    (1..=3)
        .map(|n| (format!("/m-{n:05}-of-00003.gguf"), shard(n)))
        .collect()
}

#[track_caller]
fn fails(url: &str, code: &str, said: &str) -> Diagnostic {
    let begun = Instant::now();
    let d = get(url).expect_err(url);
    assert_eq!(d.code.id, code, "{d}");
    assert!(d.to_string().contains(said), "{said}: {d}");
    assert!(d.help.is_some(), "{d}");
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
    d
}

#[test]
fn a_header_is_read_by_ranges() {
    let bytes = model(200_000);
    let offset = {
        let server = Server::of_files(vec![("/m.gguf".to_owned(), bytes.clone())]);
        let file = get(&server.url("/a/m.gguf?x=1")).unwrap();
        assert!(file.is_elsewhere() && !file.has_data());
        assert_eq!(file.header().tensors().len(), 1);
        assert_eq!(file.shards()[0].file_len(), bytes.len() as u64);
        let requests = server.requests();
        assert!((2..8).contains(&requests.len()), "{requests:?}");
        assert!(
            requests
                .iter()
                .all(|r| r.path == "/a/m.gguf?x=1" && r.authorization.is_none())
        );
        let read = requests.last().and_then(|r| r.range).unwrap().1;
        assert!(read < 2 * file.header().data_offset + (1 << 20));
        file.header().data_offset
    };
    // Messages omit the query, which may be a secret signature.
    let cut = bytes[..usize::try_from(offset).unwrap() / 2].to_vec();
    let server = Server::of_files(vec![("/m.gguf".to_owned(), cut)]);
    let d = fails(&server.url("/m.gguf?sig=secret"), "TPC0103", "m.gguf");
    assert!(!d.to_string().contains("secret"), "{d}");
}

#[test]
fn a_server_without_ranges_is_read_as_far_as_needed() {
    for with_length in [true, false] {
        let bytes = model(200_000);
        let whole = bytes.len();
        let server = Server::new(move |_, stream| {
            let length = whole.to_string();
            let headers = [("Content-Length", length.as_str())];
            head(stream, "200 OK", if with_length { &headers } else { &[] });
            let _ = stream.write_all(&bytes);
        });
        let file = get(&server.url("/m.gguf")).unwrap();
        assert_eq!(
            (file.header().tensors().len(), server.requests().len()),
            (1, 1)
        );
    }
}

#[test]
fn any_shard_finds_its_sisters() {
    let files = shards();
    let server = Server::of_files(files.clone());
    for (name, _) in &files {
        let file = get(&server.url(name)).unwrap();
        assert_eq!((file.shards().len(), file.header().tensors().len()), (3, 3));
    }
    let server = Server::of_files(files[..2].to_vec());
    fails(
        &server.url("/m-00001-of-00003.gguf"),
        "TPC0431",
        "m-00003-of-00003.gguf",
    );
}

#[test]
fn redirects_are_followed_and_counted() {
    let bytes = model(10);
    let server = Server::new(move |r, stream| match r.path.as_str() {
        "/first" => head(
            stream,
            "302 Found",
            &[("Location", "/second"), ("Content-Length", "0")],
        ),
        "/second" => head(
            stream,
            "307 Temporary Redirect",
            &[("Location", "m.gguf?sig=1"), ("Content-Length", "0")],
        ),
        "/m.gguf?sig=1" => part(stream, r, &bytes),
        "/nowhere" => head(stream, "302 Found", &[("Content-Length", "0")]),
        "/file" => head(
            stream,
            "302 Found",
            &[("Location", "file:///etc/passwd"), ("Content-Length", "0")],
        ),
        _ => head(
            stream,
            "302 Found",
            &[("Location", "/circle"), ("Content-Length", "0")],
        ),
    });
    assert!(get(&server.url("/first")).is_ok());
    fails(&server.url("/circle"), "TPC0434", "more than 3 times");
    fails(&server.url("/nowhere"), "TPC0434", "without a target");
    fails(&server.url("/file"), "TPC0434", "file:///etc/passwd");
}

#[test]
fn a_token_goes_to_its_host_alone() {
    let bytes = model(10);
    let other = Server::of_files(vec![("/m.gguf".to_owned(), bytes)]);
    let to = other.url("/m.gguf");
    let first = Server::new(move |_, stream| {
        head(
            stream,
            "302 Found",
            &[("Location", &to), ("Content-Length", "0")],
        );
    });
    let token = Token::of_test(&first.host, "hf_secret");
    assert!(!format!("{token:?}").contains("hf_secret"));
    get_with(&first.url("/m.gguf"), Some(token.clone())).unwrap();
    assert_eq!(
        first.requests()[0].authorization.as_deref(),
        Some("Bearer hf_secret")
    );
    assert!(other.requests().iter().all(|r| r.authorization.is_none()));
    get_with(&other.url("/m.gguf"), Some(token)).unwrap();
    assert!(other.requests().iter().all(|r| r.authorization.is_none()));
    // A real token requires TLS.
    let token = Token::hugging_face(" hf_x\n").unwrap();
    let server = Server::of_files(Vec::new());
    assert!(get_with(&server.url("/m.gguf"), Some(token)).is_err());
    assert!(server.requests().iter().all(|r| r.authorization.is_none()));
    assert!(Token::hugging_face("two words").is_none() && Token::hugging_face("").is_none());
}

#[test]
fn refusals_say_what_to_do() {
    for (status, said, cure) in [
        ("401 Unauthorized", "401", "credentials"),
        ("403 Forbidden", "403", "credentials"),
        ("404 Not Found", "no such file", "spelling"),
        ("410 Gone", "410", "spelling"),
        ("418 I'm a teapot", "418", "download"),
        ("429 Too Many Requests", "too many", "17 seconds"),
        ("500 Internal Server Error", "500", "later"),
        ("503 Service Unavailable", "503", "later"),
        ("204 No Content", "204", "address"),
    ] {
        let server = Server::new(move |_, stream| {
            head(
                stream,
                status,
                &[("Retry-After", "17"), ("Content-Length", "0")],
            );
        });
        let d = fails(&server.url("/m.gguf"), "TPC0431", said);
        let help = d.help.unwrap().to_string();
        assert!(help.contains(cure), "{status}: {help}");
    }
}

#[test]
fn ranges_that_were_not_asked_for() {
    for range in [
        "bytes 5-9/100",
        "bytes 0-9/5",
        "bytes 9-0/100",
        "bytes 0-99999999999/*",
        "bytes */100",
        "0-9/100",
        "",
    ] {
        let server = Server::new(move |_, stream| {
            head(
                stream,
                "206 Partial Content",
                &[("Content-Range", range), ("Content-Length", "10")],
            );
            let _ = stream.write_all(b"GGUF\x03\0\0\0\0\0");
        });
        fails(&server.url("/m.gguf"), "TPC0433", "requested range");
    }
}

#[test]
fn answers_that_break_off() {
    for (status, range) in [("206 Partial Content", "bytes 0-999/1000"), ("200 OK", "")] {
        let server = Server::new(move |_, stream| {
            head(
                stream,
                status,
                &[("Content-Range", range), ("Content-Length", "1000")],
            );
            let _ = stream.write_all(b"GGUF\x03\0\0\0");
        });
        fails(&server.url("/m.gguf"), "TPC0433", "");
    }
    // Closed within the headers, or not HTTP.
    for said in [
        &b"HTTP/1.1 200 OK\r\nContent-"[..],
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n\r\n",
    ] {
        let server = Server::new(move |_, stream| {
            let _ = stream.write_all(said);
        });
        fails(&server.url("/m.gguf"), "TPC0432", "");
    }
}

#[test]
fn a_compressed_answer_and_a_page() {
    let server = Server::new(|_, stream| {
        head(
            stream,
            "200 OK",
            &[("Content-Encoding", "gzip"), ("Content-Length", "4")],
        );
        let _ = stream.write_all(b"\x1f\x8b\x08\0");
    });
    fails(&server.url("/m.gguf"), "TPC0433", "gzip");
    let server = Server::new(|_, stream| {
        head(stream, "200 OK", &[("Content-Type", "text/html")]);
        let _ = stream.write_all(b"\n<!DOCTYPE html><html>please log in</html>");
    });
    fails(&server.url("/m.gguf"), "TPC0435", "web page");
    let server = Server::new(|_, stream| {
        head(stream, "200 OK", &[("Content-Length", "0")]);
    });
    fails(&server.url("/m.gguf"), "TPC0103", "");
}

#[test]
fn a_file_that_changes_in_between() {
    let bytes = model(200_000);
    for by_tag in [true, false] {
        let bytes = bytes.clone();
        let server = Server::new(move |r, stream| {
            let (first, last) = r.range.unwrap();
            let whole = bytes.len() + usize::from(!by_tag && first > 0);
            let body = &bytes[usize::try_from(first).unwrap()..=usize::try_from(last).unwrap()];
            let range = format!("bytes {first}-{last}/{whole}");
            let tag = if by_tag {
                format!("\"{first}\"")
            } else {
                "\"same\"".to_owned()
            };
            let length = body.len().to_string();
            head(
                stream,
                "206 Partial Content",
                &[
                    ("Content-Range", &range),
                    ("Content-Length", &length),
                    ("ETag", &tag),
                ],
            );
            let _ = stream.write_all(body);
        });
        fails(
            &server.url("/m.gguf"),
            "TPC0433",
            if by_tag { "changed" } else { "just before" },
        );
    }
}

#[test]
fn slow_and_endless_answers_are_given_up() {
    // Each read is fast enough, but the total time is too long.
    let server = Server::new(|_, stream| {
        head(stream, "200 OK", &[("Content-Length", "1000000")]);
        while stream.write_all(b"G").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    fails(&server.url("/m.gguf"), "TPC0432", "in time");
    // Silence after the request, or after the headers.
    for headers in [false, true] {
        let server = Server::new(move |_, stream| {
            if headers {
                head(stream, "200 OK", &[("Content-Length", "1000000")]);
            }
            std::thread::sleep(Duration::from_secs(4));
        });
        fails(&server.url("/m.gguf"), "TPC0432", "in time");
    }
    // Endless headers.
    let server = Server::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream
            .write_all(b"X-Padding: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
            .is_ok()
        {}
    });
    fails(&server.url("/m.gguf"), "TPC0432", "");
    // An endless body that is not a GGUF file.
    let server = Server::new(|_, stream| {
        head(stream, "200 OK", &[]);
        while stream.write_all(&[b'x'; 65536]).is_ok() {}
    });
    fails(&server.url("/m.gguf"), "TPC0101", "");
    // Ranges of one byte each.
    let server = Server::new(|r, stream| {
        let (first, _) = r.range.unwrap();
        let range = format!("bytes {first}-{first}/1000000");
        head(
            stream,
            "206 Partial Content",
            &[("Content-Range", &range), ("Content-Length", "1")],
        );
        let _ = stream.write_all(b"G");
    });
    fails(&server.url("/m.gguf"), "TPC0433", "too small");
}

#[test]
fn nobody_there() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    fails(
        &format!("http://{gone}/m.gguf"),
        "TPC0432",
        "cannot be reached",
    );
    // TLS to a server without TLS.
    let server = Server::new(|_, stream| head(stream, "200 OK", &[]));
    fails(
        &server.url("/m.gguf").replace("http:", "https:"),
        "TPC0432",
        "",
    );
    let d = Client::new(LIMITS, None, Some(b"no certificate"))
        .err()
        .unwrap();
    assert_eq!(d.code.id, "TPC0432");
}
