//! Files that another program generates: which one is the right one to edit instead, and programs that have one.

use super::daemon::{self, Service, USUAL_CONFIG};
use super::{Args, crio, k0s, microk8s, rancher, refused};
use crate::{Error, ErrorKind, Host, Plan};

const K3S: &str = "k3s generates its containerd's configuration at every start and finds nvidia-container-runtime by \
    itself: restart k3s and use RuntimeClass `nvidia`; to make it the default start k3s with \
    `--default-runtime nvidia`; other settings go to \
    `/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl` (`config-v3.toml.tmpl` for containerd 2), which \
    starts with `{{ template \"base\" . }}`";
const RKE2: &str = "RKE2 generates its containerd's configuration at every start and finds nvidia-container-runtime by \
    itself: restart rke2 and use RuntimeClass `nvidia`; to make it the default set `default-runtime: nvidia` in \
    `/etc/rancher/rke2/config.yaml`; other settings go to \
    `/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl` (`config-v3.toml.tmpl` for containerd 2)";
const K0S: &str = "k0s manages `/etc/k0s/containerd.toml`: put the runtime into a file of its own in \
    `/etc/k0s/containerd.d/`, with its tables in that very file, since imports of an import are not followed";
const MICROK8S: &str = "MicroK8s makes its containerd's configuration from \
    `/var/snap/microk8s/current/args/containerd-template.toml`: leave `config` out, and that template is edited";

/// Plans for a host whose Kubernetes runs another containerd than the usual one, or CRI-O; `None` for all others.
pub(super) fn plan(args: &Args, host: &dyn Host) -> Result<Option<Plan>, Error> {
    for distribution in [rancher::RKE2, rancher::K3S] {
        if distribution.is_here(host)? {
            return distribution.plan(args, host).map(Some);
        }
    }
    if k0s::is_here(host)? {
        return k0s::plan(args, host).map(Some);
    }
    if microk8s::is_here(host)? {
        return microk8s::plan(args, host).map(Some);
    }
    if belongs_to_crio(args, host)? {
        return crio::plan(args, host).map(Some);
    }
    Ok(None)
}

/// Files that say where a kubelet finds its container runtime; one that is named earlier overrules the others. Source:
/// kubeadm, whose flags go before the configuration.
const KUBELET: [&str; 5] = [
    "/etc/default/kubelet",
    "/etc/sysconfig/kubelet",
    "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kubelet/instance-config.yaml",
    "/var/lib/kubelet/config.yaml",
];

/// Whether the host's pods are CRI-O's where containerd may be installed, too: the user's word counts, then the
/// kubelet's, then which of both runs.
fn belongs_to_crio(args: &Args, host: &dyn Host) -> Result<bool, Error> {
    let has_config = host.stat(USUAL_CONFIG)?.is_some();
    if has_config && host.stat(crio::FOLDER)?.is_none() {
        return Ok(false);
    }
    let Some(runs) = crio::unit(host)? else { return Ok(false) };
    if args.service == crio::SERVICE {
        return Ok(true);
    }
    for path in KUBELET {
        if let Some(endpoint) = host.read(path)?.and_then(|bytes| endpoint_in(&String::from_utf8_lossy(&bytes))) {
            return Ok(endpoint.contains("crio"));
        }
    }
    match (runs, daemon::service(host, &args.service)?) {
        (true, Service::Running) => Err(refused(format!(
            "CRI-O and `{}` both run here, and no kubelet's files say which of them starts pods: stop the other, or name \
            it: `service: crio`, or `config: {USUAL_CONFIG}` for containerd",
            args.service
        ))),
        (true, Service::Stopped) | (_, Service::Unknown) => Ok(true),
        (false, Service::Running) => Ok(false),
        (false, Service::Stopped) => Ok(!has_config),
    }
}

