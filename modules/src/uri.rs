use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::decode::Arguments;
use crate::host::Map;
use crate::host::Put as _;
use crate::invocation::Invocation;
use crate::shared::{Http, yes};
use crate::transfer::Transfer;
use crate::{Content, Done, Error, ErrorKind, Exec, Host, Module, Output, Plan, paths};

/// Send a request to a web server from the host and look at the answer.
///
/// ```yaml
/// - uri:
///     url: http://localhost:10248/healthz
///     return_content: true
///   register: health
///   until: health.status == 200
/// ```
#[derive(Debug, Arguments, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Where the request goes.
    url: String,
    /// The request's method.
    #[serde(default = "get")]
    method: String,
    /// What is sent: text, or data that `body_format` writes.
    body: Option<Value>,
    /// How `body` is written.
    #[serde(default)]
    body_format: BodyFormat,
    /// A file of the host that is sent, in place of `body`.
    src: Option<String>,
    /// Accepted with `src`, which is always a file of the host.
    #[serde(default)]
    remote_src: bool,
    /// Not supported: download with `get_url`.
    dest: Option<String>,
    /// Return the answer's text as `content`.
    #[serde(default)]
    return_content: bool,
    /// Which statuses are right.
    #[serde(default = "ok")]
    status_code: Vec<u16>,
    /// Headers of the request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Whether redirections are followed: `safe` for GET and HEAD only, `all`, `none`.
    #[serde(default)]
    follow_redirects: Follow,
    /// How long the server may be silent, in seconds.
    #[serde(default = "timeout")]
    timeout: u64,
    #[serde(rename = "+http")]
    #[schemars(flatten)]
    http: Http,
    /// Ask caches on the way for a fresh answer.
    #[serde(default)]
    force: bool,
    /// Send nothing when this path exists; `*`, `?` and `[…]` match names.
    creates: Option<String>,
    /// Send only when this path exists; `*`, `?` and `[…]` match names.
    removes: Option<String>,
    /// Send it through this socket of the host.
    unix_socket: Option<String>,
    /// Whether a compressed answer is unpacked.
    #[serde(default = "yes")]
    decompress: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum BodyFormat {
    /// As it is; data is written as JSON.
    #[default]
    Raw,
    /// As JSON; text is taken as JSON already.
    Json,
    /// As a web form.
    FormUrlencoded,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Follow {
    #[serde(alias = "yes", alias = "true")]
    All,
    #[serde(alias = "no", alias = "false")]
    None,
    #[default]
    #[serde(alias = "urllib2")]
    Safe,
}

fn get() -> String {
    "GET".to_owned()
}

fn ok() -> Vec<u16> {
    vec![200]
}

fn timeout() -> u64 {
    30
}

impl Module for Args {
    const CONVERGENT: bool = false;

    fn plan(&self, host: &dyn Host) -> Result<Plan, Error> {
        if self.dest.is_some() {
            return Err(bad("`dest` is not supported: download with `get_url`"));
        }
        if self.src.is_some() && self.body.is_some() {
            return Err(bad("give `body` or `src`, not both"));
        }
        if self.src.is_some() && !self.remote_src {
            return Err(bad(
                "`src` is a file of the host: say so with `remote_src: true`, or put the text into `body`",
            ));
        }
        if !self.method.bytes().all(|byte| byte.is_ascii_alphabetic()) || self.method.is_empty() {
            return Err(bad(format!("`method: {}` is no method", self.method)));
        }
        let invocation =
            Invocation { creates: self.creates.as_deref(), removes: self.removes.as_deref(), ..Invocation::default() };
        let mut plan = invocation.plan(host, self.request(host)?, Value::Null)?;
        plan.result.retain(|key, _| !matches!(key.as_str(), "cmd" | "rc" | "stderr"));
        Ok(plan.with("url", self.url.as_str()).with("changed", false))
    }

    fn report(&self, _host: &dyn Host, done: &[Done], result: &mut Map) -> Result<(), Error> {
        let Some(output) = done.iter().rev().find_map(|done| done.output.as_ref()) else { return Ok(()) };
        result.put("elapsed", (output.ended_s - output.started_s) as u64);
        let Some(answer) = Answer::read(output) else {
            let kind = if output.rc == 127 { ErrorKind::Refused } else { ErrorKind::Failed };
            let why = match output.rc {
                127 => "this host has no curl; install it first",
                _ => output.stderr.trim(),
            };
            let error = Error::new(kind, format!("Status code was -1 and not {:?}: {why}", self.status_code));
            return Err(error.with("status", -1).with("url", self.url.as_str()).with("redirected", false));
        };
        let right = self.status_code.contains(&answer.status);
        result.extend(answer.result(self.return_content || !right));
        if !right {
            let why = format!("HTTP Error {}: {}", answer.status, answer.reason);
            result.put("failed", true);
            result.put("msg", format!("Status code was {} and not {:?}: {why}", answer.status, self.status_code));
        }
        Ok(())
    }
}

impl Args {
    fn request(&self, host: &dyn Host) -> Result<Exec, Error> {
        let method = self.method.to_ascii_uppercase();
        let mut headers = self.headers.clone();
        let has =
            |headers: &BTreeMap<String, String>, name: &str| headers.keys().any(|key| key.eq_ignore_ascii_case(name));
        let body = self.written_body()?;
        let content_type = match self.body_format {
            BodyFormat::Json => Some("application/json"),
            BodyFormat::FormUrlencoded => Some("application/x-www-form-urlencoded"),
            BodyFormat::Raw => None,
        };
        if let Some(content_type) = content_type.filter(|_| body.is_some() && !has(&headers, "content-type")) {
            headers.insert("Content-Type".into(), content_type.into());
        }
        if self.force && !has(&headers, "cache-control") {
            headers.insert("Cache-Control".into(), "no-cache".into());
        }
        let transfer = Transfer {
            follow_redirects: match self.follow_redirects {
                Follow::All => true,
                Follow::None => false,
                Follow::Safe => matches!(method.as_str(), "GET" | "HEAD"),
            },
            ..self.http.transfer(&self.url, &headers, self.timeout)
        };
        let mut config = transfer.curl()?;
        config.push_str("include\nwrite-out = \"\\n%{num_redirects} %{url_effective}\"\n");
        if self.decompress {
            config.push_str("compressed\n");
        }
        let mut files = Vec::new();
        let mut argv = vec!["curl".to_owned(), "--config".into(), "{scratch}/curl".into()];
        match method.as_str() {
            "HEAD" => argv.push("--head".into()),
            "GET" if body.is_none() && self.src.is_none() => {}
            method => argv.extend(["--request".into(), method.to_owned()]),
        }
        if let Some(socket) = &self.unix_socket {
            argv.extend(["--unix-socket".into(), paths::expand(host, socket)?]);
        }
        if let Some(src) = &self.src {
            argv.extend(["--data-binary".into(), format!("@{}", paths::expand(host, src)?)]);
        } else if let Some(body) = body {
            argv.extend(["--data-binary".into(), "@{scratch}/body".into()]);
            files.push(("body".to_owned(), Content::Inline(body.into_bytes())));
        }
        files.push(("curl".to_owned(), Content::Inline(config.into_bytes())));
        Ok(Exec { files, ..Exec::new(argv) })
    }

    fn written_body(&self) -> Result<Option<String>, Error> {
        let Some(body) = self.body.as_ref().filter(|body| !body.is_null()) else { return Ok(None) };
        Ok(Some(match (body, self.body_format) {
            (Value::String(text), _) => text.clone(),
            (Value::Object(fields), BodyFormat::FormUrlencoded) => {
                let pairs = fields.iter().flat_map(|(key, value)| match value {
                    Value::Array(items) => items.iter().map(|item| (key.as_str(), item)).collect(),
                    value => vec![(key.as_str(), value)],
                });
                form(pairs)
            }
            (Value::Array(items), BodyFormat::FormUrlencoded) => {
                let pairs = items.iter().map(|item| match item.as_array().map(Vec::as_slice) {
                    Some([Value::String(key), value]) => Ok((key.as_str(), value)),
                    _ => Err(bad("`body` of a form is a mapping or a list of `[name, value]`")),
                });
                form(pairs.collect::<Result<Vec<_>, _>>()?)
            }
            (other, _) => other.to_string(),
        }))
    }
}

/// Writes a web form.
fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a Value)>) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    };
    let pairs = pairs.into_iter().map(|(key, value)| format!("{}={}", escaped(key), escaped(&text(value))));
    pairs.collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            b' ' => "+".to_owned(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// What a server answered last, after its redirections.
struct Answer<'a> {
    status: u16,
    reason: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a str,
    redirected: bool,
    url: &'a str,
}

