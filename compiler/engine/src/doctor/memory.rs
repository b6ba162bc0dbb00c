//! Patterns of bytes, buffers and graphs of copies.

use tpc_cuda::{
    CopyNode, Device, Driver, DriverError, Endpoint, Graph, GraphSpec, Memory, Side, Work,
};

use super::check::Bench;
use super::report::Finding;

/// Returns the bytes of a large copy: 64 MiB on cards.
pub(super) fn large<D: Driver>(bench: &Bench<D>) -> u64 {
    match bench.setup.emulated {
        true => 4 << 20,
        false => 64 << 20,
    }
}

/// Returns `n` bytes that depend on `seed`.
pub(super) fn pattern(n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// Describes the first wrong byte; `None` if all bytes are equal.
pub(super) fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
    let pairs = || expected.iter().zip(found);
    let at = pairs().position(|(a, b)| a != b)?;
    let wrong = pairs().filter(|(a, b)| a != b).count();
    let n = expected.len();
    let (is, should) = (found[at], expected[at]);
    Some(format!(
        "byte {at} is 0x{is:02x} instead of 0x{should:02x}, and {wrong} of {n} bytes are wrong"
    ))
}

/// Returns a failure that names the first wrong byte; `None` if all bytes are equal.
pub(super) fn compared(what: &str, expected: &[u8], found: &[u8], cure: &str) -> Option<Finding> {
    let text = difference(expected, found)?;
    Some(Finding::failed(format!("{what}: {text}"), cure))
}

pub(super) fn device(index: usize) -> Device {
    Device(index as u32)
}

pub(super) fn at(memory: Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

/// Allocates `n` bytes on a device or the host.
pub(super) fn allocate<D: Driver>(
    driver: &mut D,
    side: Side,
    n: usize,
) -> Result<Memory, DriverError> {
    match side {
        Side::Host => driver.allocate_host(n as u64),
        Side::Device(device) => driver.allocate(device, n as u64),
    }
}

/// Creates a graph that copies `bytes` bytes through a list of memories, `rounds` times.
pub(super) fn copies<D: Driver>(
    driver: &mut D,
    path: &[Memory],
    bytes: u64,
    rounds: usize,
) -> Result<Graph, DriverError> {
    let mut spec = GraphSpec::default();
    let mut last: Option<usize> = None;
    for _ in 0..rounds {
        for hop in path.windows(2) {
            let copy = CopyNode {
                from: at(hop[0]),
                to: at(hop[1]),
                bytes,
            };
            let label = format!("copy from {} to {}", hop[0].side, hop[1].side);
            let after: Vec<usize> = last.into_iter().collect();
            last = Some(spec.push(label, Work::Copy(copy), &after));
        }
    }
    driver.instantiate(spec)
}

/// Writes `bytes` to the first memory of `path`, copies them through the others, and reads the last memory.
pub(super) fn through<D: Driver>(
    driver: &mut D,
    path: &[Side],
    bytes: &[u8],
) -> Result<Vec<u8>, DriverError> {
    let mut memories = Vec::new();
    for side in path {
        memories.push(allocate(driver, *side, bytes.len())?);
    }
    let mut found = vec![0; bytes.len()];
    if let (Some(first), Some(last)) = (memories.first(), memories.last()) {
        driver.write(at(*first), bytes)?;
        let graph = copies(driver, &memories, bytes.len() as u64, 1)?;
        driver.launch(graph)?;
        driver.synchronize()?;
        driver.read(at(*last), &mut found)?;
        driver.discard(graph)?;
    }
    for memory in memories {
        driver.free(memory)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_byte_is_named() {
        let expected = pattern(4097, 1);
        assert_eq!(difference(&expected, &expected), None);
        let mut found = expected.clone();
        found[4000] ^= 1;
        found[4096] ^= 1;
        let text = difference(&expected, &found).expect("a difference");
        assert!(text.starts_with("byte 4000 is 0x"), "{text}");
        assert!(text.ends_with("2 of 4097 bytes are wrong"), "{text}");
        assert_ne!(expected, pattern(4097, 2));
    }
}
