use super::Function;
use super::call::{Array, Call};
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("pool_1d", pool_1d),
    ("pool_2d_back", pool_2d_back),
    ("upscale", upscale),
    ("pad", pad),
    ("pad_reflect_1d", pad_reflect_1d),
    ("timestep_embedding", timestep_embedding),
];

fn takes_largest(call: &Call<'_>) -> Result<bool, ExecError> {
    match call.word(0) {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(call.refused("the pool kind is unknown")),
    }
}

/// Pools a signal. Words: `kind, k, s, p`. The mean ignores the padding.
fn pool_1d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let largest = takes_largest(call)?;
    let (k, stride, pad) = (
        call.positive(1)?,
        call.positive(2)?,
        i64::from(call.word(3)),
    );
    let n = x.ne[0] as i64;
    call.filled(|[i, i1, i2, i3]| {
        let first = i * stride - pad;
        let inside = first.max(0)..(first + k).min(n);
        let count = inside.clone().count();
        let seen = inside.map(|j| x.at([j, i1, i2, i3]));
        match (largest, count) {
            (true, 0) => f32::MIN.into(),
            (true, _) => seen.fold(f64::NEG_INFINITY, f64::max),
            (false, n) => seen.sum::<f64>() / n.max(1) as f64,
        }
    })
}

/// Computes the gradient of 2D pooling. Words: `kind, k0, k1, s0, s1, p0, p1`. Sources: the gradient of the pool's
/// result, the pool's operand.
fn pool_2d_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (grad, x) = (call.array(0)?, call.array(1)?);
    let largest = takes_largest(call)?;
    let k = [call.positive(1)?, call.positive(2)?];
    let stride = [call.positive(3)?, call.positive(4)?];
    let pad = [i64::from(call.word(5)), call.word(6).into()];
    call.ensure(x.ne == call.result.dims, "operand and result sizes differ")?;
    call.ensure(
        x.ne[2..] == grad.ne[2..],
        "operand and gradient planes differ",
    )?;
    let mut out = vec![0.0; x.data.len()];
    let [w, h] = [x.ne[0] as i64, x.ne[1] as i64];
    let [gw, gh, planes, more] = grad.ne.map(|n| n as i64);
    for plane in 0..planes * more {
        let (i2, i3) = (plane % planes, plane / planes);
        let at = |x: i64, y: i64| usize::try_from((plane * h + y) * w + x).unwrap_or(0);
        for (oy, ox) in (0..gh).flat_map(|y| (0..gw).map(move |x| (y, x))) {
            let (x0, y0) = (ox * stride[0] - pad[0], oy * stride[1] - pad[1]);
            let ys = y0.max(0)..(y0 + k[1]).min(h);
            let xs = x0.max(0)..(x0 + k[0]).min(w);
            let cells = ys.flat_map(|y| xs.clone().map(move |x| (x, y)));
            let g = grad.at([ox, oy, i2, i3]);
            if largest {
                let value = |(x0, y0): (i64, i64)| x.at([x0, y0, i2, i3]);
                let best = cells.reduce(|a, b| if value(b) > value(a) { b } else { a });
                if let Some((x, y)) = best {
                    out[at(x, y)] += g;
                }
            } else {
                cells.for_each(|(x, y)| out[at(x, y)] += g / (k[0] * k[1]) as f64);
            }
        }
    }
    call.elements(out)
}

const NEAREST: i32 = 0;
const BILINEAR: i32 = 1;
const BICUBIC: i32 = 2;
const ALIGN_CORNERS: i32 = 1 << 8;
const ANTIALIAS: i32 = 1 << 9;

/// Interpolation scales, in f32 as in ggml: the rounding of an inexact scale affects which elements are read.
struct Scales {
    scale: [f32; 4],
    offset: f32,
}

impl Scales {
    fn place(&self, axis: usize, i: i64) -> f32 {
        (i as f32 + self.offset) / self.scale[axis] - self.offset
    }

    fn nearest(&self, axis: usize, i: i64) -> i64 {
        (i as f32 / self.scale[axis]) as i64
    }
}

/// Resizes an image. The word `mode` and its flags select the kernel.
fn upscale(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let mode = call.word(0);
    let mut scales = Scales {
        scale: std::array::from_fn(|i| call.result.dims[i] as f32 / x.ne[i] as f32),
        offset: 0.5,
    };
    if mode & ALIGN_CORNERS != 0 {
        scales.offset = 0.0;
        for (i, scale) in scales.scale[..2].iter_mut().enumerate() {
            if call.result.dims[i] > 1 && x.ne[i] > 1 {
                *scale = (call.result.dims[i] - 1) as f32 / (x.ne[i] - 1) as f32;
            }
        }
    }
    match (mode & 0xff, mode & ANTIALIAS != 0) {
        (NEAREST, _) => {
            call.filled(|i| x.at(std::array::from_fn(|axis| scales.nearest(axis, i[axis]))))
        }
        (BILINEAR, true) => call.filled(|i| smoothed(&x, &scales, i)),
        (BILINEAR, false) => call.filled(|i| interpolated(&x, &scales, i, &linear)),
        (BICUBIC, _) => call.filled(|i| interpolated(&x, &scales, i, &cubic)),
        _ => Err(call.refused("an unknown mode")),
    }
}

