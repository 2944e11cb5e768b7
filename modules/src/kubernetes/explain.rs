//! What went wrong between here and an API server, in words that say what to do.

use std::error::Error as _;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::kubeconfig::{Target, certificates_of};
use crate::{Error, ErrorKind, KubeAnswer, KubeRequest};

/// How a request failed, as far as trying again goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing was sent.
    Refused,
    /// The connection ended; the server may have got the request.
    Broken,
    /// The server's name has no address.
    Lookup,
    Other,
}

pub(super) fn fault_of(error: &kube::Error) -> Fault {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            match error.kind() {
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::TimedOut => return Fault::Refused,
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected
                | io::ErrorKind::UnexpectedEof => return Fault::Broken,
                _ => {}
            }
        }
        next = error.source();
    }
    let said = chain(error);
    match () {
        () if said.contains("lookup address") || said.contains("dns error") => Fault::Lookup,
        () if ["closed before message", "connection closed", "operation was canceled", "IncompleteMessage"]
            .iter()
            .any(|part| said.contains(part)) =>
        {
            Fault::Broken
        }
        () => Fault::Other,
    }
}

/// Returns an error with its causes, outermost first, each said once.
fn chain(error: &kube::Error) -> String {
    let mut said = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let text = error.to_string();
        if !said.contains(&text) {
            said.push_str(": ");
            said.push_str(&text);
        }
        next = error.source();
    }
    said
}

