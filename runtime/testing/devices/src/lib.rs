//! # Devices for tests
//!
//! A test asks for devices with [`TestDriver::new`]. It gets emulated devices, or the cards that `TPC_TEST_DRIVER` names:
//!
//! | `TPC_TEST_DRIVER` | devices |
//! |---|---|
//! | unset, `emulated` | emulated |
//! | `cuda:0` | card 0; several devices of a test share it |
//! | `cuda:0,cuda:1` | the cards of the list in turn |
//!
//! `TPC_TEST_CUBINS` is a folder of compiled kernels for cards. With `TPC_TEST_COMPILE=sm_90a`, tests on emulated devices
//! also compile every module for this target and store it there. A machine with a card, but without NVRTC, then runs the
//! same tests.
//!
//! A [`CountingDriver`] counts the copies, launches and waits of a test, and the edges between devices.

mod counting_driver;
mod cubins;
mod driver;
mod named;

pub use counting_driver::{Calls, CountingDriver, GraphOrder, Tally};
pub use driver::TestDriver;
