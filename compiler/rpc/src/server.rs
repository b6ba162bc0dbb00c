use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::buffers::Pool;
use crate::connection::{End, serve};
use crate::device::Device;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::version::Version;

const NAP: Duration = Duration::from_millis(2);

/// An event of a connection.
#[derive(Debug)]
pub enum Event {
    /// A client connected.
    Connected,
    /// A client closed its connection.
    Closed,
    /// A client closed its connection after the greeting. It probably has another version of the protocol.
    LeftAfterGreeting,
    /// The server closed the connection.
    Refused(Refusal),
}

/// A callback that receives the name of the client and the event.
pub type Tell = Arc<dyn Fn(&str, Event) + Send + Sync>;

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    version: Version,
    limits: Limits,
    pool: Arc<Pool>,
}

/// The open connections, with handles to close them.
type Open = Arc<Mutex<BTreeMap<u64, TcpStream>>>;

/// The numbers of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of connections so far.
    pub ever: u64,
    /// The number of open connections.
    pub open: usize,
}

impl Server {
    /// Listens at an address. Port 0 selects a free port.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn bind(address: SocketAddr, version: Version, limits: Limits) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            version,
            limits,
            pool: Arc::new(Pool::new(limits.memory)),
        })
    }

    /// Returns the listen address.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the version of the protocol.
    pub const fn version(&self) -> Version {
        self.version
    }

    /// Returns the unallocated bytes of the memory pool.
    pub fn free_memory(&self) -> u64 {
        self.pool.free()
    }

    /// Serves clients until `ends` returns true, then closes all connections.
    pub fn run(&self, device: &Arc<dyn Device>, tell: &Tell, ends: &mut dyn FnMut(Count) -> bool) {
        let open: Open = Arc::default();
        let next = AtomicU64::new(0);
        let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
        loop {
            let count = Count {
                ever: next.load(Ordering::SeqCst),
                open: lock(&open).len(),
            };
            if ends(count) {
                break;
            }
            match self.listener.accept() {
                Ok((stream, peer)) => {
                    threads.retain(|t| !t.is_finished());
                    let id = next.fetch_add(1, Ordering::SeqCst);
                    let job = Job {
                        id,
                        name: format!("client {} ({peer})", id + 1),
                        open: Arc::clone(&open),
                        device: Arc::clone(device),
                        tell: Arc::clone(tell),
                        pool: Arc::clone(&self.pool),
                        version: self.version,
                        limits: self.limits,
                    };
                    threads.extend(job.start(stream));
                }
                Err(_) => thread::sleep(NAP),
            }
        }
        for stream in lock(&open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Job {
    id: u64,
    name: String,
    open: Open,
    device: Arc<dyn Device>,
    tell: Tell,
    pool: Arc<Pool>,
    version: Version,
    limits: Limits,
}

impl Job {
    /// Serves the connection in a new thread, unless the limit of connections is reached.
    fn start(self, stream: TcpStream) -> Option<thread::JoinHandle<()>> {
        if let Err(refusal) = self.admit(&stream) {
            (self.tell)(&self.name, Event::Refused(refusal));
            return None;
        }
        let started = thread::Builder::new()
            .name(self.name.clone())
            .spawn(move || self.serve(stream));
        started.ok()
    }

    fn admit(&self, stream: &TcpStream) -> Result<(), Refusal> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        let handle = stream.try_clone()?;
        let mut open = lock(&self.open);
        if open.len() >= self.limits.connections {
            return Err(Refusal::Limit {
                what: "connections",
                asked: open.len() as u64 + 1,
                most: self.limits.connections as u64,
            });
        }
        open.insert(self.id, handle);
        Ok(())
    }

    fn serve(self, stream: TcpStream) {
        (self.tell)(&self.name, Event::Connected);
        let client = self.device.connect();
        let rules = (self.version, self.limits);
        let done = serve(stream, client, Arc::clone(&self.pool), rules);
        if let Some(handle) = lock(&self.open).remove(&self.id) {
            let _ = handle.shutdown(Shutdown::Both);
        }
        (self.tell)(
            &self.name,
            match done {
                Ok(End::Closed) => Event::Closed,
                Ok(End::AfterGreeting) => Event::LeftAfterGreeting,
                Err(refusal) => Event::Refused(refusal),
            },
        );
    }
}
