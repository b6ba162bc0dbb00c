//! The target `tpc_fuzz::artefact` for libfuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tpc_fuzz::artefact(data));
