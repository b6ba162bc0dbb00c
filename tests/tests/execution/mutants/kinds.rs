use tpc_ir::program::{ArenaKind, Extent, Home, Layout, Program, Step, Work};
use tpc_ir::{Buffer, Dim, Inst, Launch, Output, Value};

use crate::random::Random;

/// Changes a program and returns a description; `None` if the change is not possible.
type Mutate = fn(&mut Program, &mut Random) -> Option<String>;

pub(super) const KINDS: &[(&str, Mutate)] = &[
    ("wrong offset of a buffer", offset_of_buffer),
    ("misaligned buffer", misaligned),
    ("wrong offset of a view", offset_of_view),
    ("wrong stride", stride),
    ("buffer freed early", freed_early),
    ("lasting buffers overlap", lasting_overlap),
    ("homes swapped", homes_swapped),
    ("dropped wait", dropped_wait),
    ("wait for fewer steps", fewer_steps),
    ("wait for another queue", other_queue),
    ("steps swapped", steps_swapped),
    ("step moved", step_moved),
    ("in place where the old value is read", in_place),
    ("covered twice", covered_twice),
    ("covered by none", covered_by_none),
    ("wrong queue", wrong_queue),
    ("launch at another place", other_place),
    ("extent of a smaller shape", smaller_shape),
    ("collectives swapped", collectives_swapped),
    ("step of a participant missing", participant_missing),
    ("store missing", store_missing),
    ("stored early", stored_early),
    ("run twice", run_twice),
    ("weights swapped", weights_swapped),
];

/// Kinds of changes to stores. Few programs have stores: most states are updated in place.
pub(super) const OF_STORES: [&str; 2] = ["store missing", "stored early"];

fn buffers(p: &Program, kind: Option<ArenaKind>) -> Vec<usize> {
    let of = |i: &usize| kind.is_none_or(|k| p.arena(p.buffers[*i].arena).kind == k);
    (0..p.buffers.len()).filter(of).collect()
}

/// Returns the matching steps, by phase, queue and position.
fn steps(p: &Program, is: impl Fn(&Program, &Step) -> bool) -> Vec<(usize, usize, usize)> {
    let mut out = Vec::new();
    for (n, phase) in p.phases.iter().enumerate() {
        for (q, queue) in phase.queues.iter().enumerate() {
            let found = queue.steps.iter().enumerate().filter(|(_, s)| is(p, s));
            out.extend(found.map(|(i, _)| (n, q, i)));
        }
    }
    out
}

fn is_wait(_: &Program, step: &Step) -> bool {
    matches!(step, Step::Wait { .. })
}

fn is_collective(p: &Program, step: &Step) -> bool {
    matches!(step, Step::Launch(l) if p.launch(*l).places.len() > 1)
}

/// Returns the results of covered instructions, with launch and instruction.
fn computed(p: &Program) -> Vec<(Launch, Inst, Value)> {
    let mut out = Vec::new();
    for (i, launch) in p.launches.iter().enumerate() {
        for &inst in launch.covered_insts() {
            let results = &p.graph.inst(inst).results;
            out.extend(results.iter().map(|v| (Launch::new(i), inst, *v)));
        }
    }
    out
}

fn offset_of_buffer(p: &mut Program, r: &mut Random) -> Option<String> {
    let buffer = r.of(&buffers(p, None))?;
    let far = 64 * (1 + r.below(4) as u64);
    let back = r.below(2) == 0;
    let shape = r.below(p.buffers[buffer].extents.len());
    let extent = &mut p.buffers[buffer].extents[shape];
    extent.offset = match back {
        true => extent.offset.checked_sub(far)?,
        false => extent.offset + far,
    };
    Some(format!("{} by {far}, back: {back}", Buffer::new(buffer)))
}

fn misaligned(p: &mut Program, r: &mut Random) -> Option<String> {
    let buffer = r.of(&buffers(p, Some(ArenaKind::Work)))?;
    let by = 1 + r.below(7) as u64;
    for extent in &mut p.buffers[buffer].extents {
        extent.offset = extent.offset.checked_sub(by)?;
    }
    Some(format!("{} by {by}", Buffer::new(buffer)))
}

fn offset_of_view(p: &mut Program, r: &mut Random) -> Option<String> {
    let views: Vec<Value> = p
        .graph
        .values()
        .map(|(v, _)| v)
        .filter(|v| p.graph.def_op(*v).is_view() && p.home(*v).is_some())
        .collect();
    let view = r.of(&views)?;
    let by = 4 * (1 + r.below(64) as u64);
    let home = p.homes[view.index()].as_mut()?;
    home.layout.offset = home.layout.offset.checked_add(&Dim::constant(by))?;
    Some(format!("{view} by {by}"))
}

