//! Plans whose devices are in several processes.
//!
//! All ranks run the same command. Rank 0 plans; the others receive the program, load their devices' parts of the
//! weights from their own file, and [follow](crate::serve_rank).

mod hello;
pub(crate) mod load;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tpc_core::placement::DeviceKind;
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{Outgoing, Ranks, Tag, Transport};

use crate::devices::cards;

pub use hello::{Fingerprint, Hello, compare};

/// The processes that run a plan together.
#[derive(Clone, Debug)]
pub struct RankGroup {
    /// The connection of this process to the others.
    pub transport: Arc<dyn Transport>,
    /// The machine of each rank.
    pub hosts: Vec<String>,
    /// True if the user states the threads of all devices together. Otherwise each machine uses its cores.
    pub threads_stated: bool,
    /// The machine of each device, if the topology states it.
    pub machines: Option<Vec<usize>>,
    /// The executor that the other ranks follow, if any.
    pub busy: Arc<Mutex<Weak<()>>>,
}

impl RankGroup {
    /// Returns this process's rank.
    pub fn rank(&self) -> usize {
        self.transport.rank()
    }

    /// Returns the rank of each device: the topology's machines, or equal parts in order.
    pub fn ranks(&self, devices: usize) -> Ranks {
        let count = self.transport.ranks();
        let stated = self.machines.clone().filter(|m| m.len() == devices);
        let stated = stated.and_then(|machines| Ranks::new(machines, count));
        stated.unwrap_or_else(|| Ranks::even(devices, count))
    }

    /// Returns the threads of this process, of `all` threads of all devices.
    pub(crate) fn threads(&self, all: usize, ranks: &Ranks) -> usize {
        let devices = ranks.of_devices();
        let own = devices.iter().filter(|r| **r == self.rank()).count();
        let each = match self.threads_stated {
            true => all / devices.len().max(1),
            false => {
                let host = self.hosts.get(self.rank());
                let beside = self.hosts.iter().filter(|h| Some(*h) == host).count();
                crate::devices::cores::usable() / beside.max(1) / own.max(1)
            }
        };
        each.max(1) * own.max(1)
    }

    /// Returns the kinds of a program's devices for this rank. Cards without a number get the lowest unused numbers of
    /// their machine. Devices of other ranks get a card of this rank, which they do not use.
    pub(crate) fn kinds(&self, kinds: &[DeviceKind], ranks: &Ranks) -> Vec<DeviceKind> {
        let host = |rank: usize| self.hosts.get(rank);
        let beside = |rank: usize| host(rank).is_some() && host(rank) == host(self.rank());
        let mut order: Vec<usize> = (0..kinds.len()).collect();
        order.retain(|d| {
            let rank = ranks.of_devices()[*d];
            rank == self.rank() || beside(rank)
        });
        order.sort_by_key(|d| ranks.of_devices()[*d]);
        let here: Vec<DeviceKind> = order.iter().map(|d| kinds[*d]).collect();
        let numbers = cards::numbers(&here);
        let own = |d: usize| ranks.of_devices()[d] == self.rank();
        let number = |d: usize| order.iter().position(|o| *o == d).map(|at| numbers[at]);
        let first = (0..kinds.len()).find(|d| own(*d)).and_then(number);
        let of = |d: usize| match number(d).filter(|_| own(d)) {
            Some(number) => DeviceKind::Cuda(number),
            None => DeviceKind::Cuda(first.unwrap_or(0)),
        };
        (0..kinds.len()).map(of).collect()
    }

    /// Reserves the other ranks for one program. They are free when the result is dropped.
    ///
    /// # Errors
    /// Returns an error if they run another program.
    pub(crate) fn reserve(&self) -> Result<Arc<()>, ExecError> {
        let busy = Arc::new(());
        let mut last = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if last.upgrade().is_some() {
            let what = "several ranks run one program at a time".to_owned();
            return Err(ExecError::Malformed { what });
        }
        *last = Arc::downgrade(&busy);
        Ok(busy)
    }
}

/// Lets all other ranks end.
pub fn end(group: &RankGroup) {
    for to in 1..group.transport.ranks() {
        // If a rank has failed, all end anyway.
        let _ = group.transport.post(Outgoing {
            to,
            tag: Tag::READY,
            bytes: &[],
        });
    }
}

#[cfg(test)]
mod tests {
    use DeviceKind::{Cuda, Generic};
    use tpc_runtime::ranks::Channels;

    use super::*;

    fn group(rank: usize, hosts: &[&str]) -> RankGroup {
        RankGroup {
            transport: Arc::new(Channels::connect(hosts.len()).remove(rank)),
            hosts: hosts.iter().map(|h| (*h).to_owned()).collect(),
            threads_stated: false,
            machines: None,
            busy: Arc::default(),
        }
    }

    #[test]
    fn ranks_of_a_machine_share_its_cards() {
        let ranks = Ranks::even(4, 2);
        let kinds =
            |rank, hosts: &[&str], all: &[DeviceKind; 4]| group(rank, hosts).kinds(all, &ranks);
        let any = [Generic; 4];
        assert_eq!(kinds(0, &["a", "a"], &any), [0, 1, 0, 0].map(Cuda));
        assert_eq!(kinds(1, &["a", "a"], &any), [2, 2, 2, 3].map(Cuda));
        assert_eq!(kinds(1, &["a", "b"], &any), [0, 0, 0, 1].map(Cuda));
        let named = [Cuda(0), Cuda(1), Cuda(5), Generic];
        assert_eq!(kinds(1, &["a", "b"], &named), [5, 5, 5, 0].map(Cuda));
        assert_eq!(kinds(1, &["a", "a"], &named), [5, 5, 5, 2].map(Cuda));
    }
}
