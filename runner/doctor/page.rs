//! The page that lists every diagnosis with its fix, made from the table.

use super::show::address;
use super::{Diagnosis, Link, table};

const HEAD: &str = "\
# Why a GPU is not seen

`kubeon-run doctor` follows the chain from the PCI bus to the pod, on every host and in the cluster, and shows the first
link that is broken: what was seen, what follows from it, who has to act, and how to mend it. It only reads.

    kubeon-run doctor                                  # this machine, and the cluster where there is a kubeconfig
    kubeon-run doctor -i inventory/hosts.yml -b        # every host, as root: without it some links can't be looked at
    kubeon-run doctor -i inventory/hosts.yml -l gpu-n3 -v    # one host, with the whole chain
    kubectl logs -n kube-system nvidia-device-plugin-daemonset-x2x4v | kubeon-run doctor --text -
    kubeon-run doctor -i inventory/hosts.yml --fix     # show what of gpu.yml mends it, run that, look again

Hosts are reached as in any run: `-i`, `-l`, `-u`, `-k`, `-K`, `-b`, `-e` and the inventory's variables mean the same. The
cluster is asked from this machine, with the kubeconfig of `--kubeconfig`, else, as in gpu.yml, that of the host
`gpu_control_plane` or of the variable `kubeconfig`, else `$KUBECONFIG`, `~/.kube/config`, or the administrator's of the
Kubernetes distribution where this machine has it. `--no-cluster` leaves it out. Nodes that are no hosts of the inventory
are judged by what the cluster knows of them.

`--text FILE` explains a message that somebody pasted: a log of the kubelet, of containerd, of the device plugin, an event,
the output of apt or of nvidia-smi. `--output json` and `--output sarif` are for programs.

| exit status | what it says |
|---|---|
| 0 | nothing is wrong |
| 3 | GPUs can be had; something will get in their way |
| 2 | GPUs can't be had on some host |
| 4 | a host could not be reached |
| 6 | both of the last two |
| 1 | the command itself failed |

What a log says counts only where something is broken now: messages of a fault that was mended prove nothing.

A diagnosis is an entry of `runner/doctor/table/`, and has a case in `tests/doctor/`. Those below are all of them, in the
order of the chain. \"Says\" is what logs, events and commands say of it, `*` for anything between.
";

/// Returns the page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for link in Link::ALL {
        page.push_str(&format!("\n## {}\n", heading(link)));
        for diagnosis in table::all().filter(|diagnosis| diagnosis.link == link) {
            page.push_str(&section(diagnosis));
        }
    }
    page
}

fn heading(link: Link) -> String {
    let name = link.name();
    let mut letters = name.chars();
    letters.next().map(|first| format!("{}{}", first.to_uppercase(), letters.as_str())).unwrap_or_default()
}

fn section(diagnosis: &Diagnosis) -> String {
    let Diagnosis { id, severity, owner, what, why, fix, step, says, issues, .. } = diagnosis;
    let mut text = format!("\n### {id}\n\n{}: {what}. {}.\n\n", sentence(severity.name()), sentence(why));
    text.push_str(&format!("- Owner: {}\n- Fix: {fix}\n", owner.name()));
    if let Some(step) = step {
        text.push_str(&format!("- `kubeon-run playbooks/gpu.yml --tags {}` does it\n", step.tag()));
    }
    if !says.is_empty() {
        let says: Vec<String> = says.iter().map(|message| code(message)).collect();
        text.push_str(&format!("- Says: {}\n", says.join(", ")));
    }
    if !issues.is_empty() {
        let issues: Vec<String> = issues.iter().map(|issue| format!("[{issue}]({})", address(issue))).collect();
        text.push_str(&format!("- Reports: {}\n", issues.join(", ")));
    }
    text
}

/// Writes text as code, even where it holds backticks.
fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| format!("{}{}", first.to_uppercase(), letters.as_str())).unwrap_or_default()
}
