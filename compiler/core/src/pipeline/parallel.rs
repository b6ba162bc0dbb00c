use std::sync::Mutex;
use std::thread::{Builder, available_parallelism, scope};

const STACK: usize = 64 << 20;

/// Maximum number of threads; memory bandwidth limits planning.
const THREADS: usize = 8;

/// Runs `work` on every item, with one thread per processor. The results have the order of the items.
pub(crate) fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = available_parallelism().map_or(1, usize::from).min(THREADS);
    if threads < 2 || items.len() < 2 {
        return items.into_iter().map(work).collect();
    }
    let workers = threads.min(items.len());
    let items = Mutex::new(items.into_iter().enumerate());
    let results = Mutex::new(Vec::new());
    let each = || {
        loop {
            let next = items.lock().map_or(None, |mut all| all.next());
            let Some((i, item)) = next else { break };
            let result = work(item);
            if let Ok(mut results) = results.lock() {
                results.push((i, result));
            }
        }
    };
    scope(|s| {
        let spawned = (1..workers).map(|_| Builder::new().stack_size(STACK).spawn_scoped(s, each));
        // If a thread cannot be spawned, other threads take its items.
        let spawned: Vec<_> = spawned.filter_map(Result::ok).collect();
        each();
        for thread in spawned {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, r)| r).collect()
}

/// Runs `work`, and at the same time `aside` on another processor. Omits `aside` on a single processor.
pub(crate) fn run_beside<R>(work: impl FnOnce() -> R, aside: impl FnOnce() + Send) -> R {
    if available_parallelism().map_or(1, usize::from) < 2 {
        return work();
    }
    scope(|s| {
        let aside = Builder::new().stack_size(STACK).spawn_scoped(s, aside);
        let result = work();
        if let Some(Err(panic)) = aside.ok().map(std::thread::ScopedJoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_work() {
        let items: Vec<u64> = (0..100).collect();
        let squares = in_parallel(items.clone(), |i| i * i);
        assert_eq!(squares, items.iter().map(|i| i * i).collect::<Vec<_>>());
        assert_eq!(in_parallel(Vec::<u64>::new(), |i| i), [0_u64; 0]);
    }

    #[test]
    fn what_is_done_aside_is_done_before_the_end() {
        let aside = std::sync::OnceLock::new();
        let result = run_beside(|| 1, || aside.set(2).unwrap_or_default());
        let alone = available_parallelism().map_or(1, usize::from) < 2;
        assert_eq!((result, aside.get().is_some()), (1, !alone));
    }
}
