use std::sync::Arc;

use super::share::Share;
use super::transport::Transport;

/// A rank's share of a program, and its connection to the other ranks.
#[derive(Clone, Debug)]
pub struct RankSeat {
    /// The share.
    pub share: Share,
    /// The connection.
    pub transport: Arc<dyn Transport>,
}
