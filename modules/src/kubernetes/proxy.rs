//! Which proxy leads to an API server: the kubeconfig's own, or that of the environment with its exceptions.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::environment::variable;
use crate::{Error, ErrorKind};

/// Returns the proxy for a server, `None` for a direct connection.
///
/// Source of the rules: Go's `golang.org/x/net/http/httpproxy`, which kubectl follows.
pub(super) fn proxy_of(
    server: &http::Uri,
    own: Option<&str>,
    env: &BTreeMap<String, String>,
) -> Result<Option<http::Uri>, Error> {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let both = |upper: &str, lower: &str| variable(env, upper).or_else(|| variable(env, lower));
    let url = match own.filter(|own| !own.is_empty()) {
        Some(own) => own.to_owned(),
        None => {
            let found = match server.scheme_str() {
                Some("https") => both("HTTPS_PROXY", "https_proxy"),
                _ => both("HTTP_PROXY", "http_proxy"),
            };
            let Some(found) = found else { return Ok(None) };
            let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
            if local || both("NO_PROXY", "no_proxy").is_some_and(|list| excepted(&list, host, server.port_u16())) {
                return Ok(None);
            }
            found
        }
    };
    let whole = if url.contains("://") { url.clone() } else { format!("http://{url}") };
    // Names are looked up here, which is all that the client can do.
    let whole = whole.replacen("socks5h://", "socks5://", 1);
    match whole.parse::<http::Uri>() {
        Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https" | "socks5")) => Ok(Some(uri)),
        Ok(_) | Err(_) => Err(Error::new(
            ErrorKind::Host,
            format!("`{url}` is no proxy: expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT"),
        )),
    }
}

/// Whether a `NO_PROXY` list names a host.
fn excepted(list: &str, host: &str, port: Option<u16>) -> bool {
    let address: Option<IpAddr> = host.parse().ok();
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let Some((network, bits)) = entry.split_once('/') {
            return match (address, network.parse::<IpAddr>(), bits.parse::<u32>()) {
                (Some(address), Ok(network), Ok(bits)) => within(address, network, bits),
                _ => false,
            };
        }
        let (name, wanted) = match entry.rsplit_once(':') {
            Some((name, digits)) if !name.contains(':') => (name, digits.parse::<u16>().ok()),
            _ => (entry, None),
        };
        if wanted.is_some() && wanted != Some(port.unwrap_or(443)) {
            return false;
        }
        let name = name.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
        let host = host.to_ascii_lowercase();
        host == name || (address.is_none() && host.ends_with(&format!(".{name}")))
    })
}

fn within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) if bits <= 32 => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            u32::from(address) & mask == u32::from(network) & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) if bits <= 128 => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            u128::from(address) & mask == u128::from(network) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, own: Option<&str>, env: &[(&str, &str)]) -> Result<Option<String>, String> {
        let mut all: BTreeMap<String, String> =
            ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"]
                .map(|name| (name.to_owned(), String::new()))
                .into();
        all.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        proxy_of(&server.parse().expect("a URL"), own, &all)
            .map(|uri| uri.map(|uri| uri.to_string()))
            .map_err(|error| error.message.clone())
    }

    #[test]
    fn a_proxy_is_used_unless_the_server_is_excepted() {
        let set = ("HTTPS_PROXY", "proxy.example.com:3128");
        let through = Ok(Some("http://proxy.example.com:3128/".to_owned()));
        assert_eq!(proxy("https://k8s.example.com:6443", None, &[set]), through);
        assert_eq!(proxy("https://10.1.2.3:6443", None, &[set, ("NO_PROXY", "10.0.0.0/8")]), Ok(None));
        assert_eq!(proxy("https://11.1.2.3:6443", None, &[set, ("no_proxy", "10.0.0.0/8")]), through);
        assert_eq!(proxy("https://k8s.example.com:6443", None, &[set, ("NO_PROXY", ".example.com")]), Ok(None));
        assert_eq!(proxy("https://k8s.example.com:6443", None, &[set, ("NO_PROXY", "example.com:443")]), through);
        assert_eq!(proxy("https://notexample.com:6443", None, &[set, ("NO_PROXY", "example.com")]), through);
        assert_eq!(proxy("https://127.0.0.1:6443", None, &[set]), Ok(None));
        assert_eq!(proxy("https://[fd00::1]:6443", None, &[set, ("NO_PROXY", "fd00::/8")]), Ok(None));
        assert_eq!(
            proxy("https://127.0.0.1:6443", Some("socks5://localhost:1080"), &[]),
            Ok(Some("socks5://localhost:1080/".to_owned()))
        );
        assert!(proxy("https://k:1", Some("ftp://x"), &[]).is_err_and(|message| message.contains("is no proxy")));
    }
}
