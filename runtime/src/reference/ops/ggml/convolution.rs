//! Convolutions, and im2col matrices that turn convolutions into products.
//!
//! Images are `[width, height, channels, batch]`, kernels `[width, height, channels in, channels out]`. With three
//! spatial axes, the depth is the third axis, and the fourth axis combines channels with the batch or the output
//! channels.

use super::Function;
use super::call::{Array, Call};
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("im2col", |call| summed(call, im2col)),
    ("im2col_back", im2col_back),
    ("im2col_3d", |call| summed(call, im2col_3d)),
    ("col2im_1d", col2im_1d),
    ("conv_2d", |call| summed(call, conv_2d)),
    ("conv_2d_dw", |call| summed(call, conv_2d_dw)),
    ("conv_3d", |call| summed(call, conv_3d)),
    ("conv_transpose_1d", |call| summed(call, conv_transpose_1d)),
    ("conv_transpose_2d", |call| summed(call, conv_transpose_2d)),
];

/// Returns the result of `f`, or zeros if the kernel or image is empty. Captured graphs omit empty sources.
fn summed(call: &Call<'_>, f: Function) -> Result<Tensor, ExecError> {
    let is_there = |position: usize| call.operand(position).is_some_and(|t| !t.is_empty());
    match is_there(0) && is_there(1) {
        true => f(call),
        false => Tensor::zeros(call.result),
    }
}

/// Parameters along two axes: `s0, s1, p0, p1, d0, d1`.
struct Plane {
    stride: [i64; 2],
    pad: [i64; 2],
    dilation: [i64; 2],
}

impl Plane {
    fn of(call: &Call<'_>, axes: usize) -> Result<Plane, ExecError> {
        // In one dimension, the words of the second axis have no effect.
        let second = |index: usize| match axes {
            2 => call.positive(index),
            _ => Ok(1),
        };
        Ok(Plane {
            stride: [call.positive(0)?, second(1)?],
            pad: [call.word(2).into(), call.word(3).into()],
            dilation: [call.positive(4)?, second(5)?],
        })
    }

    fn meets(&self, axis: usize, out: i64, kernel: i64) -> i64 {
        out * self.stride[axis] + kernel * self.dilation[axis] - self.pad[axis]
    }

    fn met(&self, axis: usize, input: i64, kernel: i64) -> Option<i64> {
        let from = input + self.pad[axis] - kernel * self.dilation[axis];
        (from % self.stride[axis] == 0).then(|| from / self.stride[axis])
    }
}

fn is_2d(call: &Call<'_>) -> bool {
    call.word(6) == 1
}

fn im2col(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (kernel, x) = (call.array(0)?.ne.map(|n| n as i64), call.array(1)?);
    let two = is_2d(call);
    let plane = Plane::of(call, if two { 2 } else { 1 })?;
    let (kw, kh) = (kernel[0].max(1), if two { kernel[1].max(1) } else { 1 });
    call.filled(|[column, ow, oh, n]| {
        let (k0, k1, channel) = (column % kw, column / kw % kh, column / (kw * kh));
        let i0 = plane.meets(0, ow, k0);
        match two {
            true => x.at([i0, plane.meets(1, oh, k1), channel, n]),
            false => x.at([i0, channel, oh, 0]),
        }
    })
}

fn im2col_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (grad, kernel) = (call.array(0)?, call.array(1)?.ne.map(|n| n as i64));
    let two = is_2d(call);
    let plane = Plane::of(call, if two { 2 } else { 1 })?;
    let (kw, kh) = (kernel[0], if two { kernel[1] } else { 1 });
    call.filled(|[i0, i1, i2, i3]| {
        let (channel, row) = if two { (i2, i1) } else { (i1, 0) };
        let mut sum = 0.0;
        for k1 in 0..kh {
            let oh = if two { plane.met(1, row, k1) } else { Some(0) };
            for k0 in 0..kw {
                let Some((ow, oh)) = plane.met(0, i0, k0).zip(oh) else {
                    continue;
                };
                let column = (channel * kh + k1) * kw + k0;
                sum += match two {
                    true => grad.at([column, ow, oh, i3]),
                    false => grad.at([column, ow, i2, 0]),
                };
            }
        }
        sum
    })
}

/// Parameters along three axes: strides, paddings, dilations.
struct Space {
    stride: [i64; 3],
    pad: [i64; 3],
    dilation: [i64; 3],
}

impl Space {
    fn of(call: &Call<'_>) -> Result<Space, ExecError> {
        Ok(Space {
            stride: [call.positive(0)?, call.positive(1)?, call.positive(2)?],
            pad: [3, 4, 5].map(|i| call.word(i).into()),
            dilation: [call.positive(6)?, call.positive(7)?, call.positive(8)?],
        })
    }

    fn meets(&self, out: [i64; 3], kernel: [i64; 3]) -> [i64; 3] {
        std::array::from_fn(|i| {
            out[i] * self.stride[i] + kernel[i] * self.dilation[i] - self.pad[i]
        })
    }
}

