use tpc_cuda::FaultKind;

use super::abi::{ThreadHead, thread_index};
use super::block::Block;
use super::calls::thread_main;
use super::fault::{CodeLocation, UnresolvedFault};
use super::fiber::{head, overrun, prepare, switch};
use super::graph::Task;
use super::run_state::RunState;

pub(super) enum BlockOutcome {
    Ended,
    Parked,
    Stopped,
}

/// Runs the threads of a block until the block ends or no thread can run.
///
/// # Safety
///
/// Both pointers must be valid. Only the kernel's calls may use their targets during the call.
pub(super) unsafe fn run_block(engine: *mut RunState, block: *mut Block) -> BlockOutcome {
    let mut warp = 0;
    loop {
        // SAFETY: guaranteed by the caller. No thread runs here, so the references are unique.
        let (e, b) = unsafe { (&mut *engine, &mut *block) };
        let n = b.warps.len();
        if b.warps[warp].runnable() == 0 {
            let first = e.random.below(n);
            let next = (0..n)
                .map(|i| (first + i) % n)
                .find(|&w| b.warps[w].runnable() != 0);
            match next {
                Some(next) => warp = next,
                None if b.alive == 0 => return BlockOutcome::Ended,
                None if wake(b) => return BlockOutcome::Parked,
                None => {
                    report_divergence(e, b);
                    return BlockOutcome::Stopped;
                }
            }
        }
        let turn = e.random.below(32) as u32;
        let mut mask = b.warps[warp].runnable();
        // Start with a random lane; run all runnable lanes before the next warp.
        while mask != 0 {
            let lane = (mask.rotate_right(turn).trailing_zeros() + turn) % 32;
            mask &= !(1 << lane);
            // SAFETY: as above.
            if unsafe { run_lane(engine, block, warp, lane) } {
                return BlockOutcome::Stopped;
            }
        }
    }
}

/// Makes spinning lanes runnable for the next turn. Returns true if there are any.
fn wake(block: &mut Block) -> bool {
    let mut any = 0;
    for warp in &mut block.warps {
        any |= warp.spinning;
        warp.ready |= std::mem::take(&mut warp.spinning);
    }
    any != 0
}

/// Runs a lane until it waits or ends. Returns true after a fault.
///
/// # Safety
///
/// The conditions of [`run_block`] apply. The lane must be runnable.
unsafe fn run_lane(engine: *mut RunState, block: *mut Block, warp: usize, lane: u32) -> bool {
    // SAFETY: no thread runs here.
    let (e, b) = unsafe { (&mut *engine, &mut *block) };
    let linear = warp * 32 + lane as usize;
    let bit = 1 << lane;
    if b.warps[warp].new & bit != 0 {
        b.warps[warp].new &= !bit;
        let stack = e.stacks.take();
        let Task::Kernel(launch) = &e.node(b.node).task else {
            unreachable!("invariant: only kernels have blocks")
        };
        // SAFETY: the stack is free.
        unsafe {
            head(stack).write(ThreadHead {
                index: thread_index(b.head.threads, linear as u32),
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
    // SAFETY: the thread was prepared, or suspended itself to wait.
    unsafe { switch(save, load) };
    // SAFETY: the thread has suspended itself.
    let (e, b) = unsafe { (&mut *engine, &mut *block) };
    let stack = b.fibers[linear].stack;
    if b.fibers[linear].ended {
        e.stacks.give(stack);
    }
    // SAFETY: the stack belongs to the pool.
    if e.fault.is_none() && unsafe { overrun(stack) } {
        let what = format!(
            "the thread needs more than {} bytes of stack",
            super::abi::STACK
        );
        e.fault = Some(UnresolvedFault {
            kind: FaultKind::Resources,
            node: b.node,
            block: b.head.index,
            thread: thread_index(b.head.threads, linear as u32),
            at: CodeLocation::Named("the start of the kernel".into()),
            other: None,
            what,
        });
    }
    e.fault.is_some()
}

fn report_divergence(engine: &mut RunState, block: &Block) {
    let waits = |f: &super::block::Fiber| f.site.is_some() && !f.ended;
    let first = block.fibers.iter().position(waits);
    let first = first.expect("invariant: a live thread runs or waits");
    engine.fault = Some(UnresolvedFault {
        kind: FaultKind::Divergence,
        node: block.node,
        block: block.head.index,
        thread: thread_index(block.head.threads, first as u32),
        at: CodeLocation::Named(
            block.fibers[first]
                .site
                .map_or_else(String::new, |s| s.at()),
        ),
        other: None,
        what: format!("{}; all must reach the same call", block.describe_waits()),
    });
}
