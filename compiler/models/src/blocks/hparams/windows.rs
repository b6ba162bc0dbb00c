//! Windows: how far they reach, in which layers.

use tpc_ir::Window as Span;

use crate::blocks::keys::{Keys, Pattern};
use crate::description::{AttentionForm, Window, WindowKind};
use crate::error::ArchError;

const PATTERN: &str = "attention.sliding_window_pattern";

/// Whether a layer attends to a window only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Windowed {
    No,
    Yes,
}

impl Windowed {
    /// Of what layers without and with a window have, that of this one.
    pub(crate) fn of<T>(self, [full, windowed]: [T; 2]) -> T {
        match self {
            Windowed::No => full,
            Windowed::Yes => windowed,
        }
    }
}

/// The window, where a layer has one, and which layers do.
pub(super) fn windows(
    keys: &Keys<'_>,
    form: &AttentionForm,
    n_layer: usize,
) -> Result<(Option<Span>, Vec<Windowed>), ArchError> {
    let none = (None, vec![Windowed::No; n_layer]);
    let period = match form.window {
        Window::Listed if keys.pattern(PATTERN, n_layer)?.is_none() => return Ok(none),
        Window::None => return Ok(none),
        // No layer is the last of every none.
        Window::All | Window::Listed => 0,
        Window::AllButEvery(n) => n,
    };
    if !form.window_in.include(n_layer) {
        return Ok(none);
    }
    const KEY: &str = "attention.sliding_window";
    let window = match form.window_kind {
        WindowKind::Sliding => keys.count(KEY)?.or(form.window_default).map(Span::Sliding),
        WindowKind::Chunks(n) => (!keys.is_zero(KEY)?).then_some(Span::Chunks(n)),
    };
    let Some(window) = window else {
        return Ok(none);
    };
    let yes = |windowed| {
        if windowed {
            Windowed::Yes
        } else {
            Windowed::No
        }
    };
    let every = |period: u32| {
        (0..n_layer)
            .map(|il| {
                let period = period as usize;
                yes(period == 0 || il % period < period - 1)
            })
            .collect()
    };
    let layers: Vec<Windowed> = match keys.pattern(PATTERN, n_layer)? {
        None => every(period),
        Some(Pattern::Period(period)) => every(period),
        Some(Pattern::Layers(layers)) => layers.into_iter().map(yes).collect(),
    };
    let window = layers.contains(&Windowed::Yes).then_some(window);
    Ok((window, layers))
}
