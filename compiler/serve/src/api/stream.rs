//! Answers as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::Value;

use super::answer::Answers;
use crate::scheduler::Event;

/// Time between two comments that keep a silent connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Converts the events of answers to chunks of a stream.
pub(crate) trait Chunks: Send + 'static {
    /// Returns the chunks of an event of answer number `choice`.
    fn event(&mut self, choice: usize, event: Event) -> Vec<Value>;

    /// Returns the chunks after the last event.
    fn end(&mut self, answers: &Answers) -> Vec<Value>;
}

struct State<C> {
    answers: Answers,
    chunks: C,
    ready: VecDeque<String>,
    done: bool,
}

/// Returns a response that streams answers. An error after the first chunk is a chunk with `error`.
pub(crate) fn stream(answers: Answers, chunks: impl Chunks) -> Response {
    let state = State {
        answers,
        chunks,
        ready: VecDeque::new(),
        done: false,
    };
    let events = unfold(state, |mut state| async move {
        while state.ready.is_empty() {
            if state.done {
                return None;
            }
            let next = state.answers.next().await;
            let chunks = match next {
                Ok(Some((choice, event))) => state.chunks.event(choice, event),
                Ok(None) => {
                    state.done = true;
                    state.chunks.end(&state.answers)
                }
                Err(e) => {
                    state.done = true;
                    vec![e.body()]
                }
            };
            state.ready.extend(chunks.iter().map(Value::to_string));
            if state.done {
                state.ready.push_back("[DONE]".to_owned());
            }
        }
        let data = state.ready.pop_front()?;
        Some((Ok::<_, Infallible>(SseEvent::default().data(data)), state))
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Sse::new(events).keep_alive(keep_alive).into_response()
}
