use tpc_ir::DType;

use super::{Node, Rule, equal, has_type, require};

/// The step of a window along an axis.
#[derive(Clone, Copy)]
struct Window {
    stride: u64,
    pad: u64,
    dilation: u64,
}

impl Window {
    fn read(node: &Node<'_>, [stride, pad, dilation]: [usize; 3]) -> Result<Window, String> {
        Ok(Window {
            stride: node.positive(stride, "stride")?,
            pad: node.size(pad, "padding")?,
            dilation: node.positive(dilation, "dilation")?,
        })
    }

    /// Returns the number of windows of `kernel` elements in `n` elements, as ggml counts them. Division rounds towards
    /// zero, so a kernel that exceeds the elements may have one window; kernels read zeros beyond the elements.
    fn count(self, n: u64, kernel: u64) -> Result<u64, String> {
        let wide = i128::from;
        let reach = wide(self.dilation) * (wide(kernel) - 1);
        let free = wide(n) + 2 * wide(self.pad) - reach - 1;
        let count = u64::try_from(free / wide(self.stride) + 1).ok();
        let count = count.filter(|&count| count > 0);
        count.ok_or_else(|| format!("a kernel of {kernel} exceeds {n} elements"))
    }
}

/// Returns the length of a transposed convolution of `n` elements.
const fn transposed(n: u64, stride: u64, kernel: u64) -> u64 {
    n.saturating_sub(1)
        .saturating_mul(stride)
        .saturating_add(kernel)
}

pub(super) fn conv_transpose_1d(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    let stride = node.positive(0, "stride")?;
    require(
        node.param(1) == 0 && node.param(2) == 1,
        "padding or dilation",
    )?;
    require(
        b.is_matrix() && a.ne[2] == b.ne[1] && a.ne[3] == 1,
        &format!("a kernel of {:?} does not fit {:?}", a.ne, b.ne),
    )?;
    let len = transposed(b.ne[0], stride, a.ne[0]);
    node.makes_type(DType::F32, [len, a.ne[1], b.ne[2], 1])
}

pub(super) fn conv_transpose_2d(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    let stride = node.positive(0, "stride")?;
    require(
        a.ne[3] == b.ne[2],
        &format!("a kernel of {:?} does not fit {:?}", a.ne, b.ne),
    )?;
    let len = |i: usize| transposed(b.ne[i], stride, a.ne[i]);
    node.makes_type(DType::F32, [len(0), len(1), a.ne[2], b.ne[3]])
}

pub(super) fn im2col(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    has_type(
        "the result",
        &node.result,
        &[DType::F32, DType::F16, DType::Bf16],
    )?;
    let x = Window::read(node, [0, 2, 4])?;
    let misfit = format!("a kernel of {:?} does not fit {:?}", a.ne, b.ne);
    let columns = x.count(b.ne[0], a.ne[0])?;
    if node.param(6) == 0 {
        require(a.ne[1] == b.ne[1] && b.ne[3] == 1, &misfit)?;
        return node.makes([a.ne[1].saturating_mul(a.ne[0]), columns, b.ne[2], 1]);
    }
    require(a.ne[2] == b.ne[2], &misfit)?;
    let rows = Window::read(node, [1, 3, 5])?.count(b.ne[1], a.ne[1])?;
    let width = a.ne[..3].iter().fold(1_u64, |n, &x| n.saturating_mul(x));
    node.makes([width, columns, rows, b.ne[3]])
}

/// The result has the sizes of the image; source 0 has those of `IM2COL`'s result.
pub(super) fn im2col_back(node: &Node<'_>) -> Rule {
    let (columns, kernel) = (node.source(0)?, node.source(1)?);
    let forward = Node {
        result: *columns,
        sources: &[Some(*kernel), Some(node.result)],
        ..*node
    };
    has_type("the result", &node.result, &[DType::F32])?;
    im2col(&forward)
}

pub(super) fn im2col_3d(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    has_type(
        "the result",
        &node.result,
        &[DType::F32, DType::F16, DType::Bf16],
    )?;
    let channels = node.positive(9, "IC")?;
    let [width, height, depth, _] = a.ne;
    let count = |i: usize| Window::read(node, [i, 3 + i, 6 + i])?.count(b.ne[i], a.ne[i]);
    let (columns, rows, planes) = (count(0)?, count(1)?, count(2)?);
    let batches =
        b.ne[3].checked_rem(channels) == Some(0) && a.ne[3].checked_rem(channels) == Some(0);
    require(batches, "axis 3 is not whole images")?;
    let all = [width, height, depth, channels];
    let all = all.iter().fold(1_u64, |n, &x| n.saturating_mul(x));
    let planes = planes.saturating_mul(b.ne[3] / channels);
    node.makes([all, columns, rows, planes])
}

