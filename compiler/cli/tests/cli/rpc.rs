//! `tpc rpc`, with a client that sends the messages of llama.cpp programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use super::support::{Scratch, TPC, refuses, tpc};
use super::validation;

/// The address of a connection's first buffer; the second buffer follows.
const WEIGHTS: u64 = 1 << 40;
const RESULTS: u64 = WEIGHTS + 0x2000;

fn message(command: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![command];
    out.extend((payload.len() as u64).to_le_bytes());
    out.extend(payload);
    out
}

fn tensor(id: u64, ne: [u32; 2], op: u32, src: [u64; 2], data: u64, name: &str) -> Vec<u8> {
    let buffer = if data < RESULTS { WEIGHTS } else { RESULTS };
    let mut out = id.to_le_bytes().to_vec();
    out.extend(0_u32.to_le_bytes());
    out.extend(buffer.to_le_bytes());
    let row = 4 * ne[0];
    let all = row * ne[1];
    let words = [ne[0], ne[1], 1, 1, 4, row, all, all, op];
    out.extend(words.iter().flat_map(|n| n.to_le_bytes()));
    out.extend([0; 64]);
    // GGML_TENSOR_FLAG_COMPUTE.
    out.extend(16_u32.to_le_bytes());
    out.extend(src.iter().flat_map(|n| n.to_le_bytes()));
    out.extend([0; 80]);
    out.extend(data.to_le_bytes());
    out.extend(name.bytes());
    out.resize(296, 0);
    out
}

/// Returns a client's messages: memory, a weight by hash, two layers for `tokens` tokens, and a read of the result.
fn conversation(tokens: u32) -> Vec<u8> {
    let n = |n: u64| n.to_le_bytes();
    let mut out = message(14, &[0; 24]);
    for _ in 0..2 {
        out.extend(message(0, &[[0; 4].as_slice(), &n(0x1000)].concat()));
    }
    let up = tensor(1, [8, 32], 0, [0; 2], WEIGHTS, "up.weight");
    let down = tensor(2, [32, 8], 0, [0; 2], WEIGHTS + 1024, "down.weight");
    for w in [&up, &down] {
        out.extend(message(7, &[w.as_slice(), &n(0), &n(1)].concat()));
    }
    let x = tensor(3, [8, tokens], 0, [0; 2], RESULTS, "x");
    let hidden = tensor(4, [32, tokens], 29, [1, 3], RESULTS + 256, "hidden");
    let y = tensor(5, [8, tokens], 29, [2, 4], RESULTS + 1536, "y");
    let counts = |n: u32| n.to_le_bytes().to_vec();
    let graph = [
        counts(0),
        counts(2),
        n(4).to_vec(),
        n(5).to_vec(),
        counts(5),
        up,
        x,
        hidden,
        down,
        y.clone(),
    ];
    out.extend(message(10, &graph.concat()));
    out.extend(message(8, &[y.as_slice(), &n(0), &n(32)].concat()));
    out
}

fn served(options: &[&str], conversations: &[Vec<u8>]) -> (i32, String, String) {
    let mut child = Command::new(TPC)
        .args([
            "rpc",
            "--protocol",
            "7",
            "--listen",
            "127.0.0.1:0",
            "--once",
        ])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let address = line
        .trim()
        .strip_prefix("listening on ")
        .unwrap()
        .to_owned();
    let mut streams: Vec<TcpStream> = conversations
        .iter()
        .map(|_| TcpStream::connect(&address).unwrap())
        .collect();
    // Open all connections before the first one ends, because the server ends with the last open connection.
    for stream in &mut streams {
        stream.write_all(&message(14, &[0; 24])).unwrap();
        stream.read_exact(&mut [0; 36]).unwrap();
    }
    for (stream, sent) in streams.iter_mut().zip(conversations) {
        let _ = stream.write_all(&sent[33..]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    for stream in &mut streams {
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got);
    }
    let (mut out, mut err) = (String::new(), String::new());
    stdout.read_to_string(&mut out).unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    validation::check(&[&["rpc"], options].concat(), &out);
    (child.wait().unwrap().code().unwrap(), out, err)
}

#[test]
fn a_client_gets_verdicts_and_a_plan_of_its_graph() {
    let scratch = Scratch::new();
    let folder = scratch.path("graphs");
    let options = ["--capture", folder.to_str().unwrap(), "--devices", "2"];
    let both = [conversation(7), conversation(1)];
    let (status, out, err) = served(&options, &both);
    assert_eq!(status, 0, "{out}{err}");
    let file = folder.join("graph-01.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("\"role\":\"weight\",\"also\":[[8, 32, 1, 1]]"),
        "{text}"
    );
    assert!(
        text.contains("\"role\":\"input\",\"also\":[[8, 1, 1, 1]]"),
        "{text}"
    );
    assert!(!folder.join("graph-02.jsonl").exists());
    assert!(out.contains("graph-01.jsonl:"), "{out}");
    assert!(out.contains("by the rules of ggml's tensor split"), "{out}");
    assert!(
        out.contains("up.weight") || out.contains("all-reduce"),
        "{out}"
    );
    let linted = tpc(["lint", "--graph", file.to_str().unwrap()]);
    assert_eq!(linted.status, 0, "{}", linted.stderr);
    // A single graph would not show which sizes count tokens.
    assert!(!linted.stderr.contains("TPC0193"), "{}", linted.stderr);
}

