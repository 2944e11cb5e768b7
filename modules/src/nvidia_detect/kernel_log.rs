//! What the kernel's log says of the GPUs since the machine booted.

use crate::{Host, Probe};

#[derive(Debug, Default)]
pub(super) struct Log {
    /// Whether the log could be read: it takes root.
    pub read: bool,
    /// GPU errors by number, with the address of the GPU, in order of appearance.
    pub xids: Vec<(String, u32)>,
    /// The kernel refused the module's signature.
    pub key_rejected: bool,
    /// The driver does not know this GPU.
    pub unsupported: bool,
    /// Lines that the driver wrote, the last few.
    pub lines: Vec<String>,
}

/// How many of the driver's lines are kept.
const KEPT: usize = 20;

/// Reads the log, from the ring buffer or from the journal of this boot.
pub(super) fn read(host: &dyn Host) -> Log {
    for argv in [&["dmesg"][..], &["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "cat"]] {
        if let Ok(output) = host.probe(&Probe::new(argv.iter().copied()))
            && output.success()
        {
            return parse(&output.stdout);
        }
    }
    Log::default()
}

fn parse(text: &str) -> Log {
    let mut log = Log { read: true, ..Log::default() };
    for line in text.lines() {
        let ours = line.contains("NVRM") || line.contains("nvidia");
        log.unsupported |= line.contains("NVRM") && line.contains("is not supported by the")
            || ours && line.contains("installed in this system is not supported");
        let rejected = line.contains("Key was rejected by service")
            || line.contains("Loading of unsigned module is rejected")
            || line.contains("Loading of module with unavailable key is rejected");
        log.key_rejected |= rejected;
        if let Some(xid) = xid_of(line)
            && !log.xids.contains(&xid)
        {
            log.xids.push(xid);
        }
        if ours || rejected {
            log.lines.push(line.to_owned());
        }
    }
    let surplus = log.lines.len().saturating_sub(KEPT);
    log.lines.drain(..surplus);
    log
}

/// Returns the GPU and the number of a line such as `NVRM: Xid (PCI:0000:ca:00): 79, pid=…`.
fn xid_of(line: &str) -> Option<(String, u32)> {
    let (_, rest) = line.split_once("NVRM: Xid (PCI:")?;
    let (address, rest) = rest.split_once("): ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((address.to_ascii_lowercase(), digits.parse().ok()?))
}

/// Returns what an Xid of the hardware means; `None` for those that applications cause.
///
/// Source: NVIDIA's catalogue of Xid errors.
pub(super) fn meaning(xid: u32) -> Option<&'static str> {
    Some(match xid {
        48 => "a double-bit memory error",
        62 => "the GPU's own controller halted",
        63 | 64 => "memory rows or pages were retired",
        74 => "an NVLink error",
        79 => "the GPU has fallen off the bus",
        92 => "a high rate of memory errors",
        94 | 95 => "an uncorrectable memory error",
        119 | 120 => "the GPU's firmware stopped answering",
        140 => "an unrecovered memory error",
        154 => "the GPU needs a reset or a reboot",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_xids_and_refusals() {
        let log = parse(concat!(
            "[1.0] NVRM: Xid (PCI:0000:CA:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
            "[1.1] NVRM: Xid (PCI:0000:ca:00): 79, pid=1\n",
            "[1.2] usb 1-1: new device\n",
        ));
        assert_eq!(log.xids, [("0000:ca:00".to_owned(), 79)]);
        assert_eq!(log.lines.len(), 2);
        assert!(parse("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service").key_rejected);
        assert!(
            parse("NVRM: The NVIDIA GPU 0000:00:10.0\nNVRM: installed in this system is not supported by the\n")
                .unsupported
        );
    }
}
