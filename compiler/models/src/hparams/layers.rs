use super::ffn::{LayerFfn, Limits};
use super::heads::{self, HeadElements, RopeUse};
use super::keys::Keys;
use super::mixers::{self, Mixer};
use super::recurrent::Heads;
use super::windows::{self, Reach, WindowSpan};
use super::xielu::XieluHParams;
use super::{drafts, experts::ExpertHParams, factors, ffn};
use crate::description::{Arch, OutGate, QkvForm, RopeLayers};
use crate::error::ArchError;
use crate::size::Size;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerHParams {
    pub(crate) index: u32,
    /// Block number of the layer's tensors in the file.
    pub(crate) block: u32,
    pub(crate) mixer: Option<Mixer>,
    pub(crate) n_head: u64,
    pub(crate) n_head_kv: u64,
    pub(crate) heads: HeadElements,
    pub(crate) attention_scale: f32,
    pub(crate) ffn: Option<LayerFfn>,
    pub(crate) limits: Limits,
    pub(crate) xielu: Option<XieluHParams>,
    pub(crate) reach: Reach,
    pub(crate) rope: RopeUse,
    /// Layer whose caches this layer reads; `None` for its own.
    pub(crate) kv_from: Option<u32>,
    /// Elements of all queries.
    pub(crate) q_width: Size,
    /// Rows of the query projection, which may include a gate.
    pub(crate) q_projected: Size,
    pub(crate) k_width: Size,
    pub(crate) v_width: Size,
    pub(crate) out_width: Size,
    pub(crate) qkv_width: Size,
}

#[derive(Clone, Copy)]
pub(super) struct Model<'a> {
    pub(super) keys: Keys<'a>,
    pub(super) arch: &'a Arch,
    /// Number of layers and draft blocks.
    pub(super) n_layer: usize,
    pub(super) n_embd: u64,
}

/// Unchecked hyper-parameters of all layers and draft blocks.
pub(super) struct LayerTable {
    n_head: Vec<u64>,
    n_head_kv: Vec<u64>,
    /// Head sizes with full attention and with a window.
    pub(super) heads: [HeadElements; 2],
    ffn: Vec<Option<LayerFfn>>,
    mixers: Vec<Option<Mixer>>,
    limits: Vec<Limits>,
    xielu: Option<Vec<XieluHParams>>,
    reaches: Vec<Reach>,
    ropes: Vec<RopeUse>,
    kv_from: Vec<Option<u32>>,
    pub(super) experts: Option<ExpertHParams>,
    pub(super) window: Option<WindowSpan>,
}

impl LayerTable {
    pub(super) fn read(model: Model<'_>) -> Result<LayerTable, ArchError> {
        let Model {
            keys,
            arch,
            n_layer,
            n_embd,
        } = model;
        let [n_head, n_head_kv] = heads::counts(&keys, arch, n_layer)?;
        let some_heads = n_head.iter().copied().find(|&n| n > 0).unwrap_or(0);
        let n_main = drafts::main_layers(&keys, n_layer)?;
        let (experts, ffn) = ffn::read(&keys, arch, [n_main, n_layer])?;
        let mixers = mixers::mixers(&keys, arch, [&n_head, &n_head_kv], &ffn)?;
        let (window, reaches) = windows::windows(&keys, &arch.attention, n_layer)?;
        let first = reaches.first().copied().unwrap_or(Reach::Full);
        let form = arch.attention.head_sizes;
        let heads = heads::elements(&keys, form, first, n_embd, some_heads)?;
        let ropes = heads::rope_uses(&keys, arch, &reaches)?;
        let kv_from = match heads::mapped_caches(&keys, arch.attention.kv_sources, &ropes)? {
            Some(mapped) => mapped,
            None => heads::cache_owners(&keys, arch.attention.shared_kv, &reaches, &n_head_kv)?,
        };
        Ok(LayerTable {
            n_head,
            n_head_kv,
            heads,
            ffn,
            mixers,
            limits: ffn::limits(&keys, arch.ffn.limits, n_layer)?,
            xielu: XieluHParams::read(&keys, &arch.ffn.activation, n_layer)?,
            reaches,
            ropes,
            kv_from,
            experts,
            window,
        })
    }

    pub(super) fn first_reach(&self) -> Reach {
        self.reaches.first().copied().unwrap_or(Reach::Full)
    }

    pub(super) fn first_heads(&self) -> Heads {
        Heads {
            count: self.n_head.first().copied().unwrap_or(0),
            dim: self.heads[0].dk,
        }
    }

    pub(super) fn layer(&self, model: Model<'_>, il: usize) -> Result<LayerHParams, ArchError> {
        self.row(model, il, self.mixers[il], self.kv_from[il])
    }

