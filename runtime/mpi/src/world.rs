#![allow(unsafe_code)]

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tpc_runtime::ranks::{Incoming, Outgoing, RankError, Tag, Transport};

use crate::calls::{Calls, Request, Started};
use crate::pulse;
use crate::shared::Shared;

/// Checks of a waiting thread before it lets other threads run.
const SPINS: u32 = 1 << 10;
/// The time for which a thread that waits for a command keeps its core.
const AWAKE: Duration = Duration::from_millis(200);

/// The processes of an MPI job.
pub struct World {
    shared: Arc<Shared>,
    host: String,
    posted: Mutex<Vec<(Request, Vec<u8>)>>,
    watch: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "World({} of {})", self.shared.rank, self.shared.ranks)
    }
}

/// The reason why the processes are not connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// Not all processes of the job have started within the time.
    Late(Duration),
    /// An error of MPI.
    Mpi(String),
}

/// Ends all processes of the job with this exit status.
pub fn abort(status: i32) {
    Calls::abort(status);
}

impl World {
    /// Connects the processes of the job. A thread then calls `on_failure` once, with this rank, if a rank fails, or if it gives no sign
    /// of life for `limit`; in this case the last argument is true.
    ///
    /// # Errors
    /// Returns an error if another process has not started within `limit`.
    pub fn start(
        limit: Duration,
        on_failure: impl Fn(usize, &RankError, bool) + Send + 'static,
    ) -> Result<Arc<World>, StartError> {
        let (tell, told) = channel();
        // The launcher also needs time to end the processes that wait.
        let limit_of_start = limit.mul_f64(0.7);
        // MPI waits for all processes of the job, perhaps forever.
        thread::spawn(move || tell.send(Calls::start()));
        let Started {
            calls,
            rank,
            ranks,
            host,
        } = match told.recv_timeout(limit_of_start) {
            Ok(started) => started.map_err(StartError::Mpi)?,
            Err(RecvTimeoutError::Timeout) => return Err(StartError::Late(limit_of_start)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(StartError::Mpi("MPI ends the process".to_owned()));
            }
        };
        let shared = Arc::new(Shared::new(rank, ranks, calls));
        let watched = Arc::clone(&shared);
        let watch = thread::Builder::new().name("tpc-ranks".to_owned());
        let watch = watch.spawn(move || pulse::watch(&watched, limit, &on_failure));
        let watch = watch.map_err(|e| StartError::Mpi(e.to_string()))?;
        Ok(Arc::new(World {
            shared,
            host,
            posted: Mutex::default(),
            watch: Mutex::new(Some(watch)),
        }))
    }

    /// Returns the name of this process's machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Ends MPI. All ranks call it at the end of their work.
    pub fn finish(&self) {
        let _ = self.flush();
        self.shared.quit.store(true, Ordering::Release);
        let watch = self
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(watch) = watch {
            let _ = watch.join();
        }
        if !self.shared.has_failed() {
            self.lock().finish();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.shared.lock()
    }

    fn check(&self) -> Result<(), RankError> {
        match self.shared.has_failed() {
            true => Err(self.shared.failure().unwrap_or(RankError {
                rank: None,
                cause: "a rank has failed".to_owned(),
            })),
            false => Ok(()),
        }
    }

    /// Converts an error of MPI.
    fn broken(&self, rank: Option<usize>, cause: String) -> RankError {
        let e = RankError { rank, cause };
        self.shared.set_failure(e.clone());
        e
    }

    /// Completes posted messages, as far as possible. Returns true if all have left.
    fn sweep(&self) -> Result<bool, RankError> {
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls = self.lock();
        let mut error = None;
        posted.retain_mut(|(request, _)| match calls.done(request) {
            Ok(done) => done.is_none(),
            Err(e) => {
                error = Some(e);
                true
            }
        });
        drop(calls);
        match error {
            Some(e) => Err(self.broken(None, e)),
            None => Ok(posted.is_empty()),
        }
    }

    /// Waits for `done`, which calls MPI.
    fn wait(
        &self,
        patience: Option<Duration>,
        mut done: impl FnMut(&mut Calls) -> Result<bool, String>,
    ) -> Result<(), RankError> {
        let begun = Instant::now();
        let mut turns: u32 = 0;
        loop {
            let reached = done(&mut self.lock());
            if reached.map_err(|e| self.broken(None, e))? {
                return Ok(());
            }
            self.check()?;
            turns = turns.saturating_add(1);
            if turns < SPINS {
                std::hint::spin_loop();
            } else if patience.is_some_and(|p| begun.elapsed() > p) {
                thread::sleep(Duration::from_millis(1));
            } else {
                thread::yield_now();
            }
        }
    }
}

impl Transport for World {
    fn rank(&self) -> usize {
        self.shared.rank
    }

