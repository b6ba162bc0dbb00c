use tpc_ir::Window as Span;

use super::keys::{Keys, Pattern};
use crate::description::{AttentionForm, Window, WindowKind};
use crate::error::ArchError;

const PATTERN: &str = "attention.sliding_window_pattern";

/// Tokens that a layer with a window attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WindowSpan {
    /// Earlier tokens.
    Past(Span),
    /// Tokens at most so many positions away, in both directions.
    Near(u64),
}

impl WindowSpan {
    /// Returns the window of caches.
    pub(crate) const fn past(self) -> Option<Span> {
        match self {
            WindowSpan::Past(span) => Some(span),
            WindowSpan::Near(_) => None,
        }
    }
}

/// Range of tokens that a layer attends to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All earlier tokens.
    Full,
    /// The tokens in the model's window.
    Window,
}

impl Reach {
    /// Selects the first value for full attention, the second for a window.
    pub(crate) fn select<T>(self, [full, windowed]: [T; 2]) -> T {
        match self {
            Reach::Full => full,
            Reach::Window => windowed,
        }
    }

    const fn window_if(windowed: bool) -> Reach {
        if windowed { Reach::Window } else { Reach::Full }
    }
}

/// Returns the window, if any, and the reach of every layer.
pub(super) fn windows(
    keys: &Keys<'_>,
    form: &AttentionForm,
    n_layer: usize,
) -> Result<(Option<WindowSpan>, Vec<Reach>), ArchError> {
    let none = (None, vec![Reach::Full; n_layer]);
    let period = match form.window {
        Window::Listed if keys.pattern(PATTERN, n_layer)?.is_none() => return Ok(none),
        Window::None => return Ok(none),
        Window::All | Window::Listed => 0,
        Window::AllButEvery(n) | Window::AllButFirstOfEvery(n) => n,
    };
    let first = matches!(form.window, Window::AllButFirstOfEvery(_));
    if !form.window_in.include(n_layer) {
        return Ok(none);
    }
    const KEY: &str = "attention.sliding_window";
    let past = |span: Option<Span>| span.map(WindowSpan::Past);
    let window = match form.window_kind {
        WindowKind::Sliding => past(keys.count(KEY)?.or(form.window_default).map(Span::Sliding)),
        WindowKind::SlidingBy(n) => past(keys.count(KEY)?.map(|_| Span::Sliding(n))),
        WindowKind::Chunks(n) => past((!keys.is_zero(KEY)?).then_some(Span::Chunks(n))),
        WindowKind::Symmetric => keys.count(KEY)?.map(|n| WindowSpan::Near(n / 2)),
    };
    let Some(window) = window else {
        return Ok(none);
    };
    let every = |period: u32| {
        (0..n_layer)
            .map(|il| {
                let period = period as usize;
                let full = if first { 0 } else { period.saturating_sub(1) };
                Reach::window_if(period == 0 || il % period != full)
            })
            .collect()
    };
    let layers: Vec<Reach> = match keys.pattern(PATTERN, n_layer)? {
        None => every(period),
        Some(Pattern::Period(period)) => every(period),
        Some(Pattern::Layers(layers)) => layers.into_iter().map(Reach::window_if).collect(),
    };
    let window = layers.contains(&Reach::Window).then_some(window);
    Ok((window, layers))
}
