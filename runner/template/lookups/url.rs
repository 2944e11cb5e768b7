//! The lookup `url`: text that this machine's curl or wget fetches.

use std::collections::BTreeMap;
use std::io::Write;

use kubeon_modules::{Error, Machine, Service, Transfer};

use crate::template::call::{Call, Lookup, callable};
use crate::template::live::{Live, Result};
use crate::value::Value;

pub(super) const LOOKUPS: &[Lookup] = &[callable(
    "url",
    &[
        "*",
        "split_lines",
        "validate_certs",
        "use_proxy",
        "username",
        "password",
        "headers",
        "force",
        "timeout",
        "http_agent",
        "follow_redirects",
        "use_netrc",
        "ca_path",
        "force_basic_auth",
    ],
    url,
)];

/// This machine has all that a request needs.
struct Alone;

impl Service for Alone {
    fn fetch(&self, sha256: &str, _sink: &mut dyn Write) -> std::result::Result<(), Error> {
        Err(Error::new(kubeon_modules::ErrorKind::Failed, format!("no content `{sha256}` goes with a request")))
    }
    fn progress(&self, _line: &str) {}
}

fn url(call: &mut Call<'_>) -> Result<Vec<Live>> {
    let in_lines = call.bool_or(0, true)?;
    let (user, password) = (call.text_at(3)?, call.text_at(4)?);
    let mut headers = BTreeMap::new();
    match call.value_at(5)? {
        None | Some(Value::Null) => {}
        Some(Value::Map(given)) => {
            headers.extend(given.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        }
        Some(other) => return Err(call.fault(format!("`headers` must be a mapping, not {}", other.kind()))),
    }
    if call.bool_or(6, false)? {
        headers.insert("Cache-Control".to_owned(), "no-cache".to_owned());
    }
    let timeout_s =
        u64::try_from(call.int_at(7)?.unwrap_or(10)).map_err(|_| call.fault("`timeout` must be positive"))?;
    let agent = call.text_or(8, env!("CARGO_PKG_NAME"))?;
    let follow_redirects = match call.text_or(9, "urllib2")?.to_lowercase().as_str() {
        "all" | "yes" | "true" | "safe" | "urllib2" => true,
        "none" | "no" | "false" => false,
        other => {
            let error = call.fault(format!("no follow_redirects `{other}`"));
            return Err(error.help("one of all, safe, urllib2, none"));
        }
    };
    let ca_path = call.text_at(11)?;
    let mut found = Vec::new();
    for url in super::files::terms(call)? {
        let transfer = Transfer {
            url: &url,
            headers: &headers,
            user: user.as_deref(),
            password: password.as_deref(),
            agent: &agent,
            timeout_s,
            follow_redirects,
            validate_certs: call.bool_or(1, true)?,
            use_proxy: call.bool_or(2, true)?,
            use_netrc: call.bool_or(10, true)?,
            ca_path: ca_path.as_deref(),
            client_cert: None,
            client_key: None,
        };
        let text = transfer.read(&Machine::new(&Alone, BTreeMap::new(), None));
        let text = text.map_err(|error| call.fault(error))?;
        match in_lines {
            true => found.extend(text.lines().map(Live::from)),
            false => found.push(text.into()),
        }
    }
    Ok(found)
}