#[test]
fn verdicts_come_as_one_object() {
    let scratch = Scratch::new();
    let folder = scratch.path("graphs");
    let folder = folder.to_str().unwrap();
    let options = ["--capture", folder, "--devices", "2", "--format", "json"];
    let noise = b"\x0e\x18\0\0\0\0\0\0\0........................\x63 is no command".to_vec();
    let (status, out, err) = served(&options, &[noise, conversation(7)]);
    assert_eq!(status, 0, "{out}{err}");
    assert!(err.contains("TPC0750") && err.contains("client 1"), "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["files"].as_array().unwrap().len(), 2);
    assert_eq!(json["plans"][0]["devices"].as_array().unwrap().len(), 2);
    assert_eq!(json["verdict"], "ok");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let scratch = Scratch::new();
    let folder = scratch.path("graphs");
    let folder = folder.to_str().unwrap();
    let rpc = |options: &[&str]| tpc([&["rpc", "--capture", folder], options].concat());
    refuses(&rpc(&["--listen", "0.0.0.0:0"]), 2, "TPC0757");
    refuses(&rpc(&["--listen", "nowhere"]), 2, "TPC0400");
    refuses(&rpc(&["-H", "nowhere.invalid", "-p", "0"]), 2, "TPC0400");
    refuses(&rpc(&["--memory", "8"]), 2, "TPC0400");
    let file = scratch.model("llama-tiny");
    let file = tpc(["rpc", "--capture", file.to_str().unwrap()]);
    refuses(&file, 2, "TPC0402");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refuses(&rpc(&["--listen", &address]), 2, "TPC0756");
    refuses(&tpc(["rpc"]), 2, "TPC0400");
    let cards = tpc(["rpc", "--devices", "2x3090", "--executor", "cpu"]);
    refuses(&cards, 2, "TPC0401");
    assert!(cards.stderr.contains("--executor cuda"), "{}", cards.stderr);
    let reference = tpc(["rpc", "--devices", "cpu", "--executor", "reference"]);
    refuses(&reference, 2, "TPC0401");
}

#[test]
fn a_program_that_fails_is_told() {
    let lint = |command: &str| tpc(["lint", "--rpc-command", command]);
    refuses(&lint("tpc-no-such-program"), 1, "TPC0759");
    refuses(&lint(" "), 2, "TPC0400");
    refuses(&lint("true"), 1, "TPC0758");
    refuses(&lint("false"), 1, "TPC0759");
}

fn set(tensor: &[u8], values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    message(6, &[tensor, &[0; 9], &data].concat())
}

/// Multiplies a matrix by columns; rows and columns have `n` elements.
fn product(matrix: &[f32], n: usize, columns: &[f32]) -> Vec<f32> {
    let dot = |row: &[f32], x: &[f32]| row.iter().zip(x).map(|(a, b)| a * b).sum();
    let column = |x| matrix.chunks(n).map(move |row| dot(row, x));
    columns.chunks(n).flat_map(column).collect()
}

#[test]
fn a_graph_is_computed_by_devices_that_share_it() {
    let value = |i: usize| ((i * 37 % 23) as f32 - 11.0) / 7.0;
    let (ups, downs): (Vec<f32>, Vec<f32>) =
        ((0..256).map(value).collect(), (3..259).map(value).collect());
    let up = tensor(1, [8, 32], 0, [0; 2], WEIGHTS, "up.weight");
    let down = tensor(2, [32, 8], 0, [0; 2], WEIGHTS + 1024, "down.weight");
    let x = tensor(3, [8, 7], 0, [0; 2], RESULTS, "x");
    let y = tensor(5, [8, 7], 29, [2, 4], RESULTS + 1536, "y");
    let hidden = tensor(4, [32, 7], 29, [1, 3], RESULTS + 256, "hidden");
    let all = conversation(7);
    let n = |n: u64| n.to_le_bytes();
    let get = |of: &[u8], bytes: u64| message(8, &[of, &n(0), &n(bytes)].concat());
    // The messages up to the graph. The conversation ends with one read of 353 bytes.
    let graph_at = all.len() - get(&y, 32).len();
    let head = 33 + 2 * 21;
    let hashes = 2 * (9 + 312);
    let mut sent = all[..head].to_vec();
    sent.extend([set(&up, &ups), set(&down, &downs)].concat());
    let mut expected = Vec::new();
    for (turn, add) in [(0, 0), (1, 5)] {
        let xs: Vec<f32> = (add..add + 56).map(value).collect();
        sent.extend(set(&x, &xs));
        match turn {
            0 => sent.extend(&all[head + hashes..graph_at]),
            _ => sent.extend(message(16, &[0; 4])),
        }
        sent.extend(get(&y, 224));
        expected.push(product(&downs, 32, &product(&ups, 8, &xs)));
    }
    let emulated = "--executor=emulated-cuda";
    for options in [
        &["--devices", "cpu"][..],
        &["--devices", "cpu,cpu"],
        &["--devices", "cuda:0,cuda:1", emulated],
    ] {
        let (status, err, got) = answered(options, &sent);
        if err.contains("no compiler for the kernels") {
            continue;
        }
        assert_eq!(status, 0, "{err}");
        if options.len() == 2 {
            let newer = [options, &["--protocol", "8"]].concat();
            let (status, err, answers) = answered(&newer, &in_version_8(&sent));
            assert_eq!((status, err.as_str()), (0, ""));
            // Only the greeting differs.
            assert_eq!(
                (&answers[8..11], &answers[12..]),
                (&[8, 0, 1][..], &got[12..])
            );
        }
        let rows: Vec<&[u8]> = got[84..].chunks(232).map(|reply| &reply[8..]).collect();
        assert_eq!(rows.len(), 2, "{err}");
        for (row, expected) in rows.iter().zip(&expected) {
            let found = row
                .as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b));
            let worst = found
                .zip(expected)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f32::max);
            assert!(worst < 1e-3, "{options:?}: off by {worst}");
        }
    }
    // A read of a value inside the program is an error; it does not return stale memory.
    let mut within = sent.clone();
    within.extend(get(&hidden, 32));
    let (_, err, _) = answered(&["--devices", "cpu"], &within);
    assert!(err.contains("TPC0760"), "{err}");
}

