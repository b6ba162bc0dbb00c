//! Chat templates: render conversations like Hugging Face's `apply_chat_template`.
//!
//! A template is a Jinja program by the file's author. It cannot access files or the environment; its only clock is the
//! caller's time.
//!
//! - `program` compiles and runs the template. The number of steps and the output length are limited. Intermediate texts
//!   are not: a template that doubles a text in a loop exhausts memory.
//! - `messages` checks the messages of a request and adapts them to the template.
//! - `abilities` finds the message shapes that a template supports, by rendering small conversations.
//! - `system` merges a system message into a user message for templates without the role `system`.
//! - `prefill` renders a prompt that ends in an unfinished answer.

mod abilities;
mod conversation;
mod date;
mod functions;
mod json;
mod messages;
mod prefill;
mod program;
mod system;
mod template;

pub use conversation::{ChatRequest, Conversation, Ending, Message, Prompt};
pub use template::ChatTemplate;