fn stride(p: &mut Program, r: &mut Random) -> Option<String> {
    let values: Vec<Value> = p.graph.values().map(|(v, _)| v).collect();
    let value = r.of(&values)?;
    let axis = r.below(3);
    let home = p.homes[value.index()].as_mut()?;
    let strides = &mut home.layout.strides;
    strides.swap(axis, axis + 1);
    Some(format!("{value}: {axis} and {}", axis + 1))
}

fn freed_early(p: &mut Program, r: &mut Random) -> Option<String> {
    let work = buffers(p, Some(ArenaKind::Work));
    let first = r.of(&work)?;
    let near: Vec<usize> = work
        .into_iter()
        .filter(|b| *b != first && p.buffers[*b].arena == p.buffers[first].arena)
        .filter(|b| b.abs_diff(first) < 12)
        .collect();
    let second = r.of(&near)?;
    for shape in 0..p.shapes.len() {
        let at = p.buffers[first].extents.get(shape)?.offset;
        let arena = p.buffers[second].arena.index();
        let extent = p.buffers[second].extents.get_mut(shape)?;
        extent.offset = at;
        p.arenas[arena].bytes = p.arenas[arena].bytes.max(extent.end());
    }
    Some(format!(
        "{} lies over {}",
        Buffer::new(second),
        Buffer::new(first)
    ))
}

fn lasting_overlap(p: &mut Program, r: &mut Random) -> Option<String> {
    let kind = r.of(&[ArenaKind::Weights, ArenaKind::States])?;
    let all = buffers(p, Some(kind));
    let first = r.of(&all)?;
    let same = |b: &usize| *b != first && p.buffers[*b].arena == p.buffers[first].arena;
    let second = r.of(&all.iter().copied().filter(same).collect::<Vec<_>>())?;
    let Extent { offset, .. } = p.buffers[first].extents[0];
    let arena = p.buffers[second].arena.index();
    let extent = &mut p.buffers[second].extents[0];
    extent.offset = offset;
    p.arenas[arena].bytes = p.arenas[arena].bytes.max(extent.end());
    Some(format!(
        "{} lies over {}",
        Buffer::new(second),
        Buffer::new(first)
    ))
}

fn homes_swapped(p: &mut Program, r: &mut Random) -> Option<String> {
    let all = computed(p);
    let (_, _, first) = r.of(&all)?;
    let data = p.graph.value(first);
    let like: Vec<Value> = all
        .iter()
        .map(|(_, _, v)| *v)
        .filter(|v| {
            let other = p.graph.value(*v);
            *v != first && other.ty == data.ty && other.place == data.place
        })
        .collect();
    let second = r.of(&like)?;
    p.homes.swap(first.index(), second.index());
    Some(format!("{first} and {second}"))
}

fn dropped_wait(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, is_wait))?;
    remove_step(p, n, q, i);
    Some(format!("phase {n}, queue {q}, step {i}"))
}

/// Removes a step, and adjusts waits for later steps in the queue.
fn remove_step(p: &mut Program, n: usize, q: usize, i: usize) {
    p.phases[n].queues[q].steps.remove(i);
    for queue in &mut p.phases[n].queues {
        for step in &mut queue.steps {
            if let Step::Wait { queue, steps } = step
                && *queue == q
                && *steps > i
            {
                *steps -= 1;
            }
        }
    }
}

fn fewer_steps(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, is_wait))?;
    let fewer = 1 + r.below(2);
    if let Step::Wait { steps, .. } = &mut p.phases[n].queues[q].steps[i] {
        *steps = steps.saturating_sub(fewer);
    }
    Some(format!("phase {n}, queue {q}, step {i}: {fewer} fewer"))
}

fn other_queue(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, is_wait))?;
    let queues = p.phases[n].queues.len();
    let other = r.below(queues);
    if let Step::Wait { queue, .. } = &mut p.phases[n].queues[q].steps[i] {
        *queue = other;
    }
    Some(format!("phase {n}, queue {q}, step {i}: queue {other}"))
}

fn steps_swapped(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, |_, _| true))?;
    let steps = &mut p.phases[n].queues[q].steps;
    if i + 1 >= steps.len() {
        return None;
    }
    steps.swap(i, i + 1);
    Some(format!("phase {n}, queue {q}, steps {i} and {}", i + 1))
}

