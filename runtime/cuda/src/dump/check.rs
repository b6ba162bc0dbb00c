//! The ranges of a header's fields.

use std::fmt::Display;

use tpc_ir::DType;

use super::error::DumpError;
use super::format::from_hex;
use super::header::{DumpHeader, KernelRecord, RegionRecord, TensorRecord};

/// The views of a kernel, at most.
const MAX_TENSORS: usize = 1024;
/// The bytes of a kernel's parameters, at most.
const MAX_PARAMS: usize = 64 << 10;
/// The bytes of a region, at most.
const MAX_REGION: u64 = 1 << 40;
const MAX_THREADS: u32 = 1024;
const MAX_BLOCKS: u64 = 1 << 31;

fn field(
    field: impl Into<String>,
    found: impl Display,
    expected: impl Into<String>,
) -> Result<(), DumpError> {
    Err(DumpError::Field {
        field: field.into(),
        found: found.to_string(),
        expected: expected.into(),
    })
}

/// Checks a header. `data` is the number of saved bytes in the file.
pub(super) fn check(header: &DumpHeader, data: u64) -> Result<(), DumpError> {
    kernel(&header.kernel)?;
    weights(&header.kernel, header.tensors.len())?;
    for (name, found) in [
        ("tensors", header.tensors.len()),
        ("regions", header.regions.len()),
    ] {
        if found > MAX_TENSORS {
            return field(
                name,
                format!("{found} long"),
                format!("at most {MAX_TENSORS}"),
            );
        }
    }
    for (i, region) in header.regions.iter().enumerate() {
        if region.bytes > MAX_REGION {
            let name = format!("regions[{i}].bytes");
            return field(name, region.bytes, format!("at most {MAX_REGION}"));
        }
        if region.saved > region.bytes {
            let name = format!("regions[{i}].saved");
            return field(name, region.saved, format!("at most {}", region.bytes));
        }
    }
    // At most 1024 regions of 2^40 bytes: the sum fits.
    let saved: u64 = header.regions.iter().map(|r| r.saved).sum();
    if saved != data {
        let expected = format!("{data} in total, the bytes of the data");
        return field("regions[..].saved", saved, expected);
    }
    for (i, t) in header.tensors.iter().enumerate() {
        tensor(i, t, &header.regions)?;
    }
    Ok(())
}

fn kernel(kernel: &KernelRecord) -> Result<(), DumpError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let entry = &kernel.entry;
    let begins = entry.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || entry.len() > 4096 || !entry.chars().all(is_name) {
        return field("kernel.entry", format!("{entry:?}"), "a name in C");
    }
    if !(1..=MAX_THREADS).contains(&kernel.threads) {
        let expected = format!("1 to {MAX_THREADS}");
        return field("kernel.threads", kernel.threads, expected);
    }
    let mut blocks = kernel.grid.iter();
    let blocks = blocks.try_fold(1_u64, |n, size| n.checked_mul((*size).into()));
    if !blocks.is_some_and(|n| (1..MAX_BLOCKS).contains(&n)) {
        let expected = format!("1 to {} blocks", MAX_BLOCKS - 1);
        return field("kernel.grid", format!("{:?}", kernel.grid), expected);
    }
    match from_hex(&kernel.params) {
        Some(bytes) if bytes.len() <= MAX_PARAMS => Ok(()),
        Some(bytes) => {
            let found = format!("{} bytes long", bytes.len());
            field("kernel.params", found, format!("at most {MAX_PARAMS}"))
        }
        None => field("kernel.params", "no pairs of digits", "hexadecimal digits"),
    }
}

fn weights(kernel: &KernelRecord, tensors: usize) -> Result<(), DumpError> {
    let (found, expected) = (kernel.weights.len(), kernel.instance.weights());
    if found != expected {
        let expected = format!("{expected}, as the arguments of the instance say");
        return field("kernel.weights", format!("{found} long"), expected);
    }
    for (i, weight) in kernel.weights.iter().enumerate() {
        if weight.operand >= tensors {
            let name = format!("kernel.weights[{i}].operand");
            let expected = format!("less than {tensors}, the number of tensors");
            return field(name, weight.operand, expected);
        }
    }
    Ok(())
}

fn tensor(i: usize, tensor: &TensorRecord, regions: &[RegionRecord]) -> Result<(), DumpError> {
    let name = |field: &str| format!("tensors[{i}].{field}");
    if DType::from_name(&tensor.dtype).is_none() {
        let found = format!("{:?}", tensor.dtype);
        return field(name("dtype"), found, "an element type such as \"f32\"");
    }
    if let Some(n) = tensor.dims.iter().find(|n| **n > u32::MAX.into()) {
        return field(name("dims"), n, format!("at most {}", u32::MAX));
    }
    let Some(number) = tensor.region else {
        return Ok(());
    };
    let Some(region) = regions.get(number as usize) else {
        let expected = format!("less than {}, the number of regions", regions.len());
        return field(name("region"), number, expected);
    };
    let end = tensor.offset.checked_add(tensor.bytes);
    if end.is_none_or(|end| end > region.bytes) {
        let found = format!("{} with {} bytes", tensor.offset, tensor.bytes);
        let expected = format!("a range within {} bytes", region.bytes);
        return field(name("offset"), found, expected);
    }
    Ok(())
}