#[test]
fn weights_that_a_client_clears_are_loaded_again() {
    let value = |i: usize| ((i * 37 % 23) as f32 - 11.0) / 7.0;
    let up = tensor(1, [8, 32], 0, [0; 2], WEIGHTS, "up.weight");
    let down = tensor(2, [32, 8], 0, [0; 2], WEIGHTS + 1024, "down.weight");
    let x = tensor(3, [8, 7], 0, [0; 2], RESULTS, "x");
    let y = tensor(5, [8, 7], 29, [2, 4], RESULTS + 1536, "y");
    let all = conversation(7);
    let get = message(8, &[y.as_slice(), &[0; 8], &224_u64.to_le_bytes()].concat());
    let (head, hashes) = (33 + 2 * 21, 2 * (9 + 312));
    let graph = &all[head + hashes..all.len() - get.len()];
    let values: Vec<f32> = (0..256).map(value).collect();
    let mut sent = all[..head].to_vec();
    sent.extend(
        [
            set(&up, &values),
            set(&down, &values),
            set(&x, &values[..56]),
        ]
        .concat(),
    );
    sent.extend([graph, &get].concat());
    // BUFFER_CLEAR of all weights, then the last graph again.
    sent.extend(message(
        5,
        &[WEIGHTS.to_le_bytes().as_slice(), &[0]].concat(),
    ));
    sent.extend([set(&x, &values[..56]), message(10, &graph[9..]), get].concat());
    let (status, err, got) = answered(&["--devices", "cpu,cpu"], &sent);
    assert_eq!(status, 0, "{err}");
    let rows: Vec<&[u8]> = got.rchunks(232).take(1).collect();
    assert!(
        rows[0][8..].iter().all(|b| *b == 0),
        "the cleared weights count"
    );
    let first = &got[84..84 + 232];
    assert!(
        first[8..].iter().any(|b| *b != 0),
        "the first graph has its weights"
    );
}

