//! What a repository's URL says of who asks: kept from every command line, where anybody on the host reads it, and from
//! the checkout's configuration.

use crate::Error;
use crate::ask::bad;

const USER: &str = "KUBEON_GIT_USER";
const PASSWORD: &str = "KUBEON_GIT_PASSWORD";
/// Answers git's question from the environment, by what every shell has built in.
const HELPER: &str = "!f() { if [ \"$1\" = get ]; then printf 'username=%s\\npassword=%s\\n' \"$KUBEON_GIT_USER\" \
                      \"$KUBEON_GIT_PASSWORD\"; fi; }; f";

/// A URL with a password, taken apart.
pub(super) struct Credentials {
    user: String,
    password: String,
    /// Scheme and server, to which alone they are told.
    server: String,
}

/// Returns a repository's URL without user and password, and these, where it has both.
pub(super) fn taken_from(url: &str) -> Result<(String, Option<Credentials>), Error> {
    let whole = || Ok((url.to_owned(), None));
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| ["http", "https"].contains(scheme)) else {
        return whole();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let Some((user, password, server)) = authority
        .rsplit_once('@')
        .and_then(|(about, server)| about.split_once(':').map(|(user, password)| (user, password, server)))
    else {
        return whole();
    };
    let server = format!("{scheme}://{server}");
    let credentials = Credentials { user: plain(user)?, password: plain(password)?, server: server.clone() };
    Ok((server + path, Some(credentials)))
}

/// Returns a part of a URL with its `%40` and the like as what they stand for.
fn plain(part: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = after.get(..2).filter(|_| first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains(['\n', '\r', '\0']) => Ok(text),
        _ => Err(bad("user and password in `repo` are one line of UTF-8")),
    }
}

impl Credentials {
    /// Returns what makes git ask for them, for this server alone and before any helper of the host.
    pub(super) fn options(&self) -> [String; 4] {
        let key = format!("credential.{}.helper=", self.server);
        ["-c".to_owned(), key.clone(), "-c".to_owned(), key + HELPER]
    }

    pub(super) fn env(&self) -> [(String, String); 2] {
        [(USER.to_owned(), self.user.clone()), (PASSWORD.to_owned(), self.password.clone())]
    }
}