/// Function from the distance to the lower neighbour to the first neighbour and all weights along an axis.
type Kernel = dyn Fn(f64) -> (i64, Vec<f64>);

fn linear(d: f64) -> (i64, Vec<f64>) {
    (0, vec![1.0 - d, d])
}

/// Returns the weights of Keys' cubic convolution with a = −0.75.
fn cubic(d: f64) -> (i64, Vec<f64>) {
    let a = -0.75;
    let near = |x: f64| ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    (-1, vec![far(d + 1.0), near(d), near(1.0 - d), far(2.0 - d)])
}

/// Sums weighted neighbours along axes 0 and 1. Indices outside take the edge's elements.
fn interpolated(x: &Array<'_>, scales: &Scales, i: [i64; 4], kernel: &Kernel) -> f64 {
    let weights = |axis: usize| {
        let place = scales.place(axis, i[axis]);
        let below = place.floor();
        let (first, weights) = kernel(f64::from(place) - f64::from(below));
        let last = (x.ne[axis] as i64 - 1).max(0);
        let all = weights.into_iter().enumerate();
        let all = all.map(|(k, w)| ((below as i64 + first + k as i64).clamp(0, last), w));
        all.collect::<Vec<_>>()
    };
    let (across, down) = (weights(0), weights(1));
    let [i2, i3] = [scales.nearest(2, i[2]), scales.nearest(3, i[3])];
    let mut sum = 0.0;
    for (y, wy) in &down {
        for (x0, wx) in &across {
            sum += x.at([*x0, *y, i2, i3]) * wx * wy;
        }
    }
    sum
}

/// Averages with triangular weights as wide as an element of the result.
fn smoothed(x: &Array<'_>, scales: &Scales, i: [i64; 4]) -> f64 {
    let weights = |axis: usize| {
        let place = (i[axis] as f32 + scales.offset) / scales.scale[axis];
        let support = (1.0 / scales.scale[axis]).max(1.0);
        let first = ((place - support + scales.offset) as i64).max(0);
        let end = ((place + support + scales.offset) as i64).min(x.ne[axis] as i64);
        let weight = |j: i64| {
            let distance = (j as f32 - place + scales.offset) * (1.0 / support);
            f64::from((1.0 - distance.abs()).max(0.0))
        };
        (first..end).map(|j| (j, weight(j))).collect::<Vec<_>>()
    };
    let (across, down) = (weights(0), weights(1));
    let [i2, i3] = [scales.nearest(2, i[2]), scales.nearest(3, i[3])];
    let (mut sum, mut total) = (0.0, 0.0);
    for (y, wy) in &down {
        for (x0, wx) in &across {
            sum += x.at([*x0, *y, i2, i3]) * wx * wy;
            total += wx * wy;
        }
    }
    match total > 0.0 {
        true => sum / total,
        false => sum,
    }
}

/// Pads each axis. Words: per axis the numbers of elements before and after, then true for circular axes.
fn pad(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let before: [i64; 4] = std::array::from_fn(|i| call.word(2 * i).into());
    let circular = call.word(8) != 0;
    call.ensure(
        !circular || !x.ne.contains(&0),
        "an empty axis has circular padding",
    )?;
    call.filled(|i| {
        x.at(std::array::from_fn(|axis| {
            let at = i[axis] - before[axis];
            match circular {
                true => at.rem_euclid(x.ne[axis] as i64),
                false => at,
            }
        }))
    })
}

/// Pads with mirrored elements. Words: numbers of elements before and after.
fn pad_reflect_1d(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let (before, n) = (i64::from(call.word(0)), x.ne[0] as i64);
    let after = call.result.dims[0] as i64 - n - before;
    call.ensure(
        before < n && after < n && before >= 0,
        "the padding exceeds the axis",
    )?;
    call.filled(|[i, i1, i2, i3]| {
        let at = (i - before).abs();
        let at = if at >= n { 2 * (n - 1) - at } else { at };
        x.at([at, i1, i2, i3])
    })
}

/// Computes cosines, then sines, of each time step at decreasing frequencies. Words: `dim, max_period`.
fn timestep_embedding(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let x = call.array(0)?;
    let (half, period) = (call.positive(0)? / 2, call.positive(1)? as f64);
    call.filled(|[i, step, _, _]| {
        let angle = |j: i64| x.at([step, 0, 0, 0]) * (-period.ln() * j as f64 / half as f64).exp();
        match i {
            i if i < half => angle(i).cos(),
            i if i < 2 * half => angle(i - half).sin(),
            _ => 0.0,
        }
    })
}
