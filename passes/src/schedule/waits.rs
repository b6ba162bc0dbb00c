use std::collections::BTreeMap;

use tpc_ir::program::{Extent, Phase, Program, Queue, Step, Work};
use tpc_ir::{Launch, Output, Place, Value};

use super::phases::Order;

#[derive(Clone, Copy, PartialEq, Eq)]
struct QueueStep {
    queue: usize,
    launch: usize,
}

/// The steps of this phase that have accessed a range of bytes.
#[derive(Clone, Default)]
struct AccessRecord {
    end: u64,
    writer: Option<QueueStep>,
    readers: Vec<QueueStep>,
}

/// Accesses by arena and first byte.
#[derive(Default)]
struct AccessMap(BTreeMap<(usize, u64), AccessRecord>);

impl AccessMap {
    fn split(&mut self, arena: usize, at: u64) {
        if let Some((&(a, start), touched)) = self.0.range_mut(..=(arena, at)).next_back()
            && a == arena
            && start < at
            && at < touched.end
        {
            let rest = touched.clone();
            touched.end = at;
            self.0.insert((arena, at), rest);
        }
    }

    fn of(&mut self, arena: usize, extent: Extent) -> Vec<u64> {
        self.split(arena, extent.offset);
        self.split(arena, extent.end());
        let range = (arena, extent.offset)..(arena, extent.end().max(extent.offset));
        self.0.range(range).map(|((_, s), _)| *s).collect()
    }

    fn read(&mut self, arena: usize, extent: Extent, by: QueueStep) -> Vec<QueueStep> {
        let mut needed = Vec::new();
        let mut at = extent.offset;
        let mut gaps = Vec::new();
        for start in self.of(arena, extent) {
            if at < start {
                gaps.push((at, start));
            }
            if let Some(touched) = self.0.get_mut(&(arena, start)) {
                needed.extend(touched.writer);
                touched.readers.retain(|r| r.queue != by.queue);
                touched.readers.push(by);
                at = touched.end;
            }
        }
        if at < extent.end() {
            gaps.push((at, extent.end()));
        }
        for (start, end) in gaps {
            let touched = AccessRecord {
                end,
                writer: None,
                readers: vec![by],
            };
            self.0.insert((arena, start), touched);
        }
        needed
    }

    fn write(&mut self, arena: usize, extent: Extent, by: QueueStep) -> Vec<QueueStep> {
        let mut needed = Vec::new();
        for start in self.of(arena, extent) {
            if let Some(touched) = self.0.remove(&(arena, start)) {
                needed.extend(touched.writer);
                needed.extend(touched.readers);
            }
        }
        if extent.bytes > 0 {
            let touched = AccessRecord {
                end: extent.end(),
                writer: Some(by),
                readers: Vec::new(),
            };
            self.0.insert((arena, extent.offset), touched);
        }
        needed
    }
}

/// Returns the phases of a program: a queue per place with launches.
pub fn queues(program: &Program, order: &Order) -> Vec<Phase> {
    order
        .phases
        .iter()
        .map(|(ahead, launches)| phase(program, *ahead, launches))
        .collect()
}

fn phase(program: &Program, lookahead: u32, launches: &[Launch]) -> Phase {
    let mut places: Vec<Place> = launches
        .iter()
        .flat_map(|l| program.launch(*l).places.iter().copied())
        .collect();
    places.sort();
    places.dedup();
    let n = places.len();
    let mut queues: Vec<Queue> = places
        .iter()
        .map(|&place| Queue {
            place,
            steps: Vec::new(),
        })
        .collect();
    // Per queue, the number of launches of each other queue that are done before the queue's next step. `history` has
    // this after each launch.
    let mut known = vec![vec![0_usize; n]; n];
    let mut history: Vec<Vec<Vec<usize>>> = vec![Vec::new(); n];
    // Per queue, the step position after each of its launches.
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut memory: Vec<AccessMap> = (0..program.shapes.len())
        .map(|_| AccessMap::default())
        .collect();
    for &launch in launches {
        let data = program.launch(launch);
        let of = |place: &Place| places.binary_search(place).unwrap_or(0);
        let meeting: Vec<usize> = data.places.iter().map(of).collect();
        let first = meeting[0];
        let by = QueueStep {
            queue: first,
            launch: behind[first].len(),
        };
        let needed = find_conflicts(program, launch, by, &mut memory);
        // For each conflicting launch, the first of the launch's queues waits, unless one queue already knows that the
        // launch is done.
        let mut last = vec![0_usize; n];
        for done in needed.into_iter().filter(|d| *d != by) {
            last[done.queue] = last[done.queue].max(done.launch + 1);
        }
        for (q, &count) in last.iter().enumerate() {
            let aware = meeting.iter().any(|&m| m == q || known[m][q] >= count);
            if count == 0 || aware {
                continue;
            }
            queues[first].steps.push(Step::Wait {
                queue: q,
                steps: behind[q][count - 1],
            });
            let learnt = history[q][count - 1].clone();
            join(&mut known[first], &learnt);
            known[first][q] = known[first][q].max(count);
        }
        let mut joint = vec![0; n];
        for &m in &meeting {
            join(&mut joint, &known[m]);
            joint[m] = joint[m].max(behind[m].len());
        }
        for &m in &meeting {
            queues[m].steps.push(Step::Launch(launch));
            behind[m].push(queues[m].steps.len());
        }
        for &m in &meeting {
            known[m] = joint.clone();
            for &o in &meeting {
                known[m][o] = behind[o].len();
            }
            history[m].push(known[m].clone());
        }
    }
    Phase { lookahead, queues }
}

/// Finds the steps that must end before a launch accesses its memory, per batch shape, and records the accesses.
fn find_conflicts(
    program: &Program,
    launch: Launch,
    by: QueueStep,
    memory: &mut [AccessMap],
) -> Vec<QueueStep> {
    let mut needed = Vec::new();
    let (reads, writes) = accessed_values(program, launch);
    for (shape, bytes) in memory.iter_mut().enumerate() {
        for &v in &reads {
            if let Some((arena, extent)) = extent(program, v, shape) {
                needed.extend(bytes.read(arena, extent, by));
            }
        }
        for &v in &writes {
            if let Some((arena, extent)) = extent(program, v, shape) {
                needed.extend(bytes.write(arena, extent, by));
            }
        }
    }
    needed
}

fn join(a: &mut [usize], b: &[usize]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = (*a).max(*b);
    }
}

fn accessed_values(program: &Program, launch: Launch) -> (Vec<Value>, Vec<Value>) {
    let (graph, data) = (&program.graph, program.launch(launch));
    if let Work::Store(output) = data.work {
        return match &graph.outputs[output] {
            Output::State { state, value } => (vec![*value], vec![*state]),
            Output::Named(_, value) => (vec![*value], Vec::new()),
        };
    }
    let covered = data.covered_insts();
    let insts = || covered.iter().map(|&i| graph.inst(i));
    let outside = |v: &Value| !covered.contains(&graph.value(*v).def.0);
    let mut reads: Vec<Value> = insts()
        .flat_map(|d| d.operands.iter().copied())
        .filter(outside)
        .collect();
    reads.sort_unstable();
    reads.dedup();
    (
        reads,
        insts().flat_map(|d| d.results.iter().copied()).collect(),
    )
}

fn extent(program: &Program, value: Value, shape: usize) -> Option<(usize, Extent)> {
    let buffer = program.buffer(program.home(value)?.buffer);
    Some((buffer.arena.index(), buffer.extent(shape)))
}
