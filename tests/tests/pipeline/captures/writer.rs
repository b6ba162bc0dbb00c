//! Writes graphs as an engine would capture them: sizes are numbers, layouts are views, states are written in place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tpc_ir::op::{GluKind, NormKind, RopeMode, SortOrder};
use tpc_ir::{Bindings, DType, Dim, Graph, Inst, Op, Output, RANK, Value};

#[derive(Clone, Copy, Debug)]
pub(super) struct Tensor {
    /// The line number, from 0.
    pub(super) id: usize,
    /// The line of the tensor that owns the memory.
    pub(super) root: usize,
    pub(super) dtype: DType,
    pub(super) ne: [u64; RANK],
    pub(super) nb: [u64; RANK],
    pub(super) offset: u64,
}

fn packed(dtype: DType, ne: [u64; RANK]) -> [u64; RANK] {
    let mut nb = [dtype.block_bytes(); RANK];
    nb[1] = ne[0] / dtype.block_len() * dtype.block_bytes();
    for i in 2..RANK {
        nb[i] = nb[i - 1] * ne[i - 1];
    }
    nb
}

impl Tensor {
    fn is_packed(&self) -> bool {
        self.nb == packed(self.dtype, self.ne)
    }

    /// Returns the distance in bytes between indices along an axis of `n` indices.
    fn step(&self, axis: usize, n: u64) -> u64 {
        if axis == 0 {
            assert!(n.is_multiple_of(self.dtype.block_len()), "whole blocks");
            n / self.dtype.block_len() * self.nb[0]
        } else {
            n * self.nb[axis]
        }
    }
}

#[derive(Default)]
pub(super) struct Writer {
    pub(super) text: String,
    next: usize,
    /// The parameters in the next line.
    pub(super) params: Vec<u32>,
    /// The flags of the next line: 1 for an input, 2 for an output.
    pub(super) flags: u64,
    /// The tensor name in the next line.
    pub(super) name: Option<String>,
}

impl Writer {
    fn line(&mut self, op: &str, src: &[Tensor], view: bool, mut t: Tensor) -> Tensor {
        t.id = self.next;
        self.next += 1;
        if !view {
            (t.root, t.offset, t.nb) = (t.id, 0, packed(t.dtype, t.ne));
        }
        let src: Vec<usize> = src.iter().map(|s| s.id).collect();
        let name = self.name.take().unwrap_or_else(|| format!("t{}", t.id));
        let view: i64 = if view { t.root as i64 } else { -1 };
        writeln!(
            self.text,
            "{{\"id\":{},\"name\":{name:?},\"op\":\"{op}\",\"type\":\"{}\",\"ne\":{:?},\"nb\":{:?},\"params\":{:?},\
             \"src\":{src:?},\"view\":{view},\"view_offs\":{},\"flags\":{}}}",
            t.id,
            t.dtype.name(),
            t.ne,
            t.nb,
            std::mem::take(&mut self.params),
            t.offset,
            std::mem::take(&mut self.flags),
        )
        .expect("text grows");
        t
    }

    fn of(dtype: DType, ne: [u64; RANK]) -> Tensor {
        Tensor {
            id: 0,
            root: 0,
            dtype,
            ne,
            nb: packed(dtype, ne),
            offset: 0,
        }
    }

    pub(super) fn leaf(&mut self, dtype: DType, ne: [u64; RANK]) -> Tensor {
        self.line("NONE", &[], false, Writer::of(dtype, ne))
    }

    /// Appends an f32 tensor with its own memory.
    pub(super) fn op(&mut self, op: &str, ne: [u64; RANK], src: &[Tensor]) -> Tensor {
        self.typed(op, DType::F32, ne, src)
    }

    pub(super) fn typed(
        &mut self,
        op: &str,
        dtype: DType,
        ne: [u64; RANK],
        src: &[Tensor],
    ) -> Tensor {
        self.line(op, src, false, Writer::of(dtype, ne))
    }

    /// Writes a view at byte `at` of another tensor's memory.
    pub(super) fn view(
        &mut self,
        op: &str,
        of: Tensor,
        ne: [u64; RANK],
        nb: [u64; RANK],
        at: u64,
    ) -> Tensor {
        let offset = of.offset + at;
        self.line(
            op,
            &[of],
            true,
            Tensor {
                ne,
                nb,
                offset,
                ..of
            },
        )
    }

    pub(super) fn write(&mut self, op: &str, src: &[Tensor], to: Tensor) -> Tensor {
        self.line(op, src, true, to)
    }

    /// Reshapes a packed tensor by a view, other tensors by a copy.
    pub(super) fn reshape(&mut self, t: Tensor, ne: [u64; RANK]) -> Tensor {
        if t.is_packed() {
            self.view("RESHAPE", t, ne, packed(t.dtype, ne), 0)
        } else {
            self.typed("CONT", t.dtype, ne, &[t])
        }
    }