#[test]
fn graphs_that_differ_in_the_size_of_their_batch_are_one_program() {
    let value = |i: usize| ((i * 37 % 23) as f32 - 11.0) / 7.0;
    let (ups, downs): (Vec<f32>, Vec<f32>) =
        ((0..256).map(value).collect(), (3..259).map(value).collect());
    let up = tensor(1, [8, 32], 0, [0; 2], WEIGHTS, "up.weight");
    let down = tensor(2, [32, 8], 0, [0; 2], WEIGHTS + 1024, "down.weight");
    let n = |n: u64| n.to_le_bytes();
    let (head, hashes) = (33 + 2 * 21, 2 * (9 + 312));
    let mut sent = conversation(7)[..head].to_vec();
    sent.extend([set(&up, &ups), set(&down, &downs)].concat());
    let mut expected: Vec<f32> = Vec::new();
    let turns = [7, 3, 5, 1, 7, 9];
    for (turn, tokens) in turns.into_iter().enumerate() {
        let x = tensor(3, [8, tokens], 0, [0; 2], RESULTS, "x");
        let y = tensor(5, [8, tokens], 29, [2, 4], RESULTS + 1536, "y");
        let xs: Vec<f32> = (turn..turn + 8 * tokens as usize).map(value).collect();
        sent.extend(set(&x, &xs));
        let all = conversation(tokens);
        let end = all.len() - message(8, &[&y[..], &n(0), &n(32)].concat()).len();
        sent.extend(&all[head + hashes..end]);
        let bytes = 32 * u64::from(tokens);
        sent.extend(message(8, &[&y[..], &n(0), &n(bytes)].concat()));
        expected.extend(product(&downs, 32, &product(&ups, 8, &xs)));
    }
    let (status, err, got) = answered(&["--devices", "cpu,cpu", "-v"], &sent);
    assert_eq!(status, 0, "{err}");
    let mut found: Vec<f32> = Vec::new();
    let mut at = 84;
    for tokens in turns {
        let row = &got[at + 8..at + 8 + 32 * tokens as usize];
        found.extend(
            row.as_chunks::<4>()
                .0
                .iter()
                .map(|b| f32::from_le_bytes(*b)),
        );
        at += 8 + row.len();
    }
    assert_eq!(found.len(), expected.len());
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
    assert!(worst.fold(0.0, f32::max) < 1e-3, "{err}");
    // One graph does not show the batch size. The batch of 9 exceeds the second program's maximum of 8.
    let made: Vec<&str> = err.lines().filter(|l| l.starts_with("made ")).collect();
    let any = |most: u32| format!("made a program of 5 ops for n_tokens up to {most}");
    assert_eq!(
        made,
        [
            "made a program of 5 ops for one batch size",
            &any(8),
            &any(16)
        ],
        "{err}"
    );
}

