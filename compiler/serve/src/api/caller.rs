use std::net::IpAddr;

/// The sender of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The client's address.
    pub(crate) ip: Option<IpAddr>,
    /// The position of the request's API key in the list of keys.
    pub(crate) key: Option<usize>,
}

/// The maximum length of a user's name, in characters.
const LONGEST: usize = 64;

impl Caller {
    /// Returns the user's name for the queue: the key and the request's user, or the address without a key.
    pub(crate) fn user(&self, named: Option<&str>) -> String {
        let own = match (self.key, self.ip) {
            (Some(key), _) => format!("key {key}"),
            (None, Some(ip)) => ip.to_string(),
            (None, None) => String::new(),
        };
        match named {
            Some(name) => format!("{own}/{}", name.chars().take(LONGEST).collect::<String>()),
            None => own,
        }
    }
}