    pub(super) fn slice(&mut self, t: Tensor, axis: usize, start: u64, len: u64) -> Tensor {
        let mut ne = t.ne;
        ne[axis] = len;
        let at = t.step(axis, start);
        self.view("VIEW", t, ne, t.nb, at)
    }

    pub(super) fn permute(&mut self, t: Tensor, axes: [u64; RANK]) -> Tensor {
        let (mut ne, mut nb) = (t.ne, t.nb);
        for (from, &to) in axes.iter().enumerate() {
            ne[to as usize] = t.ne[from];
            nb[to as usize] = t.nb[from];
        }
        self.params = axes.iter().map(|&a| a as u32).collect();
        self.view("PERMUTE", t, ne, nb, 0)
    }
}

fn bits(x: f32) -> u32 {
    x.to_bits()
}

struct Capture<'g> {
    graph: &'g Graph,
    bindings: Bindings,
    w: Writer,
    made: BTreeMap<Value, Tensor>,
    named: BTreeSet<Value>,
    last_use: BTreeMap<Value, Inst>,
}

/// Returns the capture of a host graph for these batch sizes.
///
/// # Panics
/// Panics if the graph reads an overwritten state, or has an op of sharded graphs.
pub(super) fn capture(graph: &Graph, bindings: Bindings) -> String {
    let named = graph.outputs.iter().filter_map(|o| match o {
        Output::Named(_, v) => Some(*v),
        Output::State { .. } => None,
    });
    let mut last_use = BTreeMap::new();
    for (inst, data) in graph.insts() {
        last_use.extend(data.operands.iter().map(|v| (*v, inst)));
    }
    let mut c = Capture {
        graph,
        bindings,
        w: Writer::default(),
        made: BTreeMap::new(),
        named: named.collect(),
        last_use,
    };
    for (inst, _) in graph.insts() {
        c.inst(inst);
    }
    for output in &graph.outputs {
        if let Output::State { state, value } = output {
            let (to, from) = (c.made[state], c.made[value]);
            if from.root != to.root {
                c.w.write("CPY", &[from, to], to);
            }
        }
    }
    c.w.text
}

impl Capture<'_> {
    fn eval(&self, d: &Dim) -> u64 {
        d.eval(&self.bindings).expect("sizes are small")
    }

    fn ne(&self, v: Value) -> [u64; RANK] {
        std::array::from_fn(|i| self.eval(&self.graph.value(v).ty.dims[i]))
    }

    /// Returns the memory that an op changes. No later op may read the old content.
    fn overwritten(&self, inst: Inst) -> Tensor {
        let old = self.graph.inst(inst).operands[0];
        assert_eq!(
            self.last_use[&old], inst,
            "a state is read after it changed"
        );
        self.made[&old]
    }

    fn inst(&mut self, inst: Inst) {
        let data = self.graph.inst(inst);
        let result = data.results[0];
        let ne = self.ne(result);
        let dtype = self.graph.value(result).ty.dtype;
        let src: Vec<Tensor> = data.operands.iter().map(|v| self.made[v]).collect();
        self.w.name = Some(self.graph.value(result).name.clone());
        self.w.flags = if self.named.contains(&result) { 2 } else { 0 };
        let w = &mut self.w;
        let made = match &data.op {
            Op::Weight(_) | Op::State(_) => w.leaf(dtype, ne),
            Op::Input(_) => {
                w.flags = 1;
                w.leaf(dtype, ne)
            }
            Op::Reshape(_) => w.reshape(src[0], ne),
            Op::Permute(p) => w.permute(src[0], p.axes),
            Op::Slice(s) => {
                let (start, len) = (s.start.eval(&self.bindings), s.len.eval(&self.bindings));
                let small = "sizes are small";
                w.slice(
                    src[0],
                    s.axis as usize,
                    start.expect(small),
                    len.expect(small),
                )
            }
            Op::Concat(c) => {
                let axis = c.axis as usize;
                let mut all = src[0];
                for &part in &src[1..] {
                    let mut ne = all.ne;
                    ne[axis] += part.ne[axis];
                    w.params = vec![axis as u32];
                    all = w.typed("CONCAT", dtype, ne, &[all, part]);
                }
                all
            }
            Op::Sum(s) if s.axis != 0 => {
                let axis = s.axis as usize;
                let mut sum = w.slice(src[0], axis, 0, 1);
                for i in 1..src[0].ne[axis] {
                    let next = w.slice(src[0], axis, i, 1);
                    sum = w.op("ADD", ne, &[sum, next]);
                }
                sum
            }
            Op::TopK(_) => {
                w.params = vec![1];
                let sorted = w.typed("ARGSORT", dtype, src[0].ne, &src);
                w.slice(sorted, 0, 0, ne[0])
            }
            Op::SetRows(s) => {
                let axis = s.axis as usize;
                let to = self.overwritten(inst);
                let w = &mut self.w;
                let flat = |t: Tensor| {
                    let row: u64 = t.ne[..axis].iter().product();
                    [row, t.ne[axis], t.ne[axis + 1..].iter().product(), 1]
                };
                let (rows, target) = (w.reshape(src[1], flat(src[1])), w.reshape(to, flat(to)));
                w.write("SET_ROWS", &[rows, src[2], target], target);
                w.reshape(to, ne)
            }
            Op::SetSlice(s) => {
                let (axis, start) = (s.axis as usize, self.eval(&s.start));
                let to = self.overwritten(inst);
                let w = &mut self.w;
                let part = w.slice(to, axis, start, src[1].ne[axis]);
                w.write("CPY", &[src[1], part], part);
                w.reshape(to, ne)
            }
            Op::SsmScan(_) | Op::GatedDeltaNet(_) => {
                let name = if matches!(data.op, Op::SsmScan(_)) {
                    "SSM_SCAN"
                } else {
                    "GATED_DELTA_NET"
                };
                let parts: Vec<[u64; RANK]> = data.results.iter().map(|&v| self.ne(v)).collect();
                let total: u64 = parts.iter().map(|ne| ne.iter().product::<u64>()).sum();
                let w = &mut self.w;
                let all = w.op(name, [total, 1, 1, 1], &src);
                let mut at = 0;
                for (&v, ne) in data.results.iter().zip(parts) {
                    let view = w.view("VIEW", all, ne, packed(dtype, ne), at);
                    at += ne.iter().product::<u64>() * dtype.block_bytes();
                    self.made.insert(v, view);
                }
                return;
            }
            op => {
                let (name, params) = plain(op);
                w.params = params;
                w.typed(&name, dtype, ne, &src)
            }
        };
        self.made.insert(result, made);
    }
}