#[test]
fn an_op_without_a_kernel_is_computed_and_told_once() {
    // SOLVE_TRI for two columns: 2 x = 4, and x + 4 y = 9.
    let a = tensor(1, [2, 2], 0, [0; 2], WEIGHTS, "a");
    let b = tensor(2, [2, 2], 0, [0; 2], WEIGHTS + 256, "b");
    let x = tensor(3, [2, 2], 85, [1, 2], RESULTS, "x");
    let n = |n: u64| n.to_le_bytes();
    let counts = |n: u32| n.to_le_bytes().to_vec();
    let mut sent = message(14, &[0; 24]);
    for _ in 0..2 {
        sent.extend(message(0, &[[0; 4].as_slice(), &n(0x1000)].concat()));
    }
    sent.extend(set(&a, &[2.0, 0.0, 1.0, 4.0]));
    sent.extend(set(&b, &[4.0, 2.0, 10.0, 9.0]));
    let mut graph = [counts(0), counts(1), n(3).to_vec(), counts(3)].concat();
    graph.extend([a, b, x.clone()].concat());
    for _ in 0..2 {
        sent.extend(message(10, &graph));
    }
    sent.extend(message(8, &[x.as_slice(), &n(0), &n(16)].concat()));
    let (status, err, got) = answered(&["--devices", "cpu"], &sent);
    assert_eq!(status, 0, "{err}");
    assert_eq!(err.matches("TPC0761").count(), 1, "{err}");
    assert!(err.contains("SOLVE_TRI"), "{err}");
    let found = got[got.len() - 16..].as_chunks::<4>().0.iter();
    let found: Vec<f32> = found.map(|b| f32::from_le_bytes(*b)).collect();
    assert_eq!(found, [2.0, 1.0, 2.0, 2.0]);
}

/// Returns a server's exit status, standard error and answers.
fn answered(options: &[&str], sent: &[u8]) -> (i32, String, Vec<u8>) {
    let mut child = Command::new(TPC)
        .args(["rpc", "--listen", "127.0.0.1:0", "--once", "-t", "1"])
        .args(match options.contains(&"--protocol") {
            true => &[][..],
            false => &["--protocol", "7"],
        })
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let mut got = Vec::new();
    // The server exits immediately if its devices are missing.
    if let Some(address) = line.trim().strip_prefix("listening on ") {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(sent).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut got);
    }
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    (child.wait().unwrap().code().unwrap(), err, got)
}

#[test]
fn an_op_that_writes_in_place_changes_what_the_client_reads() {
    let n = |n: u64| n.to_le_bytes();
    let x = tensor(3, [8, 7], 0, [0; 2], RESULTS, "x");
    // ADD: x + x, a view of x.
    let mut y = tensor(4, [8, 7], 2, [3, 3], RESULTS, "y");
    let view = 8 + 4 + 8 + 36 + 68 + 80;
    y[view..view + 8].copy_from_slice(&n(3));
    let counts = |n: u32| n.to_le_bytes().to_vec();
    let graph = [counts(0), counts(1), n(4).to_vec(), counts(2), x.clone(), y];
    let xs: Vec<f32> = (0..56).map(|i| i as f32 / 7.0).collect();
    let get = message(8, &[x.as_slice(), &n(0), &n(224)].concat());
    let mut sent = conversation(7)[..33 + 2 * 21].to_vec();
    sent.extend(set(&x, &xs));
    for (again, factor) in [(false, 2.0), (true, 4.0)] {
        sent.extend(match again {
            false => message(10, &graph.concat()),
            true => message(16, &[0; 4]),
        });
        sent.extend(&get);
        let (status, err, got) = answered(&["--devices", "cpu"], &sent);
        assert_eq!((status, err.as_str()), (0, ""));
        let row = &got[got.len() - 224..];
        let found: Vec<f32> = row
            .as_chunks::<4>()
            .0
            .iter()
            .map(|b| f32::from_le_bytes(*b))
            .collect();
        let expected: Vec<f32> = xs.iter().map(|x| x * factor).collect();
        assert_eq!(found, expected);
    }
}

/// Returns the messages of version 8: the same, with a number for each graph.
fn in_version_8(mut sent: &[u8]) -> Vec<u8> {
    let uid = 5_u64.to_le_bytes();
    let mut out = Vec::new();
    while let Some((head, rest)) = sent.split_first_chunk::<9>() {
        let length = u64::from_le_bytes(head[1..].try_into().unwrap());
        let (payload, rest) = rest.split_at(length as usize);
        out.extend(match head[0] {
            command @ (10 | 16) => message(command, &[&payload[..4], &uid, &payload[4..]].concat()),
            command => message(command, payload),
        });
        sent = rest;
    }
    out
}