fn step_moved(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, |_, _| true))?;
    let steps = &mut p.phases[n].queues[q].steps;
    let to = r.below(steps.len());
    let step = steps.remove(i);
    steps.insert(to, step);
    Some(format!("phase {n}, queue {q}, step {i} to {to}"))
}

fn in_place(p: &mut Program, r: &mut Random) -> Option<String> {
    let (_, inst, value) = r.of(&computed(p))?;
    let graph = &p.graph;
    let operands: Vec<Value> = graph
        .inst(inst)
        .operands
        .iter()
        .copied()
        .filter(|v| graph.value(*v).place == graph.value(value).place)
        .collect();
    let over = r.of(&operands)?;
    let buffer = p.home(over)?.buffer;
    let layout = match graph.value(over).ty == graph.value(value).ty {
        true => p.home(over)?.layout.clone(),
        false => Layout::dense(&graph.value(value).ty)?,
    };
    let before = p.homes[value.index()].replace(Home { buffer, layout });
    // Views of the value, and results that overwrite it, move to the same buffer.
    follow(p, value, before?.buffer);
    Some(format!("{value} over {over}"))
}

fn follow(p: &mut Program, value: Value, from: Buffer) {
    let covered: Vec<Inst> = p
        .launches
        .iter()
        .flat_map(|l| l.covered_insts().to_vec())
        .collect();
    let views: Vec<(Inst, Value)> = p
        .graph
        .insts()
        .filter(|(inst, data)| {
            data.op.is_view() && data.operands[0] == value && !covered.contains(inst)
        })
        .map(|(inst, data)| (inst, data.results[0]))
        .collect();
    for (inst, view) in views {
        let (graph, home) = (&p.graph, p.home(value));
        let moved = home.and_then(|home| {
            let (from, to) = (&graph.value(value).ty, &graph.value(view).ty);
            let layout = home.layout.view(&graph.inst(inst).op, from, to)?;
            let buffer = home.buffer;
            Some(Home { buffer, layout })
        });
        if moved.is_some() && p.home(view).is_some_and(|h| h.buffer == from) {
            p.homes[view.index()] = moved;
            follow(p, view, from);
        }
    }
}

fn covered_twice(p: &mut Program, r: &mut Random) -> Option<String> {
    let launches: Vec<usize> = (0..p.launches.len())
        .filter(|i| matches!(p.launches[*i].work, Work::Compute(_)))
        .collect();
    let (first, second) = (r.of(&launches)?, r.of(&launches)?);
    let insts = p.launches[first].covered_insts().to_vec();
    let same = p.launches[first].places == p.launches[second].places;
    let Work::Compute(covered) = &mut p.launches[second].work else {
        return None;
    };
    if first == second || !same {
        return None;
    }
    covered.extend(insts);
    covered.sort_unstable();
    Some(format!(
        "{} also by {}",
        Launch::new(first),
        Launch::new(second)
    ))
}

fn covered_by_none(p: &mut Program, r: &mut Random) -> Option<String> {
    let launch = r.below(p.launches.len());
    if matches!(p.launches[launch].work, Work::Store(_)) {
        return None;
    }
    remove_launch(p, launch);
    Some(Launch::new(launch).to_string())
}

fn remove_launch(p: &mut Program, launch: usize) {
    let is = |_: &Program, s: &Step| *s == Step::Launch(Launch::new(launch));
    while let Some((n, q, i)) = steps(p, is).first().copied() {
        remove_step(p, n, q, i);
    }
    p.launches.remove(launch);
    for phase in &mut p.phases {
        for step in phase.queues.iter_mut().flat_map(|q| &mut q.steps) {
            if let Step::Launch(l) = step
                && l.index() > launch
            {
                *l = Launch::new(l.index() - 1);
            }
        }
    }
}

fn wrong_queue(p: &mut Program, r: &mut Random) -> Option<String> {
    let launches = steps(p, |_, s| matches!(s, Step::Launch(_)));
    let (n, q, i) = r.of(&launches)?;
    let to = r.below(p.phases[n].queues.len());
    if to == q {
        return None;
    }
    let step = p.phases[n].queues[q].steps[i];
    remove_step(p, n, q, i);
    let steps = &mut p.phases[n].queues[to].steps;
    steps.insert(i.min(steps.len()), step);
    Some(format!("phase {n}, queue {q}, step {i} to queue {to}"))
}