fn im2col_3d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (kernel, x) = (call.array(0)?.ne.map(|n| n.max(1) as i64), call.array(1)?);
    let space = Space::of(call)?;
    let channels = call.positive(9)?;
    let [kw, kh, kd, _] = kernel;
    let batch = (x.ne[3] as i64 / channels).max(1);
    let depth = (call.result.dims[3] as i64 / batch).max(1);
    call.filled(|[column, ow, oh, last]| {
        let (n, od) = (last / depth, last % depth);
        let k = [column % kw, column / kw % kh, column / (kw * kh) % kd];
        let channel = column / (kw * kh * kd);
        let [i0, i1, i2] = space.meets([ow, oh, od], k);
        x.at([i0, i1, i2, n * channels + channel])
    })
}

fn col2im_1d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let (stride, channels, pad) = (
        call.positive(0)?,
        call.positive(1)?,
        i64::from(call.word(2)),
    );
    let (k, steps) = (x.ne[0] as i64 / channels, x.ne[1] as i64);
    call.filled(|[t, channel, _, _]| {
        let place = t + pad;
        let first = ((place - k + 1).max(0) + stride - 1) / stride;
        let last = (place / stride).min(steps - 1);
        let at = |step: i64| x.at([channel * k + place - step * stride, step, 0, 0]);
        (first..=last).map(at).sum()
    })
}

fn kernel_of(a: &Array<'_>) -> [i64; 4] {
    a.ne.map(|n| n as i64)
}

fn conv_2d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, x) = (call.array(0)?, call.array(1)?);
    call.ensure(a.ne[2] == x.ne[2], "kernel and image channels differ")?;
    let plane = Plane::of(call, 2)?;
    let [kw, kh, channels, _] = kernel_of(&a);
    call.filled(|[ow, oh, oc, n]| {
        let mut sum = 0.0;
        for channel in 0..channels {
            for k1 in 0..kh {
                for k0 in 0..kw {
                    let [i0, i1] = [plane.meets(0, ow, k0), plane.meets(1, oh, k1)];
                    sum += a.at([k0, k1, channel, oc]) * x.at([i0, i1, channel, n]);
                }
            }
        }
        sum
    })
}

fn conv_2d_dw(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, x) = (call.array(0)?, call.array(1)?);
    call.ensure(a.ne[3] == x.ne[2], "kernel and image channels differ")?;
    let plane = Plane::of(call, 2)?;
    let [kw, kh, ..] = kernel_of(&a);
    call.filled(|[ow, oh, channel, n]| {
        let mut sum = 0.0;
        for k1 in 0..kh {
            for k0 in 0..kw {
                let [i0, i1] = [plane.meets(0, ow, k0), plane.meets(1, oh, k1)];
                sum += a.at([k0, k1, 0, channel]) * x.at([i0, i1, channel, n]);
            }
        }
        sum
    })
}

fn conv_3d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, x) = (call.array(0)?, call.array(1)?);
    let space = Space::of(call)?;
    let (channels, out) = (call.positive(9)?, call.positive(11)?);
    let [kw, kh, kd, _] = kernel_of(&a);
    call.filled(|[ow, oh, od, last]| {
        let (n, oc) = (last / out, last % out);
        let mut sum = 0.0;
        for channel in 0..channels {
            for k2 in 0..kd {
                for k1 in 0..kh {
                    for k0 in 0..kw {
                        let [i0, i1, i2] = space.meets([ow, oh, od], [k0, k1, k2]);
                        let weight = a.at([k0, k1, k2, oc * channels + channel]);
                        sum += weight * x.at([i0, i1, i2, n * channels + channel]);
                    }
                }
            }
        }
        sum
    })
}

/// Computes a transposed convolution of a signal `[n, channels in]` with a kernel `[k, channels out, channels in]`.
fn conv_transpose_1d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, x) = (call.array(0)?, call.array(1)?);
    let stride = call.positive(0)?;
    let [k, _, channels, _] = kernel_of(&a);
    call.filled(|[i, oc, i2, _]| {
        let mut sum = 0.0;
        for tap in (0..k).filter(|tap| (i - tap) % stride == 0) {
            let from = (i - tap) / stride;
            sum += (0..channels)
                .map(|c| a.at([tap, oc, c, 0]) * x.at([from, c, i2, 0]))
                .sum::<f64>();
        }
        sum
    })
}

/// Computes a transposed convolution of an image with a kernel `[width, height, channels out, channels in]`.
fn conv_transpose_2d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, x) = (call.array(0)?, call.array(1)?);
    let stride = call.positive(0)?;
    let [kw, kh, _, channels] = kernel_of(&a);
    call.filled(|[i0, i1, oc, n]| {
        let mut sum = 0.0;
        for k1 in (0..kh).filter(|k| (i1 - k) % stride == 0) {
            for k0 in (0..kw).filter(|k| (i0 - k) % stride == 0) {
                let from = [(i0 - k0) / stride, (i1 - k1) / stride];
                sum += (0..channels)
                    .map(|c| a.at([k0, k1, oc, c]) * x.at([from[0], from[1], c, n]))
                    .sum::<f64>();
            }
        }
        sum
    })
}
