use ron::value::RawValue;
use tpc_passes::machine::{Link, LinkKind, MemoryKind};

use super::error::{Place, TopologyError};
use crate::units::{Unit, quantity};

pub(super) type Raw<'a> = Option<&'a RawValue>;

/// Returns the text of a value without `Some(…)`; `None` for `None`.
fn inner(raw: &RawValue) -> Option<&str> {
    let mut text = raw.trim().get_ron();
    while let Some(rest) = text.strip_prefix("Some") {
        let rest = rest.trim_start().strip_prefix('(')?;
        text = rest.strip_suffix(')')?.trim().trim_end_matches(',').trim();
    }
    (text != "None").then_some(text)
}

fn unquote(text: &str) -> &str {
    let quoted = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    quoted.unwrap_or(text)
}

pub(super) fn amount(
    field: &str,
    raw: Raw<'_>,
    unit: Unit,
    within: Place<'_>,
) -> Result<Option<f64>, TopologyError> {
    let Some((raw, text)) = raw.and_then(|r| Some((r, inner(r)?))) else {
        return Ok(None);
    };
    let at = within.of(raw);
    let said = quantity(unquote(text), unit);
    let n = said.map_err(|e| at.wrong(format!("{field}: {}", e.message)).cure(e.cure))?;
    Ok(Some(n))
}

pub(super) fn positive(
    field: &str,
    raw: Raw<'_>,
    unit: Unit,
    within: Place<'_>,
) -> Result<Option<f64>, TopologyError> {
    let n = amount(field, raw, unit, within)?;
    match (n, raw) {
        (Some(n), Some(raw)) if n <= 0.0 => {
            let at = within.of(raw);
            let cure = format!("leave out `{field}` if it is unknown");
            Err(at.wrong(format!("{field} is 0")).cure(cure))
        }
        _ => Ok(n),
    }
}

pub(super) fn number(
    field: &str,
    raw: Raw<'_>,
    within: Place<'_>,
) -> Result<Option<f64>, TopologyError> {
    let Some((raw, text)) = raw.and_then(|r| Some((r, inner(r)?))) else {
        return Ok(None);
    };
    let at = within.of(raw);
    let n = unquote(text).replace('_', "").parse::<f64>().ok();
    match n.filter(|n| n.is_finite() && *n >= 0.0) {
        Some(n) => Ok(Some(n)),
        None => {
            let shown = tpc_diag::suggest::shorten(text);
            let message = format!("{field}: `{shown}` is not a number of at least 0");
            Err(at
                .wrong(message)
                .cure(format!("write for example `{field}: 10`")))
        }
    }
}

pub(super) fn words(
    field: &str,
    raw: Raw<'_>,
    within: Place<'_>,
) -> Result<Option<String>, TopologyError> {
    let Some((raw, text)) = raw.and_then(|r| Some((r, inner(r)?))) else {
        return Ok(None);
    };
    let at = within.of(raw);
    let bare = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let read: Option<String> = match text.starts_with(['"', 'r']) && text.ends_with(['"', '#']) {
        true => ron::from_str(text).ok(),
        false => bare.then(|| text.to_owned()),
    };
    match read.filter(|t| !t.trim().is_empty() && !t.chars().any(tpc_diag::steers)) {
        Some(text) => Ok(Some(text)),
        None => Err(at
            .wrong(format!("{field}: expected a text"))
            .cure(format!("write for example `{field}: \"RTX 3090\"`"))),
    }
}

pub(super) fn flag(
    field: &str,
    raw: Raw<'_>,
    within: Place<'_>,
) -> Result<Option<bool>, TopologyError> {
    match words(field, raw, within)?.as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(other) => {
            let at = within.of_field(raw);
            let message = format!(
                "{field}: `{}` is neither true nor false",
                tpc_diag::suggest::shorten(other)
            );
            Err(at.wrong(message).cure("write true or false"))
        }
    }
}

pub(super) fn memory_kind(
    field: &str,
    raw: Raw<'_>,
    within: Place<'_>,
) -> Result<Option<MemoryKind>, TopologyError> {
    let Some(text) = words(field, raw, within)? else {
        return Ok(None);
    };
    let lower = text.to_lowercase();
    for (start, kind) in [
        ("hbm", MemoryKind::Hbm),
        ("gddr", MemoryKind::Gddr),
        ("shared", MemoryKind::Shared),
        ("unified", MemoryKind::Shared),
    ] {
        if lower.starts_with(start) {
            return Ok(Some(kind));
        }
    }
    let at = within.of_field(raw);
    let message = format!(
        "{field}: unknown memory kind `{}`",
        tpc_diag::suggest::shorten(&text)
    );
    Err(at.wrong(message).cure("write Hbm, Gddr or Shared"))
}

pub(super) fn link_kind(text: &str) -> Option<LinkKind> {
    let squeezed: String = text.chars().filter(|c| c.is_alphanumeric()).collect();
    Some(match squeezed.to_lowercase().as_str() {
        "nvlink" | "bridge" | "infinityfabric" | "xgmi" => LinkKind::NvLink,
        "nvswitch" => LinkKind::NvSwitch,
        "pciep2p" | "pciepeer" | "p2p" => LinkKind::PciePeer,
        "pcie" | "pciehost" | "host" => LinkKind::PcieHost,
        "network" => LinkKind::Network,
        "unstated" => LinkKind::Unstated,
        _ => return None,
    })
}

/// Creates a link; the default latency is its kind's.
pub(super) fn link(bandwidth: f64, latency_us: Option<f64>, kind: LinkKind) -> Link {
    Link {
        bandwidth,
        latency_us: latency_us.unwrap_or_else(|| kind.latency_us()),
        kind,
    }
}
