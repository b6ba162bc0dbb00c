//! Scripts: the steps of each thread group, in order.
//!
//! The first device's threads also run the host's queue, so that waiting threads do not occupy needed cores. A script
//! merges queues in an order that can run.

use tpc_ir::Place;
use tpc_ir::program::{Phase, Program, Step};

/// Queue and position of each step.
pub(super) type Script = Vec<(usize, usize)>;

/// Returns the places with a group of threads, among the places of this process.
pub(super) fn groups(program: &Program, here: &dyn Fn(Place) -> bool) -> Vec<Place> {
    let queues = program.phases.iter().flat_map(|p| &p.queues);
    let mut places: Vec<Place> = queues.map(|q| q.place).collect();
    places.retain(|p| here(*p));
    places.sort();
    places.dedup();
    if places.len() > 1 {
        places.retain(|p| *p != Place::Host);
    }
    if places.is_empty() {
        places.push(Place::Host);
    }
    places
}

pub(super) fn group_of(groups: &[Place], place: Place) -> usize {
    groups.iter().position(|g| *g == place).unwrap_or(0)
}

/// Returns a phase's scripts, one per group, without steps that can never run. The order of the steps is that of all
/// processes together, so no process waits for a later step of another.
pub(super) fn scripts(
    program: &Program,
    phase: &Phase,
    groups: &[Place],
    here: &dyn Fn(Place) -> bool,
) -> Vec<Script> {
    let mut out = vec![Script::new(); groups.len()];
    let mut done = vec![0; phase.queues.len()];
    let mut moved = true;
    while moved {
        moved = false;
        for q in 0..phase.queues.len() {
            while let Some(meeting) = ready(program, phase, q, &done) {
                for m in meeting {
                    let place = phase.queues[m].place;
                    if here(place) {
                        out[group_of(groups, place)].push((m, done[m]));
                    }
                    done[m] += 1;
                }
                moved = true;
            }
        }
    }
    out
}

/// Returns the queues in queue `q`'s next step, if the step can run.
fn ready(program: &Program, phase: &Phase, q: usize, done: &[usize]) -> Option<Vec<usize>> {
    match phase.queues[q].steps.get(done[q])? {
        Step::Wait { queue, steps } => (done[*queue] >= *steps).then(|| vec![q]),
        step @ Step::Launch(launch) => {
            let places = &program.launch(*launch).places;
            let mut out = Vec::with_capacity(places.len());
            for place in places {
                let m = phase.queues.iter().position(|q| q.place == *place)?;
                if phase.queues[m].steps.get(done[m]) != Some(step) {
                    return None;
                }
                out.push(m);
            }
            Some(out)
        }
    }
}
