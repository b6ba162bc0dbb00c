//! The target `tpc_fuzz::gguf` for libfuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tpc_fuzz::gguf(data));
