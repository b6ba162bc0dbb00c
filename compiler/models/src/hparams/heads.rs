use super::keys::{Keys, Pattern};
use super::windows::Reach;
use crate::description::{Arch, HeadSizes, KeyUse, RecurrentLayers, RopeLayers};
use crate::error::ArchError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadElements {
    /// Elements of a query head and of a key head.
    pub(crate) dk: u64,
    /// Elements of a value head.
    pub(crate) dv: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RopeUse {
    Unrotated,
    Rotated,
}

impl RopeUse {
    const fn rotated_if(rotated: bool) -> RopeUse {
        if rotated {
            RopeUse::Rotated
        } else {
            RopeUse::Unrotated
        }
    }
}

pub(super) fn counts(
    keys: &Keys<'_>,
    arch: &Arch,
    n_layer: usize,
) -> Result<[Vec<u64>; 2], ArchError> {
    if arch
        .recurrent
        .is_some_and(|form| form.layers == RecurrentLayers::All)
    {
        return Ok([vec![0; n_layer], vec![0; n_layer]]);
    }
    let n_head = keys.require_count_per_layer("attention.head_count", n_layer)?;
    let n_head_kv = keys.count_per_layer("attention.head_count_kv", n_layer)?;
    let n_head_kv = n_head_kv.unwrap_or_else(|| n_head.clone());
    Ok([n_head, n_head_kv])
}

/// Returns the head sizes in layers with full attention and in layers with a window. If the form has one size for both,
/// the size is the first layer's, whose reach is `first`.
pub(super) fn elements(
    keys: &Keys<'_>,
    form: HeadSizes,
    first: Reach,
    n_embd: u64,
    n_head: u64,
) -> Result<[HeadElements; 2], ArchError> {
    let head_size = |key| match keys.count(key)? {
        Some(d) => Ok(d),
        None => equal_share(keys, n_embd, n_head),
    };
    let full = HeadElements {
        dk: head_size("attention.key_length")?,
        dv: head_size("attention.value_length")?,
    };
    let windowed = || -> Result<HeadElements, ArchError> {
        Ok(HeadElements {
            dk: keys.count("attention.key_length_swa")?.unwrap_or(full.dk),
            dv: keys.count("attention.value_length_swa")?.unwrap_or(full.dv),
        })
    };
    Ok(match form {
        HeadSizes::Same => match first {
            Reach::Full => [full; 2],
            Reach::Window => [windowed()?; 2],
        },
        HeadSizes::WindowedRotation => [full; 2],
        HeadSizes::WindowedOwn => [full, windowed()?],
    })
}

fn equal_share(keys: &Keys<'_>, n_embd: u64, n_head: u64) -> Result<u64, ArchError> {
    match n_embd.checked_div(n_head) {
        // Another check reports layers without heads.
        None => Ok(1),
        Some(d) if d > 0 && d * n_head == n_embd => Ok(d),
        Some(_) => Err(ArchError::Contradiction {
            key: keys.name("embedding_length"),
            found: n_embd.to_string(),
            with: format!("{} = {n_head}", keys.name("attention.head_count")),
            expected: "a multiple of that number, or a value for attention.key_length".into(),
        }),
    }
}

pub(super) fn rope_uses(
    keys: &Keys<'_>,
    arch: &Arch,
    reaches: &[Reach],
) -> Result<Vec<RopeUse>, ArchError> {
    let n_layer = reaches.len();
    let has_windows = reaches.contains(&Reach::Window);
    let all = |rotated| vec![RopeUse::rotated_if(rotated); n_layer];
    let all_but_every = |period: u32| {
        (1..=n_layer)
            .map(|n| RopeUse::rotated_if(!n.is_multiple_of(period as usize)))
            .collect()
    };
    let windowed = |leading: u64| {
        let rotated = |(il, &reach): (usize, &Reach)| {
            RopeUse::rotated_if(reach == Reach::Window || (il as u64) < leading)
        };
        reaches.iter().enumerate().map(rotated).collect()
    };
    let Some(rope) = &arch.attention.rope else {
        return Ok(all(false));
    };
    Ok(match rope.layers {
        RopeLayers::All => all(true),
        RopeLayers::None => all(false),
        RopeLayers::AllIn(models) => all(models.include(n_layer)),
        RopeLayers::Listed => match keys.pattern("attention.rope_pattern", n_layer)? {
            Some(Pattern::Layers(layers)) => layers.into_iter().map(RopeUse::rotated_if).collect(),
            Some(Pattern::Period(any)) => all(any != 0),
            None => all(keys.flag("rope.scaling.finetuned")?.unwrap_or(true)),
        },
        RopeLayers::ListedOrAll | RopeLayers::ListedOrPlain => match keys
            .pattern("attention.rope_pattern", n_layer)?
        {
            Some(Pattern::Layers(layers)) => layers.into_iter().map(RopeUse::rotated_if).collect(),
            Some(Pattern::Period(_)) | None => all(true),
        },
        RopeLayers::AllButEvery(period) => all_but_every(period),
        RopeLayers::AllButEveryIfWindowed(_)
        | RopeLayers::AllButFirstOfEveryIfWindowed(_)
        | RopeLayers::Windowed
            if !has_windows =>
        {
            all(true)
        }
        RopeLayers::AllButEveryIfWindowed(period) => all_but_every(period),
        RopeLayers::AllButFirstOfEveryIfWindowed(period) if period as usize == n_layer => all(true),
        RopeLayers::AllButFirstOfEveryIfWindowed(period) => (0..n_layer)
            .map(|il| RopeUse::rotated_if(!il.is_multiple_of(period as usize)))
            .collect(),
        RopeLayers::Windowed | RopeLayers::OnlyWindowed => windowed(0),
        RopeLayers::WindowedOrLeading => {
            windowed(keys.count("leading_dense_block_count")?.unwrap_or(0))
        }
    })
}

/// Returns the layer whose caches each layer reads; `None` for its own.
pub(super) fn cache_owners(
    keys: &Keys<'_>,
    used: KeyUse,
    reaches: &[Reach],
    n_head_kv: &[u64],
) -> Result<Vec<Option<u32>>, ArchError> {
    const KEY: &str = "attention.shared_kv_layers";
    let n_layer = reaches.len();
    let shared = match used {
        KeyUse::Ignored => None,
        KeyUse::Read | KeyUse::ReadOr(_) => keys.count(KEY)?,
    };
    let mut out = vec![None; n_layer];
    let Some(shared) = shared else {
        return Ok(out);
    };
    let own = usize::try_from(shared).map_or(0, |shared| n_layer.saturating_sub(shared));
    for il in own..n_layer {
        let alike = |&j: &usize| reaches[j] == reaches[il] && n_head_kv[j] == n_head_kv[il];
        let from = (0..own)
            .rfind(alike)
            .ok_or_else(|| ArchError::Contradiction {
                key: keys.name(KEY),
                found: shared.to_string(),
                with: format!("layer {il} of {n_layer}"),
                expected:
                    "an earlier layer with caches of its own, as many KV heads, and a window \
                           if this layer has one"
                        .into(),
            })?;
        out[il] = Some(u32::try_from(from).expect("invariant: at most MAX_LAYERS"));
    }
    Ok(out)
}

/// Returns the layers that `attention.kv_source_map` names as sources of other layers' caches.
pub(super) fn mapped_caches(
    keys: &Keys<'_>,
    used: KeyUse,
    ropes: &[RopeUse],
) -> Result<Option<Vec<Option<u32>>>, ArchError> {
    const KEY: &str = "attention.kv_source_map";
    let map = match used {
        KeyUse::Ignored => None,
        KeyUse::Read | KeyUse::ReadOr(_) => keys.count_per_layer(KEY, ropes.len())?,
    };
    let Some(map) = map else {
        return Ok(None);
    };
    let owner = |(il, &from): (usize, &u64)| {
        let is_own = |layer: usize| map[layer] == layer as u64;
        let source = usize::try_from(from).ok().filter(|&from| from <= il);
        match source.filter(|&from| is_own(from) && ropes[from] == ropes[il]) {
            Some(from) if from == il => Ok(None),
            Some(from) => Ok(u32::try_from(from).ok()),
            None => {
                let found = format!("{from} for layer {il}");
                let expected =
                    "a layer up to this one that has caches of its own and rotates like this one";
                Err(keys.out_of_range(KEY, found, expected))
            }
        }
    };
    let owners = map.iter().enumerate().map(owner);
    owners.collect::<Result<_, _>>().map(Some)
}
