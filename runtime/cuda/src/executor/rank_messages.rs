//! Runs the messages of a rank while a graph runs.
#![allow(unsafe_code)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use tpc_cpu::View;
use tpc_cpu::host::{RankExchange, packed};
use tpc_ir::Value;
use tpc_runtime::ranks::{Incoming, Outgoing, RankSeat, Tag};
use tpc_runtime::{ExecError, Frame, Options};

use super::device_view::DeviceView;
use super::frames::Frames;
use super::host_ops::HostLaunches;
use super::launches::Launches;
use super::messages::MessageWork;
use super::task::StagingPart;
use crate::driver::HostError;

/// A rank's messages, with their memory for the current batch.
#[derive(Debug)]
pub(super) struct RankMessages {
    pub(super) seat: RankSeat,
    memory: Mutex<MessageMemory>,
}

#[derive(Debug, Default)]
struct MessageMemory {
    posts: Vec<(View, usize, Tag)>,
    receives: Vec<(View, usize, Tag)>,
    exchanges: Vec<RankExchange>,
}

// SAFETY: the views are of host memory that lives as long as the executor. The edges of the graph order its use.
unsafe impl Send for MessageMemory {}

impl RankMessages {
    pub(super) fn new(
        seat: RankSeat,
        launches: &Launches,
        options: Options,
    ) -> Result<RankMessages, ExecError> {
        let rank = seat.share.rank();
        let planned = launches.plan.iter().flat_map(|plan| &plan.exchanges);
        let exchanges = planned.map(|of| {
            let place = (of.blocks.clone(), rank, of.tag);
            RankExchange::new((&of.op, of.dtype), place, options)
        });
        let memory = MessageMemory {
            exchanges: exchanges.collect::<Result<_, _>>()?,
            ..MessageMemory::default()
        };
        Ok(RankMessages {
            seat,
            memory: Mutex::new(memory),
        })
    }

    fn lock(&self) -> MutexGuard<'_, MessageMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the sizes and addresses of all messages for the next batches.
    pub(super) fn set(
        &self,
        launches: &Launches,
        (frame, frames): (&Frame<DeviceView>, &Frames),
    ) -> Result<(), ExecError> {
        let Some(plan) = &launches.plan else {
            return Ok(());
        };
        let staged = |value: Value, part: StagingPart| {
            let address = frames.staging(launches, part);
            frame.view(value).dense(address).on_host()
        };
        let mut memory = self.lock();
        let posts = plan.posts.iter().map(|post| {
            let view = match post.copy {
                Some(part) => staged(post.value, part),
                None => frame.view(post.value).on_host(),
            };
            (view, post.to, post.tag)
        });
        memory.posts = posts.collect();
        let receives = plan.receives.iter();
        let receives = receives.map(|of| (staged(of.value, of.to), of.from, of.tag));
        memory.receives = receives.collect();
        for (exchange, of) in memory.exchanges.iter_mut().zip(&plan.exchanges) {
            let operands = of.operands.iter().map(|(value, part)| match part {
                Some(part) => staged(*value, *part),
                None => frame.view(*value).on_host(),
            });
            let operands: Vec<View> = operands.collect();
            let results = of.results.iter();
            let results = results.map(|(i, value, part)| (*i, staged(*value, *part)));
            exchange.resize(&operands, results.collect())?;
        }
        Ok(())
    }

    /// Runs a message node. The graph runs one at a time, in the same order on all ranks.
    pub(super) fn run(
        &self,
        work: MessageWork,
        hosted: &Mutex<HostLaunches>,
    ) -> Result<(), HostError> {
        let memory = self.lock();
        let transport = &*self.seat.transport;
        match work {
            MessageWork::Post(i) => {
                let (view, to, tag) = memory.posts[i];
                let bytes = packed(&view);
                let bytes = bytes.as_slice();
                transport.post(Outgoing { to, tag, bytes })?;
            }
            MessageWork::Receive(i) => {
                let (view, from, tag) = memory.receives[i];
                // SAFETY: the edges of the graph order this node before the memory's readers, and after its last ones.
                let bytes = unsafe { dense_bytes(&view) };
                transport.exchange(&[], &mut [Incoming { from, tag, bytes }])?;
            }
            MessageWork::Exchange(i) => {
                let exchange = &memory.exchanges[i];
                let ops = || hosted.lock().map_err(|_| "a host op panicked");
                // SAFETY: this node follows the copies of the operands, and precedes the readers of the results. Only
                // this node uses the collective.
                unsafe {
                    ops()?.ops.add_blocks(exchange)?;
                    exchange.exchange(transport)?;
                    ops()?.ops.results(exchange)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the bytes of a dense view.
///
/// # Safety
/// The memory exists, and no other thread uses it.
unsafe fn dense_bytes<'a>(view: &View) -> &'a mut [u8] {
    let bytes = if view.is_empty() {
        0
    } else {
        view.nb[3] * view.ne[3]
    };
    match bytes {
        0 => &mut [],
        // SAFETY: caller's contract.
        _ => unsafe { std::slice::from_raw_parts_mut(view.ptr, bytes) },
    }
}