    /// Returns a draft block's checked hyper-parameters. A draft block always attends, rotates, and has its own caches.
    pub(super) fn draft(&self, model: Model<'_>, il: usize) -> Result<LayerHParams, ArchError> {
        let row = self.row(model, il, Some(Mixer::Attention), None)?;
        let rope = match &model.arch.attention.rope {
            Some(rope) if rope.layers != RopeLayers::None => RopeUse::Rotated,
            Some(_) | None => row.rope,
        };
        Ok(LayerHParams { rope, ..row })
    }

    fn row(
        &self,
        model: Model<'_>,
        il: usize,
        mixer: Option<Mixer>,
        kv_from: Option<u32>,
    ) -> Result<LayerHParams, ArchError> {
        let reach = self.reaches[il];
        let heads = reach.select(self.heads);
        let HeadElements { dk, dv } = heads;
        let attends = matches!(mixer, Some(Mixer::Attention | Mixer::Both));
        let [n_head, n_head_kv] = if attends {
            self.check_heads(&model.keys, il)?
        } else {
            [0, 0]
        };
        let widths = Widths::new(model.arch, n_head, n_head_kv, heads)?;
        let thirds = model.arch.attention.qkv == QkvForm::FusedThirds;
        if thirds && 2 * model.n_embd + widths.v.n > widths.qkv.n {
            return Err(ArchError::Contradiction {
                key: model.keys.name("embedding_length"),
                found: model.n_embd.to_string(),
                with: format!("{} rows of attn_qkv in layer {il}", widths.qkv.n),
                expected: "a third of these rows".into(),
            });
        }
        let share = model.n_embd.checked_div(n_head).unwrap_or(dk);
        let (keys, form) = (&model.keys, &model.arch.attention);
        let block = u32::try_from(il).expect("invariant: at most MAX_LAYERS");
        Ok(LayerHParams {
            index: block,
            block,
            mixer,
            n_head,
            n_head_kv,
            heads,
            attention_scale: factors::attention_scale(keys, form, model.n_layer, dk, share)?,
            ffn: self.ffn[il],
            limits: self.limits[il],
            xielu: self.xielu.as_ref().map(|all| all[il]),
            reach,
            rope: self.ropes[il],
            kv_from,
            q_width: widths.q,
            q_projected: widths.q_projected,
            k_width: widths.k,
            v_width: widths.v,
            out_width: Size::product(n_head, dv, "attention.head_count × attention.value_length")?,
            qkv_width: widths.qkv,
        })
    }

    /// Returns the query and KV heads of a layer with attention. Both are above 0, and KV heads divide query heads.
    fn check_heads(&self, keys: &Keys<'_>, il: usize) -> Result<[u64; 2], ArchError> {
        let (n_head, n_head_kv) = (self.n_head[il], self.n_head_kv[il]);
        keys.require_in_layer(il, n_head, "attention.head_count")?;
        keys.require_in_layer(il, n_head_kv, "attention.head_count_kv")?;
        if n_head.is_multiple_of(n_head_kv) {
            return Ok([n_head, n_head_kv]);
        }
        Err(ArchError::Contradiction {
            key: keys.name("attention.head_count_kv"),
            found: n_head_kv.to_string(),
            with: format!(
                "{} = {n_head} in layer {il}",
                keys.name("attention.head_count")
            ),
            expected: "a divisor of that number".into(),
        })
    }
}

struct Widths {
    q: Size,
    q_projected: Size,
    k: Size,
    v: Size,
    qkv: Size,
}

impl Widths {
    fn new(
        arch: &Arch,
        n_head: u64,
        n_head_kv: u64,
        HeadElements { dk, dv }: HeadElements,
    ) -> Result<Widths, ArchError> {
        let q = Size::product(n_head, dk, "attention.head_count × attention.key_length")?;
        let q_projected = match arch.attention.out_gate {
            OutGate::None | OutGate::Projected(..) | OutGate::Softplus2(..) => q,
            OutGate::WithQueries => Size::product(
                n_head,
                dk + dv,
                "attention.head_count × (attention.key_length + attention.value_length)",
            )?,
        };
        let k = Size::product(
            n_head_kv,
            dk,
            "attention.head_count_kv × attention.key_length",
        )?;
        let v = Size::product(
            n_head_kv,
            dv,
            "attention.head_count_kv × attention.value_length",
        )?;
        // The heads are bounded, so the sum does not overflow.
        let rows = match arch.attention.qkv {
            QkvForm::FusedThirds => 3 * q_projected.n,
            QkvForm::Separate | QkvForm::Fused => q_projected.n + k.n + v.n,
        };
        let qkv = Size::try_new(rows, "the heads of queries, keys and values")?;
        Ok(Widths {
            q,
            q_projected,
            k,
            v,
            qkv,
        })
    }
}
