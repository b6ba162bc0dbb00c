//! `tpc bisect --rpc`: engines that serve ggml's RPC protocol. The server is `tpc rpc`; a relay in front of it plays a
//! server with a fault.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value as Json;

use super::support::{Ran, TPC, path, refuses, tpc};

/// The size of a tensor in a message, and the places of its op and its parameters.
const TENSOR: usize = 296;
const OP: usize = 52;
const PARAMS: usize = 56;
const GRAPH_COMPUTE: u8 = 10;
const ROPE: u32 = 48;
const RMS_NORM: u32 = 25;

fn capture(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/graphs");
    root.join(format!("{name}.jsonl")).display().to_string()
}

/// A running `tpc rpc`.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(protocol: &str) -> Server {
        let mut child = Command::new(TPC)
            .args([
                "rpc",
                "--devices",
                "cpu",
                "-t",
                "1",
                "--listen",
                "127.0.0.1:0",
            ])
            .args(["--protocol", protocol])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap();
        let address = address.to_owned();
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Changes a tensor of a graph in a message. `false` ends the connection instead.
type Fault = fn(u32, &mut [u8]) -> bool;

/// Starts a server that passes all messages to another one, with a fault in its graphs. Returns the address.
fn relay(to: &str, fault: Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let to = to.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&to).unwrap();
            let (mut replies, mut back) =
                (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut replies, &mut back));
            thread::spawn(move || pass(client, server, fault));
        }
    });
    address
}

fn pass(mut client: TcpStream, mut server: TcpStream, fault: Fault) {
    let mut head = [0; 9];
    while client.read_exact(&mut head).is_ok() {
        let length = u64::from_le_bytes(head[1..].try_into().unwrap());
        let mut payload = vec![0; length as usize];
        client.read_exact(&mut payload).unwrap();
        if head[0] == GRAPH_COMPUTE {
            let nodes = u32::from_le_bytes(payload[12..16].try_into().unwrap()) as usize;
            for tensor in payload[20 + 8 * nodes..].chunks_mut(TENSOR) {
                let op = u32::from_le_bytes(tensor[OP..PARAMS].try_into().unwrap());
                if !fault(op, tensor) {
                    let _ = client.shutdown(std::net::Shutdown::Both);
                    let _ = server.shutdown(std::net::Shutdown::Both);
                    return;
                }
            }
        }
        server.write_all(&head).unwrap();
        server.write_all(&payload).unwrap();
    }
    let _ = server.shutdown(std::net::Shutdown::Both);
}

/// RoPE with another base.
fn other_base(op: u32, tensor: &mut [u8]) -> bool {
    if op == ROPE {
        tensor[PARAMS + 20..PARAMS + 24].copy_from_slice(&12345.0_f32.to_le_bytes());
    }
    true
}

/// No RMS norm.
fn stops_at_norms(op: u32, _tensor: &mut [u8]) -> bool {
    op != RMS_NORM
}

fn bisect(name: &str, servers: &[&str], options: &[&str]) -> Ran {
    let graph = capture(name);
    let mut words = vec!["bisect", &graph];
    for server in servers {
        words.extend(["--rpc", server]);
    }
    words.extend(options);
    tpc(words)
}

#[test]
fn a_server_without_faults_agrees_with_the_reference() {
    let servers = ["8", "7"].map(Server::start);
    for server in &servers {
        for name in [
            "llama-dense",
            "gpt-oss-moe",
            "qwen35-dense",
            "falcon-h1-dense",
        ] {
            let ran = bisect(name, &[&server.address], &[]);
            assert_eq!(
                (ran.status, ran.stderr.as_str()),
                (0, ""),
                "{name}: {}",
                ran.stdout
            );
            assert!(ran.stdout.starts_with("no difference"), "{}", ran.stdout);
        }
    }
}

#[test]
fn the_op_that_a_server_computes_otherwise_is_named() {
    let server = Server::start("8");
    let faulty = relay(&server.address, other_base);
    let against_reference = bisect("llama-dense", &[&faulty], &[]);
    let against_server = bisect("llama-dense", &[&server.address, &faulty], &[]);
    for ran in [&against_reference, &against_server] {
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("TPC0399"), "{}", ran.stderr);
        let first = ran.stdout.lines().next().unwrap();
        let expected = "the first op that differs is `Qcur-0`, ROPE (NMSE ";
        assert!(first.starts_with(expected), "{first}");
        assert!(ran.stdout.contains("2 differ\n"), "{}", ran.stdout);
    }
    let ran = bisect("llama-dense", &[&faulty], &["--format", "json"]);
    let json: Json = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(json["verdict"], "differ");
    let kinds = json["kinds"].as_array().unwrap();
    let differ = |op: &str| kinds.iter().find(|k| k["op"] == op).unwrap()["differ"].clone();
    assert_eq!((differ("ROPE"), differ("MUL_MAT")), (2.into(), 0.into()));
}

#[test]
fn a_server_that_ends_the_connection_has_a_fault_in_this_op_only() {
    let server = Server::start("8");
    let faulty = relay(&server.address, stops_at_norms);
    let ran = bisect("llama-dense", &[&faulty], &[]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let first = ran.stdout.lines().next().unwrap();
    assert!(
        first.contains("`norm-0`, RMS_NORM") && first.contains("failed"),
        "{first}"
    );
    let differ = ran.stdout.lines().filter(|l| l.ends_with("differ"));
    assert_eq!(differ.count(), 1, "{}", ran.stdout);
}

#[test]
fn wrong_engines_are_refused() {
    let graph = capture("llama-dense");
    let one = |address: &str| tpc(["bisect", &graph, "--rpc", address]);
    refuses(&one("nowhere"), 2, "TPC0400");
    // A port without a server.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    refuses(&one(&address), 2, "TPC0457");
    // A server of another protocol.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    refuses(&one(&address), 2, "TPC0457");
    let three = tpc(["bisect", &graph, "--rpc", "a:1,b:1,c:1"]);
    refuses(&three, 2, "TPC0400");
    let both = tpc(["bisect", &graph, &graph, "--rpc", &address]);
    refuses(&both, 2, "TPC0400");
    refuses(
        &tpc(["bisect", &path("qwen3-0.6b"), "--rpc", &address]),
        2,
        "TPC0180",
    );
}
