use tpc_runtime::{Data, ExecError, Tensor};

/// Returns logits as f32. Converts them in `buffer` if the executor computes in f64.
///
/// # Errors
/// Returns an error if the tensor holds integers.
pub fn as_f32<'l>(logits: &'l Tensor, buffer: &'l mut Vec<f32>) -> Result<&'l [f32], ExecError> {
    if let Data::F32(all) = logits.data() {
        return Ok(all);
    }
    buffer.clear();
    buffer.extend(logits.reals()?.iter().map(|&x| x as f32));
    Ok(buffer)
}

/// Returns the index of the largest logit; the first of equal ones.
pub(crate) fn argmax(row: &[f32]) -> u32 {
    let best = |best: (u32, f32), at: (u32, &f32)| match *at.1 > best.1 {
        true => (at.0, *at.1),
        false => best,
    };
    (0..).zip(row).fold((0, f32::NEG_INFINITY), best).0
}
