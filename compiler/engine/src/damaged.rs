//! Finds weights with values that are not finite.
//!
//! One NaN in a weight makes every logit NaN. The files of published models have none, so such a weight is a sign of a
//! damaged file.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tpc_diag::{Diagnostic, visible};
use tpc_gguf::{GgufFile, TensorInfo};
use tpc_runtime::quant;

use crate::codes;

/// The number of elements that are decoded at once; a multiple of every block size.
const AT_ONCE: u64 = 1 << 14;
/// The maximum number of tensors in a message.
const MAX_NAMED: usize = 4;

/// The first value of a tensor that is not finite.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    /// The tensor's name.
    pub tensor: String,
    /// The element's number, in the order of the file.
    pub element: u64,
    /// The value: NaN or infinite.
    pub value: f32,
    /// The offset in the file of the element's block.
    pub offset: u64,
}

/// Decodes every tensor of a file, and returns the first value of each that is not finite. Skips integers, and all
/// tensors of a file without data.
pub fn non_finite(file: &GgufFile) -> Vec<NonFinite> {
    let tensors = file.header().tensors();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..threads.min(tensors.len()) {
            scope.spawn(|| {
                while let Some(tensor) = tensors.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(one) = in_tensor(file, tensor)
                        && let Ok(mut found) = found.lock()
                    {
                        found.push(one);
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_default();
    found.sort_by_key(|one| one.offset);
    found
}

fn in_tensor(file: &GgufFile, tensor: &TensorInfo) -> Option<NonFinite> {
    let bytes = file.tensor_data(tensor)?;
    let out = in_bytes(tensor, bytes);
    file.release(bytes);
    out
}

fn in_bytes(tensor: &TensorInfo, bytes: &[u8]) -> Option<NonFinite> {
    let dtype = tensor.dtype;
    if dtype.is_integer() || !quant::can_dequantise(dtype) {
        return None;
    }
    // Types with values per row are decoded by rows.
    let elements = match dtype.row_extra() {
        0 => AT_ONCE / dtype.block_len() * dtype.block_len(),
        _ => tensor.ne[0],
    };
    let part = usize::try_from(dtype.bytes(elements)?).ok()?;
    let mut values = vec![0.0; usize::try_from(elements).ok()?];
    let mut left = tensor.elements();
    for (i, bytes) in bytes.chunks(part).enumerate() {
        let values = &mut values[..usize::try_from(elements.min(left)).ok()?];
        left -= values.len() as u64;
        quant::dequantise(dtype, bytes, values).ok()?;
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let block = at as u64 / dtype.block_len() * dtype.block_bytes();
            return Some(NonFinite {
                tensor: tensor.name.clone(),
                element: i as u64 * elements + at as u64,
                value: values[at],
                offset: tensor.offset + (i * part) as u64 + block,
            });
        }
    }
    None
}

/// Returns the diagnostic of damaged weights, or `None` if all weights are finite.
pub fn damage(file: &GgufFile) -> Option<Diagnostic> {
    let found = non_finite(file);
    let first = found.first()?;
    let message = format!(
        "element {} of {} is {}, in the block at byte {} of the file",
        first.element,
        visible(&first.tensor),
        first.value,
        first.offset
    );
    let d = Diagnostic::new(
        &codes::NOT_FINITE,
        visible(&first.tensor).into_owned(),
        message,
    );
    let others: Vec<String> = (found.iter().skip(1).take(MAX_NAMED))
        .map(|one| visible(&one.tensor).to_string())
        .collect();
    let others = match found.len() - 1 {
        0 => String::new(),
        n if n > MAX_NAMED => format!("; {n} other tensors are damaged: {}, …", others.join(", ")),
        _ => format!("; damaged, too: {}", others.join(", ")),
    };
    Some(d.help(format!(
        "compare the file's checksum with the publisher's, and fetch the file again{others}"
    )))
}
