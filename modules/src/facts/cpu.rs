//! Processors, from `/proc/cpuinfo`.

use serde_json::Value;

use super::map;
use crate::host::Map;
use crate::host::Put as _;

/// Room for the processors of any host: 65,536 are more than Linux can be built for.
const MASK_WORDS: usize = 1024;

/// Returns how many processors this process may run on, whatever share of their time a control group leaves it.
pub(super) fn usable() -> Option<usize> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the mask is as large as it is said to be, and any bits are a number.
    let status = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    (status == 0).then(|| mask.iter().map(|word| word.count_ones() as usize).sum())
}

/// Numbers by name, in the order in which the names were first seen.
#[derive(Default)]
struct Seen(Vec<(String, u64)>);

impl Seen {
    fn set(&mut self, name: &str, number: u64) {
        match self.0.iter_mut().find(|(seen, _)| seen == name) {
            Some((_, old)) => *old = number,
            None => self.0.push((name.to_owned(), number)),
        }
    }

    fn add(&mut self, name: &str) {
        if self.0.iter().all(|(seen, _)| seen != name) {
            self.set(name, 1);
        }
    }

    fn first(&self) -> Option<u64> {
        self.0.first().map(|&(_, number)| number)
    }
}

/// What `/proc/cpuinfo` says.
#[derive(Default)]
struct Info {
    /// Every value of the lines that name a processor, in their order.
    described: Vec<Value>,
    flags: Vec<Value>,
    vendors: usize,
    models: usize,
    processors: usize,
    /// Cores by socket, threads by core.
    sockets: Seen,
    cores: Seen,
    /// Of s390x: processors, and threads a core.
    zprocessors: u64,
    zthreads: u64,
    xen_paravirtual: bool,
}

impl Info {
    fn of(text: &str, xen: bool) -> Info {
        let mut info = Info { zthreads: 1, ..Info::default() };
        let (mut socket, mut core) = ("0", "0");
        for line in text.lines() {
            let (key, value) = line.split_once(':').unwrap_or((line, ""));
            let (key, value) = (key.trim(), value.trim());
            let number = || value.parse().unwrap_or(1);
            match key {
                "flags" => {
                    info.flags = value.split_whitespace().map(Value::from).collect();
                    // A paravirtual Xen guest does not show `vme`, and its topology can't be trusted.
                    info.xen_paravirtual |= xen && !value.contains("vme");
                }
                "model name" | "Processor" | "vendor_id" | "cpu" | "Vendor" | "processor" => {
                    info.described.push(value.into());
                    info.vendors += usize::from(key == "vendor_id");
                    info.models += usize::from(key == "model name");
                    info.processors += usize::from(key == "processor");
                }
                "physical id" => {
                    socket = value;
                    info.sockets.add(socket);
                }
                "core id" => {
                    core = value;
                    info.cores.add(core);
                }
                "cpu cores" => info.sockets.set(socket, number()),
                "siblings" => info.cores.set(core, number()),
                "# processors" => info.zprocessors = number(),
                "max thread id" => info.zthreads = number() + 1,
                _ => {}
            }
        }
        info
    }
}

/// Returns the facts of a machine of this architecture; `usable` is how many processors a process may run on.
pub(super) fn facts(cpuinfo: &str, machine: &str, xen: bool, usable: Option<usize>) -> Map {
    let info = Info::of(cpuinfo, xen);
    let counted = if ["armv", "aarch", "ppc"].iter().any(|prefix| machine.starts_with(prefix)) {
        info.processors
    } else if info.vendors > 0 && info.vendors == info.models {
        info.vendors
    } else {
        info.described.len()
    } as u64;
    let (count, cores, threads, all) = if machine == "s390x" {
        (1, info.zprocessors / info.zthreads, info.zthreads, info.zprocessors)
    } else if info.xen_paravirtual {
        (counted, counted, 1, counted)
    } else {
        let count = if info.sockets.0.is_empty() { counted } else { info.sockets.0.len() as u64 };
        let cores = info.sockets.first().filter(|&cores| cores > 0).unwrap_or(1);
        let threads = rounded(info.cores.first().unwrap_or(1), cores);
        (count, cores, threads, threads * count * cores)
    };
    let mut facts = map([
        ("processor", info.described.into()),
        ("processor_count", count.into()),
        ("processor_cores", cores.into()),
        ("processor_threads_per_core", threads.into()),
        ("processor_vcpus", all.into()),
        ("processor_nproc", usable.map_or(info.processors as u64, |usable| usable as u64).into()),
    ]);
    if !info.flags.is_empty() {
        facts.put("flags", info.flags);
    }
    facts
}

/// Divides as Python's `round(a / b)` does: a half goes to the even neighbour.
fn rounded(a: u64, b: u64) -> u64 {
    (a as f64 / b as f64).round_ties_even() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smp(sockets: usize, cores: usize, threads: usize) -> String {
        let mut text = String::new();
        for nth in 0..sockets * cores * threads {
            let (socket, core) = (nth / (cores * threads), nth / threads % cores);
            text.push_str(&format!(
                "processor\t: {nth}\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nphysical id\t: {socket}\n\
                 siblings\t: {}\ncore id\t\t: {core}\ncpu cores\t: {cores}\nflags\t\t: fpu vme\n\n",
                cores * threads,
            ));
        }
        text
    }

    #[test]
    fn counts_sockets_cores_and_threads() {
        let facts = facts(&smp(2, 8, 2), "x86_64", false, Some(32));
        assert_eq!(facts["processor_count"], 2);
        assert_eq!(facts["processor_cores"], 8);
        assert_eq!(facts["processor_threads_per_core"], 2);
        assert_eq!(facts["processor_vcpus"], 32);
        assert_eq!(facts["processor_nproc"], 32);
        assert_eq!(facts["processor"].as_array().map(Vec::len), Some(96));
    }

    #[test]
    fn arm_counts_its_processor_lines() {
        let text = "processor\t: 0\nBogoMIPS\t: 50.00\n\nprocessor\t: 1\nBogoMIPS\t: 50.00\n";
        let facts = facts(text, "aarch64", false, None);
        assert_eq!((&facts["processor_count"], &facts["processor_nproc"]), (&2.into(), &2.into()));
        assert_eq!(facts["processor_vcpus"], 2);
    }

    #[test]
    fn a_paravirtual_xen_guest_has_one_core_a_processor() {
        let text = "processor : 0\nvendor_id : GenuineIntel\nmodel name : Xeon\nflags : fpu\n\
                    processor : 1\nvendor_id : GenuineIntel\nmodel name : Xeon\nflags : fpu\n";
        let facts = facts(text, "x86_64", true, Some(2));
        assert_eq!((&facts["processor_count"], &facts["processor_vcpus"]), (&2.into(), &2.into()));
    }
}