/// Returns the address of `--container-runtime-endpoint=…` or `containerRuntimeEndpoint: …`.
fn endpoint_in(text: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let rests = lines.filter_map(|line| {
        ["container-runtime-endpoint", "containerRuntimeEndpoint"].iter().find_map(|key| Some(line.split_once(key)?.1))
    });
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '=' | '"' | '\'');
    let mut addresses =
        rests.map(|rest| rest.trim_start_matches(|c| c == ':' || is_edge(c)).split(is_edge).next().unwrap_or_default());
    addresses.rfind(|address| !address.is_empty()).map(str::to_owned)
}

/// Refuses a file that is generated or a template.
pub(super) fn refuse_generated(path: &str, text: &str) -> Result<(), Error> {
    let refused = |what: &str, advice: &str| {
        Err(Error::new(
            ErrorKind::Refused,
            format!("`{path}` is {what}, so an edit would be lost or break it: {advice}"),
        ))
    };
    let head: String = text.lines().take(10).collect::<Vec<_>>().join("\n").to_ascii_lowercase();
    if path.contains("/rancher/rke2/") || head.contains("generated by rke2") {
        return refused("generated by RKE2", RKE2);
    }
    if path.contains("/rancher/k3s/") || head.contains("generated by k3s") {
        return refused("generated by k3s", K3S);
    }
    if path.starts_with("/etc/k0s/") || path.starts_with("/run/k0s/") || head.contains("k0s_managed=true") {
        return refused("managed by k0s", K0S);
    }
    if path.contains("/snap/microk8s/") || text.contains("${SNAP") || text.contains("${RUNTIME}") {
        return refused("a template of MicroK8s", MICROK8S);
    }
    if let Some(line) = text.lines().position(|line| line.contains("{{") && !line.trim_start().starts_with('#')) {
        let advice = "give the file that is made from it to the program that makes it; in k3s's and RKE2's templates \
            the base template may already hold the same table, and a second one ends containerd";
        return refused(&format!("a template (line {})", line + 1), advice);
    }
    if let Some(line) = text.lines().position(|line| line.contains("${") && !line.trim_start().starts_with('#')) {
        let advice = "edit the file that its program makes, or the template by hand";
        return refused(&format!("a template with placeholders (line {})", line + 1), advice);
    }
    if head.contains("do not edit") {
        let advice = "its first lines say that it is generated: edit what it is generated from";
        return refused("generated", advice);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_s_runtime_is_found() {
        for (text, found) in [
            (
                "KUBELET_KUBEADM_ARGS=\"--container-runtime-endpoint=unix:///run/crio/crio.sock --v=2\"\n",
                Some("unix:///run/crio/crio.sock"),
            ),
            (
                "X='--a --container-runtime-endpoint unix:///run/containerd/containerd.sock'",
                Some("unix:///run/containerd/containerd.sock"),
            ),
            (
                "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: \"unix:///var/run/crio/crio.sock\"\nx: y\n",
                Some("unix:///var/run/crio/crio.sock"),
            ),
            ("# containerRuntimeEndpoint: unix:///run/crio/crio.sock\ncontainerRuntimeEndpoint: \"\"\n", None),
            ("KUBELET_EXTRA_ARGS=\n", None),
        ] {
            assert_eq!(endpoint_in(text).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn names_the_right_file() {
        let said = |path: &str, text: &str| refuse_generated(path, text).expect_err("is refused").to_string();
        let usual = "/etc/containerd/config.toml";
        assert!(
            said(usual, "# File generated by k3s. DO NOT EDIT. Use config.toml.tmpl instead.\n").contains("k3s/agent")
        );
        assert!(said(usual, "{{ template \"base\" . }}\n").contains("line 1"));
        assert!(said(usual, "# k0s_managed=true\nversion = 2\n").contains("/etc/k0s/containerd.d/"));
        assert!(said(usual, "version = 2\nx = \"${RUNTIME}\"\n").contains("containerd-template.toml"));
        assert!(refuse_generated(usual, "version = 2\n# {{ a comment }}\n").is_ok());
    }
}