fn other_place(p: &mut Program, r: &mut Random) -> Option<String> {
    let alone =
        |p: &Program, s: &Step| matches!(s, Step::Launch(l) if p.launch(*l).places.len() == 1);
    let (n, q, i) = r.of(&steps(p, alone))?;
    let to = r.below(p.phases[n].queues.len());
    let step = p.phases[n].queues[q].steps[i];
    let Step::Launch(launch) = step else {
        return None;
    };
    if to == q {
        return None;
    }
    p.launches[launch.index()].places = vec![p.phases[n].queues[to].place];
    remove_step(p, n, q, i);
    let steps = &mut p.phases[n].queues[to].steps;
    steps.insert(i.min(steps.len()), step);
    Some(format!("{launch} to queue {to}"))
}

fn smaller_shape(p: &mut Program, r: &mut Random) -> Option<String> {
    let buffer = r.of(&buffers(p, Some(ArenaKind::Work)))?;
    let all = r.below(2) == 0;
    for (i, data) in p.buffers.iter_mut().enumerate() {
        let (Some(small), 2) = (data.extents.first().copied(), data.extents.len()) else {
            continue;
        };
        if all {
            data.extents[1] = small;
        } else if i == buffer {
            data.extents[1].bytes = small.bytes;
        }
    }
    Some(format!("{}, all: {all}", Buffer::new(buffer)))
}

fn collectives_swapped(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, is_collective))?;
    let queue = &p.phases[n].queues[q].steps;
    let later = (i + 1..queue.len()).find(|j| is_collective(p, &queue[*j]))?;
    p.phases[n].queues[q].steps.swap(i, later);
    Some(format!("phase {n}, queue {q}, steps {i} and {later}"))
}

fn participant_missing(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, is_collective))?;
    remove_step(p, n, q, i);
    Some(format!("phase {n}, queue {q}, step {i}"))
}

fn store_missing(p: &mut Program, r: &mut Random) -> Option<String> {
    let stores: Vec<usize> = (0..p.launches.len())
        .filter(|i| matches!(p.launches[*i].work, Work::Store(_)))
        .collect();
    let store = r.of(&stores)?;
    remove_launch(p, store);
    Some(Launch::new(store).to_string())
}

fn stored_early(p: &mut Program, r: &mut Random) -> Option<String> {
    let is_store = |p: &Program, s: &Step| matches!(s, Step::Launch(l) if matches!(p.launch(*l).work, Work::Store(_)));
    let (n, q, i) = r.of(&steps(p, is_store))?;
    let Step::Launch(launch) = p.phases[n].queues[q].steps[i] else {
        return None;
    };
    let Work::Store(output) = p.launch(launch).work else {
        return None;
    };
    let Output::State { state, .. } = p.graph.outputs[output] else {
        return None;
    };
    let readers = |s: &Step| match s {
        Step::Launch(l) => p
            .launch(*l)
            .covered_insts()
            .iter()
            .any(|inst| p.graph.inst(*inst).operands.contains(&state)),
        Step::Wait { .. } => false,
    };
    let to = p.phases[n].queues[q].steps.iter().position(readers)?;
    let steps = &mut p.phases[n].queues[q].steps;
    let step = steps.remove(i);
    steps.insert(to, step);
    Some(format!("{launch} from step {i} to {to}"))
}

fn run_twice(p: &mut Program, r: &mut Random) -> Option<String> {
    let (n, q, i) = r.of(&steps(p, |_, s| matches!(s, Step::Launch(_))))?;
    let steps = &mut p.phases[n].queues[q].steps;
    let step = steps[i];
    let to = i + 1 + r.below(steps.len() - i);
    steps.insert(to, step);
    Some(format!("phase {n}, queue {q}, step {i} again at {to}"))
}

fn weights_swapped(p: &mut Program, r: &mut Random) -> Option<String> {
    let weights = buffers(p, Some(ArenaKind::Weights));
    let first = r.of(&weights)?;
    let like = |b: &usize| {
        let (a, b) = (&p.buffers[*b], &p.buffers[first]);
        a != b && a.arena == b.arena && a.extents[0].bytes == b.extents[0].bytes
    };
    let second = r.of(&weights.iter().copied().filter(like).collect::<Vec<_>>())?;
    // One of the two values then overwrites the other.
    p.buffers[first].extents = p.buffers[second].extents.clone();
    Some(format!("{} is {}", Buffer::new(first), Buffer::new(second)))
}