    fn ranks(&self) -> usize {
        self.shared.ranks
    }

    fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), RankError> {
        self.check()?;
        let sizes: Vec<(usize, usize)> = receives.iter().map(|r| (r.from, r.bytes.len())).collect();
        let mut open: Vec<(Request, Option<usize>)> = Vec::with_capacity(sends.len() + sizes.len());
        let begun = {
            let mut calls = self.lock();
            let receives = receives.iter_mut().enumerate().map(|(i, r)| {
                let to = (r.bytes.as_mut_ptr(), r.bytes.len());
                // SAFETY: this function returns after the request is done or cancelled.
                unsafe { calls.receive(r.from, r.tag, to) }.map(|request| (request, Some(i)))
            });
            let begun: Result<Vec<_>, String> = receives.collect();
            begun.and_then(|requests| {
                open.extend(requests);
                for send in sends {
                    // SAFETY: as above; a cancelled send only reads.
                    let request = unsafe { calls.send(send.to, send.tag, send.bytes) }?;
                    open.push((request, None));
                }
                Ok(())
            })
        };
        let mut wrong = None;
        let waited = begun.map_err(|e| self.broken(None, e)).and_then(|()| {
            self.wait(None, |calls| {
                let mut i = 0;
                while i < open.len() {
                    match calls.done(&mut open[i].0)? {
                        Some(bytes) => {
                            let (_, receive) = open.swap_remove(i);
                            let expected = receive.map(|r| sizes[r]);
                            wrong = wrong.or(expected.filter(|(_, n)| *n != bytes));
                        }
                        None => i += 1,
                    }
                }
                Ok(open.is_empty())
            })
        });
        let mut calls = self.lock();
        for (request, _) in open {
            calls.cancel(request);
        }
        drop(calls);
        match (waited, wrong) {
            (Ok(()), Some((from, n))) => {
                let cause = format!("sent a message of another size than {n} bytes");
                Err(self.broken(Some(from), cause))
            }
            (waited, _) => waited,
        }
    }

    fn post(&self, message: Outgoing<'_>) -> Result<(), RankError> {
        self.check()?;
        let Outgoing { to, tag, bytes } = message;
        let bytes = bytes.to_vec();
        // SAFETY: the bytes stay in the list until the request is done; a moved vector keeps its bytes.
        let request = unsafe { self.lock().send(to, tag, &bytes) };
        let request = request.map_err(|e| self.broken(Some(to), e))?;
        let mut posted = self.posted.lock().unwrap_or_else(PoisonError::into_inner);
        posted.push((request, bytes));
        drop(posted);
        self.sweep().map(drop)
    }

    fn flush(&self) -> Result<(), RankError> {
        let mut turns: u32 = 0;
        while !self.sweep()? {
            self.check()?;
            turns = turns.saturating_add(1);
            if turns > SPINS {
                thread::yield_now();
            }
        }
        Ok(())
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>, RankError> {
        self.check()?;
        let mut size = 0;
        self.wait(Some(AWAKE), |calls| {
            let found = calls.find(Some(from), tag)?;
            size = found.map_or(0, |f| f.bytes);
            Ok(found.is_some())
        })?;
        let mut bytes = vec![0; size];
        let incoming = Incoming {
            from,
            tag,
            bytes: &mut bytes,
        };
        self.exchange(&[], &mut [incoming])?;
        Ok(bytes)
    }

    fn fail(&self, cause: &str) {
        if self.shared.has_failed() {
            return;
        }
        let own = RankError {
            rank: Some(self.shared.rank),
            cause: format!("on {}: {cause}", self.host),
        };
        pulse::tell(&self.shared, &own.cause);
        self.shared.set_failure(own);
    }
}
