//! Where a lowering finds tensors: a file that has them, or a recorder that notes which are wanted.
//!
//! The lowering cannot tell the two apart, so what [`expected_tensors`](super::expected_tensors) lists is what
//! [`lower`](super::lower) asks for, by construction.

use std::collections::BTreeSet;
use std::ops::Range;

use tpc_ir::DType;

use super::DraftsAside;
use super::description::Presence;
use super::error::ArchError;
use tpc_gguf::{Header, TensorInfo};

/// A size and the metadata keys that decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) n: u64,
    pub(crate) from: &'static str,
}

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorRole {
    /// Rows looked up by token or position.
    Embedding,
    /// The projection to logits.
    Output,
    /// A matrix that activations are multiplied by.
    Matrix,
    /// A matrix per expert.
    Experts,
    /// The matrix that chooses experts.
    Router,
    /// The weight of a norm: about 1.
    NormWeight,
    /// A factor on activations: about 1.
    Scale,
    /// The taps of a convolution along time, a row per channel.
    Taps,
    /// Minus the rate at which a recurrent state decays, per head.
    Decay,
    /// A bias: about 0.
    Bias,
    /// Factors by which rotary frequencies are divided: 1 or more.
    RopeFactors,
    /// Attention sinks, a logit per head.
    Sinks,
}

/// A tensor that a lowering asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTensor {
    /// Its name in the file.
    pub name: String,
    /// Elements along each axis, in ggml order.
    pub ne: [u64; 4],
    /// What it is for.
    pub role: TensorRole,
    /// Whether the model can do without.
    pub presence: Presence,
}

/// A request for a tensor.
pub(crate) struct Request<'a> {
    pub(crate) tensor: ExpectedTensor,
    /// What decides each axis.
    pub(crate) sizes: &'a [Size],
}

/// Whether a form of several is the one that files usually have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Usual,
    Unusual,
}

/// The form in which to expect weights that files hold in one of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightForms {
    /// The architecture's usual one.
    #[default]
    Usual,
    /// `attn_qkv`, `ffn_gate_up_exps`: several matrices in one.
    Fused,
    /// `attn_q`, `ffn_gate`: each matrix by itself.
    Separate,
}

impl WeightForms {
    /// Whether to expect the tensor of that name, which belongs to one of several forms.
    fn has(self, name: &str, form: Form) -> bool {
        let is = |stem: &str| name.ends_with(stem);
        let fused = is(".attn_qkv.weight") || is(".ffn_gate_up_exps.weight");
        let separate = is(".attn_q.weight") || is(".ffn_gate.weight");
        match self {
            WeightForms::Fused if fused || separate => fused,
            WeightForms::Separate if fused || separate => separate,
            WeightForms::Usual | WeightForms::Fused | WeightForms::Separate => form == Form::Usual,
        }
    }
}

/// Answers requests.
pub(crate) trait TensorSource {
    /// The element type of the tensor, or `None` where an optional one is absent.
    ///
    /// # Errors
    /// A required tensor is absent, or one has another shape than requested.
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError>;

    /// Whether to ask for a tensor of that name, which belongs to one of several forms.
    fn offers(&self, name: &str, form: Form) -> bool;

    /// Notes that a tensor, if it is there, is known and not used.
    fn leave_aside(&mut self, name: &str);
}

/// The tensors of a file.
pub(crate) struct FileTensors<'a> {
    header: &'a Header,
    arch: &'static str,
    used: BTreeSet<String>,
    aside: BTreeSet<String>,
}