/// Returns the innermost cause, which is what a person wants to read.
fn cause(error: &kube::Error) -> String {
    let mut last: &(dyn std::error::Error + 'static) = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

impl Target {
    fn says(&self, message: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Host, format!("API server `{}` ({}): {message}", self.server, self.origin))
    }

    /// The client itself can't be made: credentials are damaged or their program fails.
    pub(super) fn unusable(&self, error: &kube::Error) -> Error {
        let hint = self.config.auth_info.exec.as_ref().and_then(|exec| exec.install_hint.as_deref());
        let hint = hint.map(|hint| format!("; {}", hint.trim())).unwrap_or_default();
        self.says(format_args!("{}{hint}", chain(error)))
    }

    /// The program of the kubeconfig that gives credentials did not end in time.
    pub(super) fn no_credentials(&self, limit: Duration) -> Error {
        let command = self.config.auth_info.exec.as_ref().and_then(|exec| exec.command.as_deref()).unwrap_or_default();
        self.says(format_args!("`{command}`, which gives its credentials, did not end within {} s", limit.as_secs()))
    }

    /// No answer came: says why and what to look at.
    pub(super) fn unreachable(&self, error: &kube::Error, limit: Duration) -> Error {
        let said = chain(error);
        let host = self.config.tls_server_name.as_deref().or(self.config.cluster_url.host()).unwrap_or_default();
        let has = |part: &str| said.contains(part);
        match fault_of(error) {
            Fault::Refused | Fault::Broken => {
                let proxy = self.config.proxy_url.as_ref();
                let proxy = proxy.map(|proxy| format!(", by the proxy `{}`", bare(proxy))).unwrap_or_default();
                self.says(format_args!("can't be reached, tried for {} s{proxy}: {}", limit.as_secs(), cause(error)))
            }
            Fault::Lookup => self.says(format_args!("the name `{host}` has no address here: {}", cause(error))),
            Fault::Other if has("UnknownIssuer") && self.config.root_cert.is_none() => self.says(
                "its certificate is signed by nobody whom this machine trusts, and the kubeconfig holds no \
                 `certificate-authority-data` for it",
            ),
            Fault::Other if has("UnknownIssuer") || has("BadSignature") => self.says(
                "its certificate is not signed by the certificate authority that the kubeconfig holds: is it the \
                 kubeconfig of another or of an earlier cluster?",
            ),
            Fault::Other if has("certificate expired") || has("certificate: Expired") => self.says(
                "its own certificate has expired: renew it on the control plane, with kubeadm by `kubeadm certs \
                 renew apiserver`",
            ),
            Fault::Other if has("NotValidForName") || has("not valid for name") || has("not valid for any names") => {
                self.says(format_args!(
                    "its certificate is not for `{host}`: use a name that it holds as `server`, or set \
                     `tls-server-name` in the kubeconfig"
                ))
            }
            Fault::Other if has("NotValidYet") || has("not valid yet") => {
                self.says("its certificate is not valid yet: is the clock of this machine right?")
            }
            Fault::Other => self.says(said),
        }
    }

    /// The time was up while an answer was due.
    pub(super) fn silent(&self, request: &KubeRequest, limit: Duration) -> Error {
        self.says(format_args!("no answer to {} {} within {} s", request.method, request.path, limit.as_secs()))
    }

    /// 401: the server does not know who asks.
    pub(super) fn unauthorized(&self) -> Error {
        let expired = self.certificate.as_deref().and_then(expiry_of).filter(|(_, seconds)| {
            SystemTime::now().duration_since(UNIX_EPOCH).is_ok_and(|now| now.as_secs() as i64 > *seconds)
        });
        match expired {
            Some((date, _)) => self.says(format_args!(
                "the client certificate of the kubeconfig expired on {date}: renew it, with kubeadm by `kubeadm \
                 certs renew admin.conf`"
            )),
            None => self.says("it does not accept the credentials of the kubeconfig (401 Unauthorized)"),
        }
    }

    /// 403: the server knows who asks and says no.
    pub(super) fn forbidden(&self, request: &KubeRequest, answer: &KubeAnswer) -> Error {
        let said = answer.body.get("message").and_then(|message| message.as_str());
        let path = request.path.split('?').next().unwrap_or_default();
        let said = said.map_or_else(|| format!("{} {path}", request.method), str::to_owned);
        let hint = if said.contains("\"system:anonymous\"") { "; the kubeconfig gives no credentials" } else { "" };
        self.says(format_args!("forbidden: {said}{hint}")).with("status", 403)
    }
}

/// Returns a proxy's URL without its user and password.
fn bare(proxy: &http::Uri) -> String {
    let authority = proxy.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{}://{host}", proxy.scheme_str().unwrap_or("http"))
}

/// Returns the day on which the first certificate of a PEM text ends, and that moment in seconds since 1970.
fn expiry_of(pem: &[u8]) -> Option<(String, i64)> {
    let der = certificates_of(pem).into_iter().next()?;
    // Certificate ::= SEQUENCE { TBSCertificate ::= SEQUENCE { [0] version, serial, algorithm, issuer, validity … } }
    let (_, certificate, _) = element(&der)?;
    let (_, mut rest, _) = element(certificate)?;
    let (tag, _, after) = element(rest)?;
    if tag == 0xa0 {
        rest = after;
    }
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (_, validity, _) = element(rest)?;
    let (_, _, after) = element(validity)?;
    let (tag, time, _) = element(after)?;
    let text = std::str::from_utf8(time).ok()?;
    // UTCTime has two digits of the year, of which 50 and more stand for 19xx (RFC 5280, 4.1.2.5.1).
    let text = match tag {
        0x17 if text.get(..2)? < "50" => format!("20{text}"),
        0x17 => format!("19{text}"),
        _ => text.to_owned(),
    };
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let seconds = days_of(year, month, day) * 86_400 + number(8, 10)? * 3600 + number(10, 12)? * 60 + number(12, 14)?;
    Some((format!("{year:04}-{month:02}-{day:02}"), seconds))
}

/// Reads one DER element: its tag, its content and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        _ => {
            let count = usize::from(first & 0x7f);
            let (digits, rest) = rest.split_at_checked(count).filter(|_| count <= 4)?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        }
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Returns the days from 1970-01-01 to a day of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_start = usize::try_from(month - 1).ok().and_then(|nth| before.get(nth)).copied().unwrap_or_default();
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + month_start + i64::from(leap && month > 2) + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(days_of(1970, 1, 1), 0);
        assert_eq!(days_of(2000, 3, 1), 11_017);
        assert_eq!(days_of(2026, 12, 1), 20_788);
    }

    #[test]
    fn a_certificate_says_when_it_ends() {
        let pem = b"\
-----BEGIN CERTIFICATE-----
MIIBbDCCAROgAwIBAgIUB5a3tPi6t5QkYqy7Z00+WzEqyY0wCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAeFw0yNjEyMDEyMTIwNDVaFw0yNjEyMDIyMTIwNDVaMAwx
CjAIBgNVBAMMAXgwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARJdnlMzjkPSZGv
mEtfOBdoqzJy2q0OaxyIWKSsFMB6Zt74rwsNWutxRXeTBgEkR8LFYxwy0EDhHYmj
i80KpGNto1MwUTAdBgNVHQ4EFgQUm1EEYwwV1kWmta4q+WrCrX4f+kMwHwYDVR0j
BBgwFoAUm1EEYwwV1kWmta4q+WrCrX4f+kMwDwYDVR0TAQH/BAUwAwEB/zAKBggq
hkjOPQQDAgNHADBEAiBfIcFJK0BwxwYeicCVhasqjgN97P/iPRkUmadd70BIZAIg
FcYrkQNwhizHwtST1WkH0qhpWAxnkpscaYt7LcnZaCo=
-----END CERTIFICATE-----
";
        assert_eq!(expiry_of(pem), Some(("2026-12-02".to_owned(), 1_796_246_445)));
        assert_eq!(expiry_of(&pem[..200]), None);
    }

    #[test]
    fn a_certificate_that_has_expired_is_why_one_is_not_known() {
        let pem = "\
-----BEGIN CERTIFICATE-----
MIIBBDCBq6ADAgECAgEHMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMMAXgwHhcNMjQw
MTAxMDAwMDAwWhcNMjUwMTAxMDAwMDAwWjAMMQowCAYDVQQDDAF4MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEoO1y/2IeOuhBzSaPxp6lTB4i/GdQhdHLSSz66sBH
6BfC/ZhrDfT2kxnsCKsTo8brVUv6tU6tCG4Fin07IwpayDAKBggqhkjOPQQDAgNI
ADBFAiAXzmaFhMWJHQkcfBja4W8rosnd903lrANbpRjuifTR0wIhAJ8ub43vvekm
m64YaWm1nn+6wmQ5qGz2mIxUvkG62EJR
-----END CERTIFICATE-----
";
        let target = |certificate: Option<&str>| Target {
            config: kube::Config::new("https://10.0.0.1:6443".parse().expect("a URL")),
            server: "https://10.0.0.1:6443".to_owned(),
            origin: "context `admin` of `/etc/kubernetes/admin.conf`".to_owned(),
            certificate: certificate.map(|pem| pem.as_bytes().to_vec()),
        };
        let said = target(Some(pem)).unauthorized().to_string();
        assert!(said.contains("the client certificate of the kubeconfig expired on 2025-01-01: renew it"), "{said}");
        assert!(said.contains("context `admin` of `/etc/kubernetes/admin.conf`"), "{said}");
        let said = target(None).unauthorized().to_string();
        assert!(said.contains("does not accept the credentials"), "{said}");
    }
}
