//! Requests over HTTP by the host's own curl or wget. What is secret goes into a private file, never into a command
//! line, which everybody on the host could read.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{Content, Error, ErrorKind, Host, Probe};

/// Who asks for a URL, and how.
#[derive(Debug, Clone, Copy)]
pub struct Transfer<'a> {
    pub url: &'a str,
    pub headers: &'a BTreeMap<String, String>,
    pub user: Option<&'a str>,
    pub password: Option<&'a str>,
    pub agent: &'a str,
    /// How long the server may be silent.
    pub timeout_s: u64,
    pub follow_redirects: bool,
    pub validate_certs: bool,
    pub use_proxy: bool,
    pub use_netrc: bool,
    pub ca_path: Option<&'a str>,
    pub client_cert: Option<&'a str>,
    pub client_key: Option<&'a str>,
}

/// A request without headers, name or password.
pub(crate) fn plain<'a>(url: &'a str, no_headers: &'a BTreeMap<String, String>, validate_certs: bool) -> Transfer<'a> {
    Transfer {
        url,
        headers: no_headers,
        user: None,
        password: None,
        agent: AGENT,
        timeout_s: 30,
        follow_redirects: true,
        validate_certs,
        use_proxy: true,
        use_netrc: true,
        ca_path: None,
        client_cert: None,
        client_key: None,
    }
}

/// How this program names itself to servers.
pub(crate) const AGENT: &str = "kubeon-run";

impl Transfer<'_> {
    /// Returns a file for `curl --config`.
    ///
    /// # Errors
    /// [`ErrorKind::Arguments`] when the URL or a header can't be sent.
    pub fn curl(&self) -> Result<String, Error> {
        self.check()?;
        let mut lines = vec![
            "silent".to_owned(),
            "show-error".to_owned(),
            option("url", self.url),
            option("user-agent", self.agent),
            format!("connect-timeout = {}", self.timeout_s),
            format!("speed-time = {}", self.timeout_s),
            "speed-limit = 1".to_owned(),
            // No `{a,b}` and `[1-9]` in URLs.
            "globoff".to_owned(),
        ];
        lines.extend(self.headers.iter().map(|(name, value)| option("header", &header(name, value))));
        if let Some(user) = self.user {
            lines.push(option("user", &format!("{user}:{}", self.password.unwrap_or_default())));
        } else if self.use_netrc {
            lines.push("netrc-optional".to_owned());
        }
        if self.follow_redirects {
            lines.push("location".to_owned());
        }
        if !self.validate_certs {
            lines.push("insecure".to_owned());
        }
        if !self.use_proxy {
            lines.push(option("noproxy", "*"));
        }
        for (name, value) in [("cacert", self.ca_path), ("cert", self.client_cert), ("key", self.client_key)] {
            lines.extend(value.map(|value| option(name, value)));
        }
        lines.push(String::new());
        Ok(lines.join("\n"))
    }

    /// Returns a file for `wget --config`.
    ///
    /// # Errors
    /// As [`Transfer::curl`].
    pub fn wget(&self) -> Result<String, Error> {
        self.check()?;
        let mut lines = vec![
            "verbose = off".to_owned(),
            "tries = 1".to_owned(),
            format!("timeout = {}", self.timeout_s),
            format!("user_agent = {}", self.agent),
        ];
        lines.extend(self.headers.iter().map(|(name, value)| format!("header = {name}: {value}")));
        for (name, value) in [
            ("user", self.user),
            ("password", self.user.and(self.password)),
            ("ca_certificate", self.ca_path),
            ("certificate", self.client_cert),
            ("private_key", self.client_key),
        ] {
            lines.extend(value.map(|value| format!("{name} = {value}")));
        }
        for (name, on) in [
            ("check_certificate", self.validate_certs),
            ("use_proxy", self.use_proxy),
            ("netrc", self.use_netrc && self.user.is_none()),
        ] {
            lines.push(format!("{name} = {}", if on { "on" } else { "off" }));
        }
        lines.push(String::new());
        Ok(lines.join("\n"))
    }

    /// Whether the request is so plain that any wget can make it, that of busybox too.
    fn plain(&self) -> bool {
        self.headers.is_empty()
            && self.user.is_none()
            && self.validate_certs
            && self.ca_path.is_none()
            && self.client_cert.is_none()
    }

    /// Returns the private files that [`FETCH`] reads from the folder in `$1`.
    ///
    /// # Errors
    /// As [`Transfer::curl`].
    pub fn files(&self) -> Result<Vec<(String, Content)>, Error> {
        let curl = format!("{}fail\nwrite-out = \"status %{{http_code}}\\n\"\n", self.curl()?);
        let mut files = vec![("curl", curl), ("wget", self.wget()?), ("url", format!("{}\n", self.url))];
        if self.plain() {
            files.push(("plain", String::new()));
        }
        Ok(files.into_iter().map(|(name, text)| (name.to_owned(), Content::Inline(text.into_bytes()))).collect())
    }

    /// Returns the text at the URL, downloaded by the host.
    ///
    /// # Errors
    /// As [`failure`].
    pub fn read(&self, host: &dyn Host) -> Result<String, Error> {
        self.fetched(host, "cat \"$1/text\"")
    }

    /// As [`Transfer::read`], for what may be no text, such as a key.
    ///
    /// # Errors
    /// As [`Transfer::read`].
    pub fn bytes(&self, host: &dyn Host) -> Result<Vec<u8>, Error> {
        let text = self.fetched(host, "base64 <\"$1/text\"")?;
        let damaged = |error| Error::new(ErrorKind::Failed, format!("fetch `{}`: {error}", self.url));
        STANDARD.decode(text.replace(['\n', '\r'], "")).map_err(damaged)
    }

    fn fetched(&self, host: &dyn Host, print: &str) -> Result<String, Error> {
        let mut files = Vec::new();
        for (name, content) in self.files()? {
            files.push((name, host.content(&content)?));
        }
        let script = format!("{FETCH}fetch \"$1\" \"$1/text\" >&2 && {print}");
        let probe = Probe { files, ..Probe::of(&["/bin/sh", "-c", &script, "fetch", "{scratch}"]) };
        let output = host.probe(&probe)?;
        if output.success() { Ok(output.stdout) } else { Err(failure(self.url, output.rc, &output.stderr)) }
    }

    fn check(&self) -> Result<(), Error> {
        let known = ["http://", "https://", "ftp://", "file://"];
        if !known.iter().any(|scheme| self.url.to_ascii_lowercase().starts_with(scheme)) {
            return Err(bad(format!(
                "`{}` is no URL that can be fetched: expected http, https, ftp or file",
                self.url
            )));
        }
        let values = self.headers.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
        let texts = values.chain([self.url, self.agent]).chain(self.user).chain(self.password);
        match texts.into_iter().find(|text| text.contains(['\n', '\r', '\0'])) {
            Some(text) => Err(bad(format!("`{}` holds a line break, which no request can carry", text.escape_debug()))),
            None => Ok(()),
        }
    }
}