/// Returns an op's ggml name and parameters, if ggml's op has the same operands and one packed result.
fn plain(op: &Op) -> (String, Vec<u32>) {
    // The IR has ggml's names in lower case.
    let upper = op.name().to_uppercase();
    let (name, params) = match op {
        Op::Unary(_)
        | Op::Binary(_)
        | Op::MulMat(_)
        | Op::MulMatId(_)
        | Op::AddId(_)
        | Op::GetRows(_)
        | Op::SsmConv(_)
        | Op::Repeat(_) => (upper.as_str(), Vec::new()),
        Op::Scale(s) => ("SCALE", vec![bits(s.scale), bits(s.bias)]),
        Op::Clamp(c) => ("CLAMP", vec![bits(c.min), bits(c.max)]),
        Op::Glu(g) => {
            let kind = GluKind::ALL.iter().position(|&k| k == g.kind);
            let kind = kind.expect("every kind is listed") as u32;
            (upper.as_str(), vec![kind, 0, bits(g.alpha), bits(g.limit)])
        }
        Op::Norm(n) => {
            let name = match n.kind {
                NormKind::Rms => "RMS_NORM",
                NormKind::Layer => "NORM",
                NormKind::L2 => "L2_NORM",
            };
            (name, vec![bits(n.eps)])
        }
        Op::Rope(r) => {
            let (mode, sections) = match r.mode {
                RopeMode::Norm => (0, [0; 4]),
                RopeMode::Neox => (2, [0; 4]),
                RopeMode::Mrope { sections } => (8, sections),
                RopeMode::Imrope { sections } => (40, sections),
            };
            let mut params = vec![0, r.n_dims as u32, mode, 0, r.n_ctx_orig as u32];
            let reals = [
                r.freq_base,
                r.freq_scale,
                r.ext_factor,
                r.attn_factor,
                r.beta_fast,
                r.beta_slow,
            ];
            params.extend(reals.map(bits));
            params.extend(sections.map(|n| n as u32));
            ("ROPE", params)
        }
        Op::SoftMax(s) => ("SOFT_MAX", vec![bits(s.scale), bits(s.max_bias)]),
        Op::FlashAttn(f) => {
            let params = [f.scale, f.max_bias, f.softcap].map(bits);
            ("FLASH_ATTN_EXT", params.to_vec())
        }
        Op::Sum(_) => ("SUM_ROWS", Vec::new()),
        Op::ArgSort(a) => ("ARGSORT", vec![u32::from(a.order == SortOrder::Descending)]),
        other => panic!("no engine has {}", other.name()),
    };
    (name.to_owned(), params)
}
