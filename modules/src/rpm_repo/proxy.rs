//! The proxy that only the package manager is told of, as variables for a program that fetches the key.

use crate::ask::text;
use crate::rpm::Manager;
use crate::rpm::files::{DNF_CONF, RepoFile};
use crate::{Error, Host};

/// Returns them; none where the environment names a proxy already.
pub(super) fn variables(host: &dyn Host, manager: Manager) -> Result<Vec<(String, String)>, Error> {
    if ["https_proxy", "http_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"]
        .iter()
        .any(|name| host.env(name).is_some())
    {
        return Ok(Vec::new());
    }
    Ok(match manager {
        Manager::Dnf(_) => {
            let file = RepoFile { path: DNF_CONF.to_owned(), text: text(host, DNF_CONF)? };
            let main = file.sections().into_iter().find(|section| section.id == "main");
            let proxy = main.as_ref().and_then(|main| main.get("proxy"));
            let Some(proxy) = proxy.filter(|proxy| !proxy.is_empty() && *proxy != "_none_") else {
                return Ok(Vec::new());
            };
            let named = |name: &str| main.as_ref().and_then(|main| main.get(name)).map(encoded);
            let address = match (named("proxy_username"), proxy.split_once("://")) {
                (Some(user), Some((scheme, place))) => {
                    let password = named("proxy_password").unwrap_or_default();
                    format!("{scheme}://{user}:{password}@{place}")
                }
                (None, _) | (_, None) => proxy.to_owned(),
            };
            ["http_proxy", "https_proxy"].map(|name| (name.to_owned(), address.clone())).to_vec()
        }
        Manager::Zypper => {
            let told = text(host, "/etc/sysconfig/proxy")?;
            let value = |name: &str| {
                let line = told.lines().rev().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='));
                line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
            };
            if value("PROXY_ENABLED").as_deref() != Some("yes") {
                return Ok(Vec::new());
            }
            let pairs = [("http_proxy", "HTTP_PROXY"), ("https_proxy", "HTTPS_PROXY"), ("no_proxy", "NO_PROXY")];
            pairs.iter().filter_map(|(name, told)| Some(((*name).to_owned(), value(told)?))).collect()
        }
    })
}

/// Returns a text as it stands in an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
