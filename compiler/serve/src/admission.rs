use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The number of requests that the server admits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmissionLimits {
    /// Requests of all users together, running and waiting.
    pub(crate) all: usize,
    /// Requests of one user, running and waiting.
    pub(crate) user: usize,
}

/// Counts the admitted requests.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    limits: AdmissionLimits,
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    users: BTreeMap<String, usize>,
}

/// The reason why a request is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All users together have too many requests.
    ServerFull,
    /// The user has too many requests.
    UserFull,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Admission {
        Admission {
            limits,
            counts: Arc::default(),
        }
    }

    /// Admits `n` requests of a user. Admits all of them or refuses all.
    pub(crate) fn admit(&self, user: &str, n: usize) -> Result<Vec<Ticket>, Refusal> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let own = counts.users.get(user).copied().unwrap_or(0);
        if counts.all.saturating_add(n) > self.limits.all {
            return Err(Refusal::ServerFull);
        }
        if own.saturating_add(n) > self.limits.user {
            return Err(Refusal::UserFull);
        }
        counts.all += n;
        if n > 0 {
            *counts.users.entry(user.to_owned()).or_default() += n;
        }
        drop(counts);
        let ticket = || Ticket(Some((Arc::clone(&self.counts), user.to_owned())));
        Ok((0..n).map(|_| ticket()).collect())
    }

    /// Returns the number of admitted requests that have not ended.
    pub(crate) fn open(&self) -> usize {
        let counts = self.counts.lock();
        counts.unwrap_or_else(PoisonError::into_inner).all
    }
}

/// An admitted request. The drop of the ticket ends the request.
#[derive(Debug, Default)]
pub(crate) struct Ticket(Option<(Arc<Mutex<Counts>>, String)>);

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some((counts, user)) = self.0.take() else {
            return;
        };
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all = counts.all.saturating_sub(1);
        if let Some(own) = counts.users.get_mut(&user) {
            *own -= 1;
            if *own == 0 {
                counts.users.remove(&user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_until_their_tickets_are_dropped() {
        let admission = Admission::new(AdmissionLimits { all: 4, user: 2 });
        let a = admission.admit("a", 2).expect("two fit");
        assert_eq!(admission.admit("a", 1).err(), Some(Refusal::UserFull));
        let b = admission.admit("b", 1).expect("one fits");
        assert_eq!(admission.admit("c", 2).err(), Some(Refusal::ServerFull));
        assert_eq!(admission.open(), 3);
        drop((a, b));
        assert_eq!(admission.open(), 0);
        assert!(admission.admit("a", 2).is_ok());
    }
}