/// A client of another version reads the greeting and ends. Both sides name the version.
#[test]
fn a_client_of_another_version_is_told_with_the_option() {
    for (served, other) in [("8", "7"), ("7", "8")] {
        let mut child = Command::new(TPC)
            .args(["rpc", "--devices", "cpu", "--protocol", served])
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&message(14, &[0; 24])).unwrap();
        let mut greeting = [0; 36];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting[8].to_string(), served);
        drop(stream);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("help:") && stderr.read_line(&mut said).unwrap() > 0 {}
        child.kill().unwrap();
        child.wait().unwrap();
        let option = format!("--protocol {other}");
        assert!(said.contains("TPC0762") && said.contains(&option), "{said}");
    }
    let wrong = tpc(["rpc", "--devices", "cpu", "--protocol", "6"]);
    refuses(&wrong, 2, "TPC0400");
    assert!(
        wrong.stderr.contains("give 8 for llama.cpp 0.8"),
        "{}",
        wrong.stderr
    );
}

/// Indices are data, so kernels check them when they run. The client gets no answer, and the server goes on.
#[test]
fn indices_out_of_range_are_refused_by_every_executor() {
    let n = |n: u64| n.to_le_bytes();
    let counts = |n: u32| n.to_le_bytes().to_vec();
    let ids = |value: i32| {
        let mut t = tensor(2, [1, 1], 0, [0; 2], RESULTS, "ids");
        t[8..12].copy_from_slice(&26_u32.to_le_bytes());
        let payload = [t.as_slice(), &[0; 9], &value.to_le_bytes()].concat();
        (t, message(6, &payload))
    };
    let table = tensor(1, [8, 4], 0, [0; 2], WEIGHTS, "table");
    let row = tensor(3, [8, 1], 40, [1, 2], RESULTS + 256, "row");
    let get = message(8, &[row.as_slice(), &n(0), &n(32)].concat());
    let values: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let executors = [
        &["--devices", "cpu,cpu"][..],
        &["--devices", "cuda:0", "--executor=emulated-cuda"],
    ];
    for (value, options) in [3, 4, -1, i32::MAX]
        .into_iter()
        .flat_map(|value| executors.map(|options| (value, options)))
    {
        let (own, written) = ids(value);
        let node = n(3).to_vec();
        let graph = [
            counts(0),
            counts(1),
            node,
            counts(3),
            table.clone(),
            own,
            row.clone(),
        ];
        let mut sent = message(14, &[0; 24]);
        for _ in 0..2 {
            sent.extend(message(0, &[[0; 4].as_slice(), &n(0x1000)].concat()));
        }
        let compute = message(10, &graph.concat());
        sent.extend([set(&table, &values), written, compute, get.clone()].concat());
        let (err, got) = stopped(options, &sent, value != 3);
        if err.contains("no compiler for the kernels") {
            continue;
        }
        if value == 3 {
            let found = got[got.len() - 32..].as_chunks::<4>().0.iter();
            let found: Vec<f32> = found.map(|b| f32::from_le_bytes(*b)).collect();
            assert_eq!(found, values[24..], "{options:?}: {err}");
        } else {
            // Greeting and two allocations are answered.
            assert_eq!(got.len(), 36 + 2 * 24, "{options:?} {value}: {err}");
            assert!(
                err.contains("TPC0760") && err.contains("out of range"),
                "{err}"
            );
        }
    }
}

/// Returns standard error and answers of a server that is stopped after the connection, and after a refusal if one is
/// expected.
fn stopped(options: &[&str], sent: &[u8], is_refused: bool) -> (String, Vec<u8>) {
    let mut child = Command::new(TPC)
        .args([
            "rpc",
            "--protocol",
            "7",
            "--listen",
            "127.0.0.1:0",
            "-t",
            "1",
        ])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let mut got = Vec::new();
    let mut err = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    if let Some(address) = line.trim().strip_prefix("listening on ") {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(sent).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut got);
        let mut other = TcpStream::connect(address).unwrap();
        other.write_all(&message(14, &[0; 24])).unwrap();
        other.read_exact(&mut [0; 36]).unwrap();
        // The server reports a refusal after it has closed the connection.
        while is_refused && !err.contains("help:") && stderr.read_line(&mut err).unwrap() > 0 {}
    }
    child.kill().unwrap();
    child.wait().unwrap();
    stderr.read_to_string(&mut err).unwrap();
    (err, got)
}
