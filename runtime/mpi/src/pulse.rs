//! Signs of life. Rank 0 and each other rank send each other a message five times a second.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tpc_runtime::ranks::{RankError, Tag};

use crate::calls::{Calls, Request};
use crate::shared::{FAILED, PULSE, Shared};

const EVERY: Duration = Duration::from_millis(200);
/// Rank 0 reports another rank's failure within this time. Then others do.
const OTHERS: Duration = Duration::from_millis(700);

static BEAT: [u8; 1] = [1];

/// The ranks that this rank watches: rank 0 watches all, others watch rank 0.
fn watched(world: &Shared) -> Vec<usize> {
    match world.rank {
        0 => (1..world.ranks).collect(),
        _ => vec![0],
    }
}

/// Sends a failure's text to all ranks. Does not wait.
pub(crate) fn tell(world: &Shared, cause: &str) {
    // The process ends soon, so the text is never freed.
    let text: &'static [u8] = Vec::leak(cause.as_bytes().to_vec());
    let mut calls = world.lock();
    for to in (0..world.ranks).filter(|to| *to != world.rank) {
        // SAFETY: the text lives forever.
        let _ = unsafe { calls.send(to, FAILED, text) };
    }
}

/// Receives a message that has arrived.
fn take(calls: &mut Calls, from: usize, tag: Tag, bytes: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![0; bytes];
    // SAFETY: the message has arrived, so the request is done below.
    let mut request = unsafe { calls.receive(from, tag, (out.as_mut_ptr(), bytes))? };
    while calls.done(&mut request)?.is_none() {
        std::hint::spin_loop();
    }
    Ok(out)
}

struct Pulse<'a> {
    world: &'a Shared,
    limit: Duration,
    /// Each watched rank, its last sign of life, and the message under way to it.
    ranks: Vec<(usize, Instant, Option<Request>)>,
}

impl Pulse<'_> {
    /// Sends and receives signs of life. Returns a failure if there is one, and true if a rank is silent.
    fn beat(&mut self) -> Result<Option<(RankError, bool)>, String> {
        let mut calls = self.world.lock();
        while let Some(found) = calls.find(None, PULSE)? {
            take(&mut calls, found.from, PULSE, found.bytes)?;
            for (rank, seen, _) in &mut self.ranks {
                if *rank == found.from {
                    *seen = Instant::now();
                }
            }
        }
        if let Some(found) = calls.find(None, FAILED)? {
            let text = take(&mut calls, found.from, FAILED, found.bytes)?;
            let failure = RankError {
                rank: Some(found.from),
                cause: String::from_utf8_lossy(&text).into_owned(),
            };
            return Ok(Some((failure, false)));
        }
        for (rank, seen, request) in &mut self.ranks {
            if seen.elapsed() > self.limit {
                let failure = RankError {
                    rank: Some(*rank),
                    cause: format!("has not answered for {:.1} s", self.limit.as_secs_f64()),
                };
                return Ok(Some((failure, true)));
            }
            let free = match request {
                Some(request) => calls.done(request)?.is_some(),
                None => true,
            };
            if free {
                // SAFETY: the byte is static.
                *request = Some(unsafe { calls.send(*rank, PULSE, &BEAT)? });
            }
        }
        Ok(None)
    }
}

/// Watches the other ranks until the world ends.
pub(crate) fn watch(world: &Shared, limit: Duration, on_failure: &dyn Fn(usize, &RankError, bool)) {
    let now = Instant::now();
    let mut pulse = Pulse {
        world,
        // The message needs time to travel, and MPI to end all processes.
        limit: limit.mul_f64(0.5),
        ranks: watched(world).into_iter().map(|r| (r, now, None)).collect(),
    };
    loop {
        if world.quit.load(Ordering::Acquire) {
            break;
        }
        let found = match pulse.beat() {
            Ok(found) => found,
            Err(cause) => Some((RankError { rank: None, cause }, true)),
        };
        let lost = found.as_ref().is_some_and(|(_, lost)| *lost);
        let found = found.map(|(failure, _)| failure);
        if let Some(failure) = found.filter(|_| !world.has_failed()) {
            world.set_failure(failure);
        }
        if let Some(failure) = world.failure().filter(|_| world.has_failed()) {
            if world.rank > 0 {
                thread::sleep(OTHERS);
            }
            on_failure(world.rank, &failure, lost);
            break;
        }
        thread::sleep(EVERY);
    }
    let mut calls = world.lock();
    for (_, _, request) in &mut pulse.ranks {
        if let Some(request) = request.take() {
            calls.cancel(request);
        }
    }
}
