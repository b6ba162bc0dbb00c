use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tpc_rpc::{Device, Event, Limits, Server, Tell, Version};

use super::support::{Bytes, MEMORY, conversation, replies, talk};

const V: Version = Version::V8;

fn with_server(limits: Limits, work: impl FnOnce(SocketAddr)) -> Vec<String> {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), V, limits).expect("a free port");
    let address = server.address().expect("an address");
    let device: Arc<dyn Device> = Arc::new(Bytes::default());
    let refused = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&refused);
    let tell: Tell = Arc::new(move |name, event| {
        if let Event::Refused(r) = event {
            log.lock()
                .expect("a log")
                .push(r.diagnostic(name, V).code.id.to_owned());
        }
    });
    let done = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&done);
    thread::scope(|scope| {
        scope.spawn(|| {
            server.run(&device, &tell, &mut |count| {
                ends.load(Ordering::SeqCst) && count.open == 0
            });
        });
        // Stops the server even if `work` panics.
        let failed = catch_unwind(AssertUnwindSafe(|| work(address))).err();
        done.store(true, Ordering::SeqCst);
        if let Some(panic) = failed {
            resume_unwind(panic);
        }
    });
    assert_eq!(server.free_memory(), MEMORY, "memory is given back");
    let codes = refused.lock().expect("a log");
    codes.clone()
}

fn whole(address: SocketAddr) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(&conversation(V).concat()).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("closed");
    let mut got = Vec::new();
    stream.read_to_end(&mut got).expect("answers");
    got
}

#[test]
fn clients_that_fail_do_not_disturb_others() {
    let (_, expected) = talk(V, &conversation(V).concat());
    let sent = conversation(V).concat();
    // Failed connections may close late.
    let limits = Limits {
        connections: 1 << 10,
        ..Limits::new(MEMORY)
    };
    let refused = with_server(limits, |address| {
        let mut quiet = TcpStream::connect(address).expect("a connection");
        quiet
            .write_all(&conversation(V)[..6].concat())
            .expect("sent");
        for cut in (0..sent.len()).step_by(397) {
            let mut stream = TcpStream::connect(address).expect("a connection");
            stream.write_all(&sent[..cut]).expect("sent");
            drop(stream);
            let mut noise = TcpStream::connect(address).expect("a connection");
            noise.write_all(b"\x63 is no command").expect("sent");
        }
        let got = whole(address);
        let same = |i: usize| replies(&got)[i] == replies(&expected)[i];
        // Reply 2 is the free memory, which other clients reduce.
        assert!((0..replies(&expected).len()).all(|i| i == 2 || same(i)));
        quiet
            .write_all(&conversation(V)[6])
            .expect("the first is still there");
        let mut answers = [0; 8 + 28 + 8 + 4 + 8 + 16 + 16 + 16 + 24 + 16];
        quiet.read_exact(&mut answers).expect("answers");
    });
    assert!(
        refused
            .iter()
            .all(|code| code == "TPC0750" || code == "TPC0755")
    );
    assert!(refused.iter().any(|code| code == "TPC0755"));
}

#[test]
fn connections_and_patience_have_limits() {
    let limits = Limits {
        connections: 2,
        stall: Duration::from_millis(50),
        ..Limits::new(MEMORY)
    };
    let refused = with_server(limits, |address| {
        let mut silent: Vec<TcpStream> = (0..2)
            .map(|_| TcpStream::connect(address).expect("a connection"))
            .collect();
        silent[0].write_all(&conversation(V)[0]).expect("sent");
        silent[0].read_exact(&mut [0; 36]).expect("a greeting");
        silent[0].write_all(&[11, 4, 0]).expect("half a head");
        let mut third = TcpStream::connect(address).expect("a connection");
        let mut nothing = Vec::new();
        let _ = third.read_to_end(&mut nothing);
        assert!(nothing.is_empty());
        for stream in &mut silent {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
    });
    let mut refused = refused;
    refused.sort();
    assert_eq!(refused, ["TPC0753", "TPC0755", "TPC0755"]);
}
