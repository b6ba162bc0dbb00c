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
    /// Returns the name by which the queue is fair: the key and the user that the request names, else the address.
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