pub(super) fn col2im_1d(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    has_type("source 0", a, &[DType::F32, DType::F16, DType::Bf16])?;
    let (stride, channels) = (node.positive(0, "stride")?, node.positive(1, "channels")?);
    let pad = node.size(2, "padding")?;
    let kernel = a.ne[0] / channels;
    require(
        a.is_matrix() && kernel > 0 && kernel * channels == a.ne[0],
        "source 0 is not whole kernels of all channels",
    )?;
    let len = transposed(a.ne[1], stride, kernel);
    let len = len.checked_sub(2 * pad).filter(|&n| n > 0);
    let len = len.ok_or("the padding leaves no result")?;
    node.makes_type(a.dtype, [len, channels, 1, 1])
}

pub(super) fn conv_2d(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    require(
        a.ne[2] == b.ne[2],
        &format!("a kernel of {:?} does not fit {:?}", a.ne, b.ne),
    )?;
    let count = |i: usize| Window::read(node, [i, 2 + i, 4 + i])?.count(b.ne[i], a.ne[i]);
    node.makes_type(b.dtype, [count(0)?, count(1)?, a.ne[3], b.ne[3]])
}

pub(super) fn conv_2d_dw(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    require(
        a.ne[2] == 1 && a.ne[3] == b.ne[2],
        &format!("a kernel of {:?} does not fit {:?}", a.ne, b.ne),
    )?;
    let count = |i: usize| Window::read(node, [i, 2 + i, 4 + i])?.count(b.ne[i], a.ne[i]);
    node.makes_type(b.dtype, [count(0)?, count(1)?, b.ne[2], b.ne[3]])
}

pub(super) fn conv_3d(node: &Node<'_>) -> Rule {
    let (a, b) = (node.source(0)?, node.source(1)?);
    let [channels, images, outputs] = [
        node.positive(9, "c")?,
        node.positive(10, "n")?,
        node.positive(11, "oc")?,
    ];
    require(
        a.ne[3] == channels * outputs && b.ne[3] == channels * images,
        &format!("a kernel of {:?} does not fit {:?}", a.ne, b.ne),
    )?;
    let count = |i: usize| Window::read(node, [i, 3 + i, 6 + i])?.count(b.ne[i], a.ne[i]);
    node.makes_type(
        DType::F32,
        [count(0)?, count(1)?, count(2)?, outputs * images],
    )
}

fn pooled(node: &Node<'_>, [kernel, stride, pad]: [usize; 3], n: u64) -> Result<u64, String> {
    let kernel = node.positive(kernel, "window")?;
    let (stride, pad) = (node.positive(stride, "stride")?, node.size(pad, "padding")?);
    let free = n.saturating_add(2 * pad).checked_sub(kernel);
    let free = free.ok_or_else(|| format!("a window of {kernel} exceeds {n} elements"))?;
    Ok(free / stride + 1)
}

fn known_pool(node: &Node<'_>) -> Rule {
    require((0..2).contains(&node.param(0)), "the function is unknown")
}

pub(super) fn pool_1d(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    known_pool(node)?;
    let n = pooled(node, [1, 2, 3], a.ne[0])?;
    node.makes_type(DType::F32, [n, a.ne[1], a.ne[2], a.ne[3]])
}

pub(super) fn pool_2d(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    known_pool(node)?;
    let (n, m) = (
        pooled(node, [1, 3, 5], a.ne[0])?,
        pooled(node, [2, 4, 6], a.ne[1])?,
    );
    node.makes_type(DType::F32, [n, m, a.ne[2], a.ne[3]])
}

pub(super) fn pool_2d_back(node: &Node<'_>) -> Rule {
    let (a, forward) = (node.source(0)?, node.source(1)?);
    known_pool(node)?;
    let (n, m) = (
        pooled(node, [1, 3, 5], forward.ne[0])?,
        pooled(node, [2, 4, 6], forward.ne[1])?,
    );
    equal("source 0", a.ne, [n, m, forward.ne[2], forward.ne[3]])?;
    node.makes_type(DType::F32, forward.ne)
}

pub(super) fn upscale(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    has_type("source 0", a, &[DType::F32])?;
    has_type("the result", &node.result, &[DType::F32])?;
    require(!a.ne.contains(&0), "source 0 is empty")?;
    require(
        (0..3).contains(&(node.param(0) & 0xff)),
        "the kind is unknown",
    )
}

pub(super) fn win_part(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    has_type("source 0", a, &[DType::F32])?;
    let width = node.positive(2, "w")?;
    let (x, y) = (node.size(0, "npx")?, node.size(1, "npy")?);
    require(
        a.ne[3] == 1 && x == a.ne[1].div_ceil(width) && y == a.ne[2].div_ceil(width),
        &format!("{x} by {y} windows of {width} do not cover {:?}", a.ne),
    )?;
    node.makes_type(DType::F32, [a.ne[0], width, width, x.saturating_mul(y)])
}

pub(super) fn win_unpart(node: &Node<'_>) -> Rule {
    let a = node.source(0)?;
    has_type("source 0", a, &[DType::F32])?;
    let width = node.positive(0, "w")?;
    let [_, w, h, _] = node.result.ne;
    let windows = w.div_ceil(width).saturating_mul(h.div_ceil(width));
    require(
        a.ne[1..] == [width, width, windows],
        &format!("windows of {:?} do not make {:?}", a.ne, node.result.ne),
    )?;
    node.makes_type(DType::F32, [a.ne[0], w, h, 1])
}
