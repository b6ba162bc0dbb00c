use tpc_cpu::View as HostView;
use tpc_ir::program::BatchLayout;
use tpc_ir::{DType, RANK};
use tpc_runtime::ExecError;

use crate::kernels::{Halves, Terms};

/// A view as kernels read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceView {
    pub(super) address: u64,
    pub(super) dtype: DType,
    at: BatchLayout,
}

impl DeviceView {
    /// An address, four 32-bit sizes, and four 64-bit strides.
    pub(super) const BYTES: usize = 8 + RANK * 4 + RANK * 8;

    pub(super) fn none(dtype: DType) -> DeviceView {
        DeviceView {
            address: 0,
            dtype,
            at: BatchLayout::default(),
        }
    }

    pub(super) fn empty_at(self, address: u64) -> DeviceView {
        DeviceView {
            address,
            ..DeviceView::none(self.dtype)
        }
    }

    /// Returns a view that only passes a size.
    pub(super) fn of_size(self, size: u64) -> DeviceView {
        let mut view = DeviceView::none(self.dtype);
        view.at.dims[0] = size;
        view
    }

    pub(super) fn new(arena: u64, dtype: DType, at: &BatchLayout) -> DeviceView {
        DeviceView {
            address: arena.wrapping_add(at.offset),
            dtype,
            at: *at,
        }
    }

    pub(super) fn on_host(&self) -> HostView {
        let at = BatchLayout {
            offset: 0,
            ..self.at
        };
        HostView::located(self.address as *mut u8, self.dtype, &at)
    }

    pub(super) fn dense(&self, address: u64) -> DeviceView {
        let [n, n1, n2, _] = self.at.dims;
        let row = self.dtype.bytes(n).unwrap_or(0);
        let strides = [self.dtype.block_bytes(), row, row * n1, row * n1 * n2];
        DeviceView {
            address,
            at: BatchLayout { strides, ..self.at },
            ..*self
        }
    }

    /// Returns a view of the int8 terms of these elements at another address.
    pub(super) fn terms(&self, address: u64) -> DeviceView {
        self.columns(address, 4, Terms::of(self.at.dims[0] as usize).column)
    }

    /// Returns a view of these elements as f16 at another address.
    pub(super) fn halves(&self, address: u64) -> DeviceView {
        self.columns(address, 2, Halves::of(self.at.dims[0] as usize).column)
    }

    fn columns(&self, address: u64, element: u64, column: usize) -> DeviceView {
        let ([_, n1, n2, _], column) = (self.at.dims, column as u64);
        let strides = [element, column, column * n1, column * n1 * n2];
        DeviceView {
            address,
            at: BatchLayout { strides, ..self.at },
            ..*self
        }
    }

    pub(super) fn sizes(&self) -> [usize; RANK] {
        self.at.dims.map(|n| n as usize)
    }

    pub(super) fn dense_bytes(&self) -> usize {
        let [n, rest @ ..] = self.sizes();
        let row = self.dtype.bytes(n as u64).unwrap_or(0) as usize;
        row * rest.iter().product::<usize>()
    }

    /// Returns the bytes from the first element to the end of the last.
    pub(super) fn reach(&self) -> usize {
        let sizes = self.sizes();
        if sizes.contains(&0) {
            return 0;
        }
        let blocks = sizes[0].div_ceil(self.dtype.block_len() as usize);
        let counts = [blocks, sizes[1], sizes[2], sizes[3]];
        let ends = counts.iter().zip(self.at.strides);
        let last: usize = ends.map(|(n, stride)| (n - 1) * stride as usize).sum();
        last + self.dtype.block_bytes() as usize
    }

    /// Returns the view as kernels read it.
    pub(super) fn encoded(&self) -> Result<[u8; DeviceView::BYTES], ExecError> {
        let mut out = [0; DeviceView::BYTES];
        out[..8].copy_from_slice(&self.address.to_ne_bytes());
        let (dims, strides) = out[8..].split_at_mut(RANK * 4);
        for (to, n) in dims.chunks_exact_mut(4).zip(self.at.dims) {
            let n = u32::try_from(n).map_err(|_| ExecError::Size {
                what: format!("{n} of a view (above 32 bits)"),
            })?;
            to.copy_from_slice(&n.to_ne_bytes());
        }
        for (to, bytes) in strides.chunks_exact_mut(8).zip(self.at.strides) {
            to.copy_from_slice(&bytes.to_ne_bytes());
        }
        Ok(out)
    }
}