/// A shell function that downloads to the file in `$2`, with the files of [`Transfer::files`] in `$1`. It returns
/// 90 where the host has nothing to download with.
pub(crate) const FETCH: &str = r#"
fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl --config "$1/curl" --output "$2"
    elif wget --version 2>/dev/null | grep -q 'GNU Wget'; then
        wget --config="$1/wget" --input-file="$1/url" --output-document="$2"
    elif [ -f "$1/plain" ] && command -v wget >/dev/null 2>&1; then
        read -r url <"$1/url"
        wget -q -O "$2" "$url"
    else
        return 90
    fi
}
"#;

/// Says what a failed [`FETCH`] means.
pub(crate) fn failure(url: &str, rc: i32, stderr: &str) -> Error {
    let (kind, why) = match rc {
        90 => (ErrorKind::Refused, "this host has neither curl nor a wget that can do it; install `curl` first"),
        _ => (ErrorKind::Failed, stderr.trim()),
    };
    Error::new(kind, format!("download `{url}`: {why}")).with("url", url)
}

fn header(name: &str, value: &str) -> String {
    // curl takes "Name:" as "send no such header" and "Name;" as an empty one.
    if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") }
}

/// Returns a line of a curl configuration. Source: `curl(1)`, `--config`.
fn option(name: &str, value: &str) -> String {
    format!("{name} = \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t"))
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_can_not_leave_their_line() {
        let headers = BTreeMap::from([("X".to_owned(), "a\"b\\c".to_owned())]);
        let transfer = Transfer {
            url: "http://host/x",
            headers: &headers,
            user: Some("me"),
            password: Some("p\"w"),
            agent: AGENT,
            timeout_s: 10,
            follow_redirects: true,
            validate_certs: false,
            use_proxy: true,
            use_netrc: true,
            ca_path: None,
            client_cert: None,
            client_key: None,
        };
        let config = transfer.curl().expect("a request");
        assert!(
            config.contains("header = \"X: a\\\"b\\\\c\"\n") && config.contains("user = \"me:p\\\"w\"\n"),
            "{config}"
        );
        assert!(config.contains("insecure\n") && !config.contains("netrc"), "{config}");
        let headers = BTreeMap::from([("X".to_owned(), "a\nuser = b".to_owned())]);
        assert!(Transfer { headers: &headers, ..transfer }.curl().is_err());
        assert!(Transfer { url: "gopher://x", ..transfer }.wget().is_err());
    }
}
