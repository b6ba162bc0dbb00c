use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::transport::{Incoming, Outgoing, RankError, Tag, Transport};

type Key = (usize, usize, Tag);

#[derive(Debug, Default)]
struct Queues {
    messages: BTreeMap<Key, VecDeque<Vec<u8>>>,
    failure: Option<RankError>,
}

/// Connects ranks in one process, for tests.
#[derive(Debug, Default)]
pub struct Channels {
    queues: Mutex<Queues>,
    changed: Condvar,
}

/// A rank's end of [`Channels`].
#[derive(Clone, Debug)]
pub struct Endpoint {
    channels: Arc<Channels>,
    rank: usize,
    ranks: usize,
}

impl Channels {
    /// Returns the ends of `ranks` connected ranks.
    pub fn connect(ranks: usize) -> Vec<Endpoint> {
        let channels = Arc::new(Channels::default());
        let end = |rank| Endpoint {
            channels: Arc::clone(&channels),
            rank,
            ranks,
        };
        (0..ranks).map(end).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, key: Key, bytes: Vec<u8>) -> Result<(), RankError> {
        let mut queues = self.lock();
        if let Some(failure) = &queues.failure {
            return Err(failure.clone());
        }
        queues.messages.entry(key).or_default().push_back(bytes);
        drop(queues);
        self.changed.notify_all();
        Ok(())
    }

    fn take(&self, key: Key) -> Result<Vec<u8>, RankError> {
        let mut queues = self.lock();
        loop {
            if let Some(failure) = &queues.failure {
                return Err(failure.clone());
            }
            let found = queues.messages.get_mut(&key);
            if let Some(bytes) = found.and_then(VecDeque::pop_front) {
                return Ok(bytes);
            }
            let waited = self.changed.wait(queues);
            queues = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Transport for Endpoint {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn exchange(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
    ) -> Result<(), RankError> {
        for send in sends {
            self.post(*send)?;
        }
        for receive in receives {
            let bytes = self.receive(receive.from, receive.tag)?;
            if bytes.len() != receive.bytes.len() {
                return Err(RankError {
                    rank: Some(receive.from),
                    cause: format!(
                        "sent {} bytes instead of {}",
                        bytes.len(),
                        receive.bytes.len()
                    ),
                });
            }
            receive.bytes.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn post(&self, message: Outgoing<'_>) -> Result<(), RankError> {
        let key = (self.rank, message.to, message.tag);
        self.channels.put(key, message.bytes.to_vec())
    }

    fn flush(&self) -> Result<(), RankError> {
        Ok(())
    }

    fn receive(&self, from: usize, tag: Tag) -> Result<Vec<u8>, RankError> {
        self.channels.take((from, self.rank, tag))
    }

    fn fail(&self, cause: &str) {
        let failure = RankError {
            rank: Some(self.rank),
            cause: cause.to_owned(),
        };
        self.channels.lock().failure.get_or_insert(failure);
        self.channels.changed.notify_all();
    }
}
