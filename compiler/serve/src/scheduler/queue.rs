use std::collections::{BTreeMap, VecDeque};

use super::job::Job;

/// The jobs that wait for a slot, fair between users.
///
/// The next job belongs to the user with the fewest running jobs; of equal users, to the one that was served longest
/// ago. A user's own jobs keep their order.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<String, VecDeque<Box<Job>>>,
    /// The last turn of each waiting user.
    served: BTreeMap<String, u64>,
    turn: u64,
}

impl Queue {
    pub(super) fn push(&mut self, job: Box<Job>) {
        self.waiting
            .entry(job.user.clone())
            .or_default()
            .push_back(job);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Keeps the jobs that `keep` accepts.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Job) -> bool) {
        for jobs in self.waiting.values_mut() {
            jobs.retain(|job| keep(job));
        }
        self.forget();
    }

    /// Removes and returns the next job among each user's first that `ready` accepts. `running` returns the number of a
    /// user's running jobs.
    pub(super) fn pop(
        &mut self,
        running: impl Fn(&str) -> usize,
        ready: impl Fn(&Job) -> bool,
    ) -> Option<Box<Job>> {
        let first = self.waiting.iter().filter_map(|(user, jobs)| {
            let ready = jobs.front().is_some_and(|job| ready(job));
            let served = self.served.get(user).copied().unwrap_or(0);
            ready.then(|| (running(user), served, user))
        });
        let user = first.min().map(|(_, _, user)| user.clone())?;
        let job = self.waiting.get_mut(&user)?.pop_front();
        self.turn += 1;
        self.served.insert(user, self.turn);
        self.forget();
        job
    }

    /// Removes and returns all jobs.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Box<Job>> + use<> {
        self.served.clear();
        std::mem::take(&mut self.waiting).into_values().flatten()
    }

    /// Forgets users without waiting jobs once they are many.
    fn forget(&mut self) {
        self.waiting.retain(|_, jobs| !jobs.is_empty());
        if self.served.len() > 4096 {
            self.served
                .retain(|user, _| self.waiting.contains_key(user));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::sync::mpsc;
    use tpc_text::{Settings, Show};

    use super::*;
    use crate::admission::Ticket;
    use crate::scheduler::job::EventSender;

    fn job(user: &str, id: u64) -> Box<Job> {
        Box::new(Job {
            id,
            user: user.to_owned(),
            prompt: Vec::new(),
            settings: Settings::greedy(),
            constraint: None,
            record: None,
            max_tokens: None,
            stops: Vec::new(),
            ignore_end: false,
            show: Show::Text,
            reuse: true,
            events: EventSender::new(mpsc::unbounded_channel().0, 0),
            arrived: Instant::now(),
            _ticket: Ticket::default(),
        })
    }

    #[test]
    fn a_user_with_many_jobs_does_not_delay_others() {
        let mut queue = Queue::default();
        (0..5).for_each(|id| queue.push(job("a", id)));
        queue.push(job("b", 10));
        queue.push(job("b", 11));
        queue.push(job("c", 20));
        let order: Vec<u64> =
            std::iter::from_fn(|| queue.pop(|_| 0, |_| true).map(|j| j.id)).collect();
        assert_eq!(order, [0, 10, 20, 1, 11, 2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn running_jobs_count() {
        let mut queue = Queue::default();
        queue.push(job("a", 0));
        queue.push(job("b", 1));
        let running = |user: &str| usize::from(user == "a");
        assert_eq!(queue.pop(running, |_| true).map(|j| j.id), Some(1));
        assert!(queue.pop(running, |_| false).is_none());
        assert_eq!(queue.len(), 1);
        queue.retain(|job| job.id != 0);
        assert!(queue.is_empty());
    }
}
