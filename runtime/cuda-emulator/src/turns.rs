//! Runs the threads of a block until they wait.

use tpc_cuda::FaultKind;

use super::block::Block;
use super::calls::thread_main;
use super::engine::{Engine, Task};
use super::fault::{RawFault, Where};
use super::fiber::{head, overrun, prepare, switch};

/// What became of a block.
pub(super) enum Outcome {
    Ended,
    Parked,
    Stopped,
}

/// The index of a thread in its block.
pub(super) fn index(threads: [u32; 3], linear: u32) -> [u32; 3] {
    let [x, y, _] = threads;
    [linear % x, linear / x % y, linear / x / y]
}

/// Runs threads of a block until it has ended, or none can run.
///
/// # Safety
/// Both pointers are valid, and nothing else uses what they point to but the calls of the kernel.
pub(super) unsafe fn run_block(engine: *mut Engine, block: *mut Block) -> Outcome {
    let mut warp = 0;
    loop {
        // SAFETY: the caller says so; no thread runs here, so the references are the only ones.
        let (e, b) = unsafe { (&mut *engine, &mut *block) };
        let n = b.warps.len();
        if b.warps[warp].runnable() == 0 {
            let first = e.random.below(n);
            let next = (0..n)
                .map(|i| (first + i) % n)
                .find(|&w| b.warps[w].runnable() != 0);
            match next {
                Some(next) => warp = next,
                None if b.alive == 0 => return Outcome::Ended,
                None if wake(b) => return Outcome::Parked,
                None => {
                    stuck(e, b);
                    return Outcome::Stopped;
                }
            }
        }
        let turn = e.random.below(32) as u32;
        let mut mask = b.warps[warp].runnable();
        // All lanes that can run do, in a row that begins anywhere, before a warp is chosen again.
        while mask != 0 {
            let lane = (mask.rotate_right(turn).trailing_zeros() + turn) % 32;
            mask &= !(1 << lane);
            // SAFETY: as above.
            if unsafe { run_lane(engine, block, warp, lane) } {
                return Outcome::Stopped;
            }
        }
    }
}

/// Makes what spins ready for the next time; whether anything does.
fn wake(block: &mut Block) -> bool {
    let mut any = 0;
    for warp in &mut block.warps {
        any |= warp.spinning;
        warp.ready |= std::mem::take(&mut warp.spinning);
    }
    any != 0
}

/// Runs a lane until it waits or ends; whether it found a fault.
///
/// # Safety
/// As for [`run_block`]; the lane can run.
unsafe fn run_lane(engine: *mut Engine, block: *mut Block, warp: usize, lane: u32) -> bool {
    // SAFETY: no thread runs here.
    let (e, b) = unsafe { (&mut *engine, &mut *block) };
    let linear = warp * 32 + lane as usize;
    let bit = 1 << lane;
    if b.warps[warp].new & bit != 0 {
        b.warps[warp].new &= !bit;
        let stack = e.stacks.take();
        let Task::Kernel(launch) = &e.node(b.node).task else {
            unreachable!("invariant: blocks are of kernels")
        };
        // SAFETY: the stack is free.
        unsafe {
            head(stack).write(super::abi::ThreadHead {
                index: index(b.head.threads, linear as u32),
                linear: linear as u32,
                lane,
                warp: warp as u32,
                head: b.head,
                block: block.cast(),
                engine: engine.cast(),
                run: launch.kernel.run,
                arguments: launch.kernel.arguments.as_ptr().cast(),
            });
            b.fibers[linear].sp = prepare(stack, linear, thread_main);
        }
        b.fibers[linear].stack = stack;
    } else {
        b.warps[warp].ready &= !bit;
    }
    let (save, load) = (&raw mut e.sp, b.fibers[linear].sp);
    // SAFETY: the thread was prepared, or has left itself to wait.
    unsafe { switch(save, load) };
    // SAFETY: the thread has left itself again.
    let (e, b) = unsafe { (&mut *engine, &mut *block) };
    let stack = b.fibers[linear].stack;
    if b.fibers[linear].ended {
        e.stacks.give(stack);
    }
    // SAFETY: a stack of the pool.
    if e.fault.is_none() && unsafe { overrun(stack) } {
        let what = format!(
            "the thread needs more than {} bytes of stack",
            super::abi::STACK
        );
        e.fault = Some(RawFault {
            kind: FaultKind::Resources,
            node: b.node,
            block: b.head.index,
            thread: index(b.head.threads, linear as u32),
            at: Where::Named("its begin".into()),
            other: None,
            what,
        });
    }
    e.fault.is_some()
}

/// No thread of the block can run, and none waits for others.
fn stuck(engine: &mut Engine, block: &Block) {
    let waits = |f: &super::block::Fiber| f.site.is_some() && !f.ended;
    let first = block.fibers.iter().position(waits);
    let first = first.expect("invariant: what lives and does not run waits");
    engine.fault = Some(RawFault {
        kind: FaultKind::Divergence,
        node: block.node,
        block: block.head.index,
        thread: index(block.head.threads, first as u32),
        at: Where::Named(
            block.fibers[first]
                .site
                .map_or_else(String::new, |s| s.at()),
        ),
        other: None,
        what: format!("{}; all must come to the same place", block.waits()),
    });
}
