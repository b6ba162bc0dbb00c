use super::Function;
use super::call::Call;
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("win_part", win_part),
    ("win_unpart", win_unpart),
    ("get_rel_pos", get_rel_pos),
    ("add_rel_pos", add_rel_pos),
];

/// Divides `[channels, width, height]` into windows `[channels, w, w, windows]`; elements outside the image are zero.
/// Words: windows across, windows down, window width.
fn win_part(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let (across, width) = (call.positive(0)?, call.positive(2)?);
    call.filled(|[channel, i1, i2, window]| {
        let (px, py) = (window % across, window / across);
        x.at([channel, px * width + i1, py * width + i2, 0])
    })
}

/// Inverts [`win_part`]. Word: window width.
fn win_unpart(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let width = call.positive(0)?;
    let across = (call.result.dims[1] as i64 + width - 1) / width;
    call.filled(|[channel, i1, i2, _]| {
        let window = i2 / width * across + i1 / width;
        x.at([channel, i1 % width, i2 % width, window])
    })
}

fn get_rel_pos(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let width = call.result.dims[1] as i64;
    call.filled(|[i, k, q, _]| x.at([i, width - k - 1 + q, 0, 0]))
}

/// Adds relative position terms to scores `[kw·kh, qw·qh, heads]`. Each query has terms `w` and `h: [k, qw, qh, heads]`
/// for the key's column and row.
fn add_rel_pos(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (x, w, h) = (call.array(0)?, call.array(1)?, call.array(2)?);
    let [k, qw, ..] = w.ne.map(|n| n.max(1) as i64);
    call.filled(|[key, query, head, i3]| {
        let at = |i: i64| [i, query % qw, query / qw, head];
        x.at([key, query, head, i3]) + w.at(at(key / k)) + h.at(at(key % k))
    })
}