impl Answer<'_> {
    /// Reads what `curl --include` printed; `None` when there was no answer.
    fn read(output: &Output) -> Option<Answer<'_>> {
        let (mut rest, trailer) = output.stdout.rsplit_once('\n')?;
        let (redirects, url) = trailer.split_once(' ')?;
        loop {
            let (head, body) = rest.split_once("\r\n\r\n").or_else(|| Some((rest.strip_suffix("\r\n")?, "")))?;
            let mut lines = head.split("\r\n");
            let mut words = lines.next()?.splitn(3, ' ');
            let status: u16 =
                words.next().filter(|version| version.starts_with("HTTP/")).and(words.next())?.parse().ok()?;
            let reason = words.next().unwrap_or_default();
            let interim = status < 200 || (300..400).contains(&status) || reason == "Connection established";
            rest = body;
            if !(interim && rest.starts_with("HTTP/")) {
                let headers = lines.filter_map(|line| line.split_once(':').map(|(name, value)| (name, value.trim())));
                return Some(Answer {
                    status,
                    reason,
                    headers: headers.collect(),
                    body,
                    redirected: redirects != "0",
                    url,
                });
            }
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    fn result(&self, with_content: bool) -> Map {
        let mut result = Map::new();
        let mut cookies = Map::new();
        for (name, value) in &self.headers {
            let key = name.to_ascii_lowercase().replace('-', "_");
            if key == "set_cookie"
                && let Some((name, value)) = value.split(';').next().and_then(|pair| pair.split_once('='))
            {
                cookies.insert(name.trim().to_owned(), value.trim().into());
            }
            let joined = match result.get(&key).and_then(Value::as_str) {
                Some(earlier) => format!("{earlier}, {value}"),
                None => (*value).to_owned(),
            };
            result.insert(key, joined.into());
        }
        let cookies_string: Vec<String> =
            cookies.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
        let content_type = self.header("content-type").unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type.ends_with("json")
            && let Ok(parsed) = serde_json::from_str::<Value>(self.body)
        {
            result.put("json", parsed);
        }
        if with_content {
            result.put("content", self.body);
        }
        for (key, value) in [
            ("status", json!(self.status)),
            ("url", json!(self.url)),
            ("redirected", json!(self.redirected)),
            ("cookies", Value::from(cookies)),
            ("cookies_string", json!(cookies_string.join("; "))),
            ("msg", json!(format!("OK ({} bytes)", self.header("content-length").unwrap_or("unknown")))),
        ] {
            result.insert(key.into(), value);
        }
        result
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Arguments, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_counts() {
        let stdout = "HTTP/1.1 302 Found\r\nLocation: /b\r\n\r\nHTTP/2 200 \r\nContent-Type: application/json; charset=utf-8\r\n\
                      Set-Cookie: a=1; Path=/\r\nset-cookie: b=2\r\n\r\n{\"x\": [1]}\n1 http://h/b";
        let output = Output { stdout: stdout.into(), ..Output::default() };
        let result = Answer::read(&output).expect("an answer").result(true);
        assert_eq!(
            (&result["status"], &result["json"]["x"][0], &result["redirected"]),
            (&json!(200), &json!(1), &json!(true))
        );
        assert_eq!((&result["cookies"]["b"], &result["url"]), (&json!("2"), &json!("http://h/b")));
        assert!(Answer::read(&Output { stdout: "\n0 http://h".into(), ..Output::default() }).is_none());
    }

    #[test]
    fn forms_are_escaped() {
        let fields = json!({"a b": "c&d", "list": [1, true]});
        let args =
            Args { body: Some(fields), body_format: BodyFormat::FormUrlencoded, ..decoded(json!({"url": "http://h"})) };
        assert_eq!(args.written_body().ok().flatten().as_deref(), Some("a+b=c%26d&list=1&list=True"));
    }

    fn decoded(args: Value) -> Args {
        crate::arguments(args.as_object().expect("an object")).expect("arguments of `uri`")
    }
}
