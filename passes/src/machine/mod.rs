//! The machines of a plan and their cost model: device and link profiles, priced batches, and times of work and
//! transfers.

mod backend;
mod calibration;
mod class;
mod cost;
mod crossing;
mod engine;
mod engine_profiles;
mod expert_load;
#[allow(
    clippy::approx_constant,
    reason = "a fitted constant may be close to a mathematical constant"
)]
mod fitted;
mod kernel;
mod link;
mod machines;
mod networks;
mod participants;
mod pool;
mod profile;
mod ring;
mod speed;
mod topology;
mod way;
mod work;
mod workload;

pub use backend::Backend;
pub use calibration::{Calibration, Ways};
pub use class::CardClass;
pub use cost::{copy_us, roofline_us};
pub use crossing::Crossing;
pub use engine::Engine;
pub use expert_load::{ExpertLoad, expected_max};
pub(crate) use kernel::kernel;
pub use kernel::{Kernel, KernelKind, Regime};
pub use link::{Link, LinkKind, PairLink};
pub use machines::Machines;
pub use networks::{NETWORKS, Network};
pub use participants::{Exchange, Participants};
pub use pool::Pool;
pub use profile::{ClassFactor, ClassFactors, EngineProfile, ErrorBand};
pub use ring::Ring;
pub use speed::{KernelTime, Speed};
pub use topology::{DeviceProfile, MemoryKind, Processor, Topology};
pub use way::Way;
pub(crate) use work::{Parts, work};
pub use workload::Workload;