impl<'a> FileTensors<'a> {
    pub(crate) fn new(header: &'a Header, arch: &'static str) -> FileTensors<'a> {
        FileTensors {
            header,
            arch,
            used: BTreeSet::new(),
            aside: BTreeSet::new(),
        }
    }

    /// The tensors that nothing is known of, in file order.
    pub(crate) fn unused(&self) -> Vec<String> {
        let names = self.header.tensors().iter().map(|t| &t.name);
        let known = |n: &String| self.used.contains(n) || self.aside.contains(n);
        names.filter(|&n| !known(n)).cloned().collect()
    }

    /// The tensors that are known and not used, in file order.
    pub(crate) fn aside(&self) -> Vec<String> {
        let names = self.header.tensors().iter().map(|t| &t.name);
        let left = |n: &String| self.aside.contains(n) && !self.used.contains(n);
        names.filter(|&n| left(n)).cloned().collect()
    }

    /// Leaves aside the tensors of some blocks, where there are any: how large they are.
    pub(crate) fn leave_blocks_aside(&mut self, blocks: Range<usize>) -> Option<DraftsAside> {
        let tensors = self.header.tensors().iter();
        let left = |t: &&TensorInfo| block(&t.name).is_some_and(|il| blocks.contains(&il));
        let left: Vec<&TensorInfo> = tensors.filter(left).collect();
        self.aside.extend(left.iter().map(|t| t.name.clone()));
        (!left.is_empty()).then(|| DraftsAside {
            blocks: blocks.len() as u64,
            bytes: left.iter().fold(0, |sum, t| sum.saturating_add(t.bytes)),
        })
    }

    /// Whether there is a tensor of that block.
    pub(crate) fn has_block(&self, index: u32) -> bool {
        let mut tensors = self.header.tensors().iter();
        tensors.any(|t| block(&t.name) == usize::try_from(index).ok())
    }

    /// Whether the experts that a request is for are there one by one.
    fn has_split_experts(&self, name: &str) -> bool {
        name.strip_suffix("_exps.weight")
            .is_some_and(|stem| self.header.tensor(&format!("{stem}.0.weight")).is_some())
    }
}

/// The block that a tensor belongs to.
fn block(name: &str) -> Option<usize> {
    let (number, _) = name.strip_prefix("blk.")?.split_once('.')?;
    number.parse().ok()
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
        if let Some(axis) = (0..4).find(|&a| found.ne[a] != ne[a]) {
            let meaning = match request.sizes.get(axis) {
                Some(size) => format!("{} of {}", size.from, self.arch),
                None => "not used".to_owned(),
            };
            return Err(ArchError::WrongShape {
                name,
                found: found.ne,
                expected: ne,
                axis,
                meaning,
            });
        }
        let blocks = match role {
            TensorRole::Embedding
            | TensorRole::Output
            | TensorRole::Matrix
            | TensorRole::Experts
            | TensorRole::Router => true,
            TensorRole::NormWeight
            | TensorRole::Taps
            | TensorRole::Decay
            | TensorRole::Scale
            | TensorRole::Bias
            | TensorRole::RopeFactors
            | TensorRole::Sinks => false,
        };
        if found.dtype.is_integer() || (found.dtype.is_quantised() && !blocks) {
            return Err(ArchError::WrongElements {
                name,
                found: found.dtype,
                expected: if blocks {
                    "real numbers"
                } else {
                    "real numbers that are not quantised"
                },
            });
        }
        self.used.insert(name);
        Ok(Some(found.dtype))
    }

    fn offers(&self, name: &str, _: Form) -> bool {
        self.header.tensor(name).is_some()
    }

    fn leave_aside(&mut self, name: &str) {
        if self.header.tensor(name).is_some() {
            self.aside.insert(name.to_owned());
        }
    }
}

/// Has every tensor, or every one that is kept, and notes which were asked for.
pub(crate) struct Recorder<'a> {
    forms: WeightForms,
    keep: &'a dyn Fn(&ExpectedTensor) -> bool,
    tensors: Vec<ExpectedTensor>,
}

impl<'a> Recorder<'a> {
    /// A recorder that has weights in these forms, and those optional tensors of which `keep` says so.
    pub(crate) fn new(
        forms: WeightForms,
        keep: &'a dyn Fn(&ExpectedTensor) -> bool,
    ) -> Recorder<'a> {
        Recorder {
            forms,
            keep,
            tensors: Vec::new(),
        }
    }

    /// What was asked for and kept, in order.
    pub(crate) fn into_tensors(self) -> Vec<ExpectedTensor> {
        self.tensors
    }
}

impl TensorSource for Recorder<'_> {
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError> {
        let tensor = request.tensor;
        let kept = match tensor.presence {
            Presence::Absent => false,
            Presence::Optional => (self.keep)(&tensor),
            Presence::Required => true,
        };
        if !kept {
            return Ok(None);
        }
        self.tensors.push(tensor);
        Ok(Some(DType::F32))
    }

    fn offers(&self, name: &str, form: Form) -> bool {
        self.forms.has(name, form)
    }

    fn leave_aside(&mut self, _: &str) {}
}
