use std::fmt;

use serde::{Deserialize, Serialize};
use tpc_ir::RANK;

use crate::kernels::{InstanceRecord, WeightArgument};

/// The header of a dump.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DumpHeader {
    /// The program that wrote the dump, with its version.
    pub producer: String,
    /// The error of the launch.
    pub fault: String,
    /// The launch.
    pub launch: LaunchRecord,
    /// The device.
    pub device: DeviceRecord,
    /// The kernel.
    pub kernel: KernelRecord,
    /// The tensors, in the order of the kernel's views.
    pub tensors: Vec<TensorRecord>,
    /// The memory of the tensors. Tensors that overlap share a region.
    pub regions: Vec<RegionRecord>,
}

/// The names of a launch, for messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchRecord {
    /// The number of the launch in its program.
    pub number: u32,
    /// The device, such as `cuda:0`.
    pub device: String,
    /// The kernel.
    pub kernel: String,
    /// The ops that the launch computes.
    pub ops: Vec<String>,
    /// The name of the first result, which may be empty.
    pub tensor: String,
    /// The first result in the IR, such as `v12`.
    pub value: String,
    /// The element type of the first result.
    pub dtype: String,
    /// The sizes of the first result.
    pub shape: [u64; RANK],
}

impl fmt::Display for LaunchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ops, word) = (
            self.ops.join("+"),
            if self.ops.len() == 1 { "op" } else { "ops" },
        );
        write!(
            f,
            "launch {} on {} (kernel {}, {word} {ops}, tensor ",
            self.number, self.device, self.kernel
        )?;
        match self.tensor.is_empty() {
            true => write!(f, "{}", self.value)?,
            false => write!(f, "`{}` ({})", self.tensor, self.value)?,
        }
        write!(f, ", {} {})", self.dtype, Sizes(&self.shape))
    }
}

/// Sizes such as `1024×3`, without ones at the end.
pub(super) struct Sizes<'a>(pub(super) &'a [u64]);

impl fmt::Display for Sizes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.0.iter().rposition(|n| *n != 1).unwrap_or(0);
        for (i, n) in self.0.iter().take(last + 1).enumerate() {
            write!(f, "{}{n}", if i == 0 { "" } else { "×" })?;
        }
        Ok(())
    }
}

/// The device of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRecord {
    /// The name of the card.
    pub name: String,
    /// The compute capability: major and minor.
    pub capability: (u32, u32),
    /// The target of NVRTC, such as `sm_90a`.
    pub target: String,
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
}

/// The kernel of a launch, with its geometry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRecord {
    /// The name of the kernel in its source.
    pub entry: String,
    /// The template instance.
    pub instance: InstanceRecord,
    /// The number of blocks along each axis.
    pub grid: [u32; 3],
    /// The number of threads per block.
    pub threads: u32,
    /// The dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// The parameters, in hexadecimal digits.
    pub params: String,
    /// The weights that are arguments of the kernel.
    #[serde(default)]
    pub weights: Vec<WeightArgument>,
}

/// The purpose of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A tensor that the kernel reads.
    Operand,
    /// A tensor that the kernel writes.
    Result,
    /// A size in axis 0, without memory.
    Size,
    /// Counters, which are zero before and after the launch.
    Counters,
    /// Partial results that blocks exchange.
    Scratch,
}

/// A view of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorRecord {
    /// The purpose.
    pub role: Role,
    /// The name of the value, which may be empty.
    pub name: String,
    /// The value in the IR, such as `v12`.
    pub value: String,
    /// The element type.
    pub dtype: String,
    /// The storage: `file`, `planes`, `terms` or `halves`.
    pub storage: String,
    /// The sizes.
    pub dims: [u64; RANK],
    /// The strides in bytes.
    pub strides: [u64; RANK],
    /// The number of the region; `None` for an empty view.
    pub region: Option<u32>,
    /// The offset of the first element in the region.
    pub offset: u64,
    /// The bytes from the first element to the end of the last.
    pub bytes: u64,
}

impl TensorRecord {
    /// Returns the name of the tensor, or the value of an unnamed tensor.
    pub fn title(&self) -> &str {
        match self.name.is_empty() {
            true => &self.value,
            false => &self.name,
        }
    }

    /// Returns the sizes, such as `1024×3`.
    pub fn sizes(&self) -> String {
        Sizes(&self.dims).to_string()
    }
}

/// The kind of a region's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DumpMemory {
    /// Memory of the launch's device.
    Device,
    /// Memory of another device.
    Peer,
    /// Host memory.
    Host,
}

/// A contiguous part of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionRecord {
    /// The kind of memory.
    pub memory: DumpMemory,
    /// The size in bytes.
    pub bytes: u64,
    /// The number of bytes in the dump, from the start. Replay fills the rest with zeros.
    pub saved: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_names_kernel_op_tensor_and_shape() {
        let mut launch = LaunchRecord {
            number: 17,
            device: "cuda:1".to_owned(),
            kernel: "get_rows_Q4_0_I32_F32".to_owned(),
            ops: vec!["get_rows".to_owned()],
            tensor: "embd".to_owned(),
            value: "v12".to_owned(),
            dtype: "f32".to_owned(),
            shape: [256, 3, 1, 1],
        };
        let expected = "launch 17 on cuda:1 (kernel get_rows_Q4_0_I32_F32, op get_rows, tensor `embd` (v12), f32 256×3)";
        assert_eq!(launch.to_string(), expected);
        launch.tensor.clear();
        launch.ops.push("scale".to_owned());
        let text = launch.to_string();
        assert!(
            text.contains("ops get_rows+scale, tensor v12, f32"),
            "{text}"
        );
        assert_eq!(Sizes(&[1, 1, 1, 1]).to_string(), "1");
        assert_eq!(Sizes(&[4, 1, 2, 1]).to_string(), "4×1×2");
    }
}
