use std::collections::BTreeSet;
use std::ops::Range;

use tpc_ir::DType;

use super::forms::Form;
use super::request::{ExpectedTensor, Request, TensorSource};
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;
use crate::summary::IgnoredDrafts;
use tpc_gguf::{Header, TensorInfo, TensorName};

/// A file's tensors, with marks for used and ignored tensors.
pub(crate) struct FileTensors<'a> {
    header: &'a Header,
    arch: &'static str,
    used: BTreeSet<String>,
    ignored: BTreeSet<String>,
}

impl<'a> FileTensors<'a> {
    pub(crate) fn new(header: &'a Header, arch: &'static str) -> FileTensors<'a> {
        FileTensors {
            header,
            arch,
            used: BTreeSet::new(),
            ignored: BTreeSet::new(),
        }
    }

    /// Returns the tensors that are neither used nor ignored, in file order.
    pub(crate) fn unused_tensors(&self) -> Vec<String> {
        let names = self.header.tensors().iter().map(|t| &t.name);
        let known = |n: &String| self.used.contains(n) || self.ignored.contains(n);
        names.filter(|&n| !known(n)).cloned().collect()
    }

    pub(crate) fn ignored_tensors(&self) -> Vec<String> {
        let names = self.header.tensors().iter().map(|t| &t.name);
        let ignored = |n: &String| self.ignored.contains(n) && !self.used.contains(n);
        names.filter(|&n| ignored(n)).cloned().collect()
    }

    /// Ignores these draft blocks' tensors. Returns `None` if the file lacks the blocks.
    pub(crate) fn ignore_drafts(&mut self, blocks: Range<usize>) -> Option<IgnoredDrafts> {
        let tensors = self.header.tensors().iter();
        let ignored = |t: &&TensorInfo| block_index(&t.name).is_some_and(|il| blocks.contains(&il));
        let ignored: Vec<&TensorInfo> = tensors.filter(ignored).collect();
        self.ignored.extend(ignored.iter().map(|t| t.name.clone()));
        (!ignored.is_empty()).then(|| IgnoredDrafts {
            blocks: blocks.len() as u64,
            bytes: ignored.iter().fold(0, |sum, t| sum.saturating_add(t.bytes)),
        })
    }

    /// True if the file has a tensor of block `index`.
    pub(crate) fn has_block(&self, index: u32) -> bool {
        let mut tensors = self.header.tensors().iter();
        tensors.any(|t| block_index(&t.name) == usize::try_from(index).ok())
    }

    /// True if the file has one tensor per expert instead of the tensor `name`.
    fn has_split_experts(&self, name: &str) -> bool {
        name.strip_suffix("_exps.weight")
            .is_some_and(|matrix| self.header.tensor(&format!("{matrix}.0.weight")).is_some())
    }

    /// Checks a tensor's shape. The error is [`ArchError::WrongShape`].
    fn check_shape(
        &self,
        found: &TensorInfo,
        expected: [u64; 4],
        sizes: &[Size],
    ) -> Result<(), ArchError> {
        let Some(axis) = (0..4).find(|&a| found.ne[a] != expected[a]) else {
            return Ok(());
        };
        let meaning = match sizes.get(axis) {
            Some(size) => format!("{} of {}", size.from, self.arch),
            None => "not used".to_owned(),
        };
        Err(ArchError::WrongShape {
            name: found.name.clone(),
            found: found.ne,
            expected,
            axis,
            meaning,
        })
    }
}

fn block_index(name: &str) -> Option<usize> {
    let (layer, _) = TensorName::parse(name).block()?;
    Some(layer as usize)
}

impl TensorSource for FileTensors<'_> {
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError> {
        let ExpectedTensor {
            name,
            ne,
            presence,
            role,
        } = request.tensor;
        let Some(found) = self.header.tensor(&name) else {
            return match presence {
                Presence::Required => Err(ArchError::MissingTensor {
                    split_experts: self.has_split_experts(&name),
                    name,
                    expected: ne,
                }),
                Presence::Absent | Presence::Optional => Ok(None),
            };
        };
        self.check_shape(found, ne, request.sizes)?;
        let dtype = found.dtype;
        let quantised = role.may_be_quantised();
        let fits = match role.is_integer() {
            true => dtype == DType::I32,
            false => !dtype.is_integer() && (quantised || !dtype.is_quantised()),
        };
        if !fits {
            return Err(ArchError::WrongElements {
                name,
                found: dtype,
                expected: match (role.is_integer(), quantised) {
                    (true, _) => "32-bit integers",
                    (false, true) => "real numbers",
                    (false, false) => "real numbers that are not quantised",
                },
            });
        }
        self.used.insert(name);
        Ok(Some(dtype))
    }

    fn offers(&self, name: &str, _: Form) -> bool {
        self.header.tensor(name).is_some()
    }

    fn columns(&self, name: &str) -> Option<u64> {
        self.header.tensor(name).map(|t| t.ne[1])
    }

    fn ignore(&mut self, name: &str) {
        if self.header.tensor(name).is_some() {
            self.ignored.insert(name.to_owned());
        }
    }
}
