//! The rules of ggml's tensor split: their verdicts against observed verdicts, and repairs of graphs that ggml refuses.

mod book;
mod forms;
mod models;
mod repairs;
mod verdicts;
