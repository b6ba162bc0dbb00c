//! The rules of ggml's tensor split: their verdicts against those that were observed, and the repairs of what ggml refuses.

mod book;
mod forms;
mod models;
mod repairs;
mod verdicts;
