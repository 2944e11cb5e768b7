//! Hands inputs that libFuzzer makes up, led by the code that earlier ones reached, to one of the targets.
#![no_main]

use std::sync::OnceLock;

use kubeon_fuzz::Target;

/// What an overflow of the stack is told on.
const SPARE_STACK_BYTES: usize = 64 << 10;

static TARGET: OnceLock<&Target> = OnceLock::new();

/// Takes libFuzzer's arguments before it reads them itself; the target is named by `KUBEON_FUZZ_TARGET`.
#[expect(unsafe_code, reason = "libFuzzer calls it by this name")]
#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerInitialize(count: *const isize, words: *const *const *const u8) -> isize {
    let name = std::env::var("KUBEON_FUZZ_TARGET").unwrap_or_default();
    match kubeon_fuzz::target(&name) {
        Some(target) => drop(TARGET.set(target)),
        None => {
            let names: Vec<&str> = kubeon_fuzz::targets().map(|target| target.name).collect();
            eprintln!("error: `KUBEON_FUZZ_TARGET` must be one of {}", names.join(", "));
            std::process::exit(2);
        }
    }
    let spare = vec![0_u8; SPARE_STACK_BYTES].leak();
    let stack = libc::stack_t { ss_sp: spare.as_mut_ptr().cast(), ss_flags: 0, ss_size: spare.len() };
    // SAFETY: the memory is never given back. libFuzzer's handler of signals asks for another stack than the one that
    // is full, so that the input which overflows it is kept.
    unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
    kubeon_fuzz::prepare();
    libfuzzer_sys::initialize(count, words)
}

/// Runs the target over one input.
#[expect(unsafe_code, reason = "libFuzzer's own crate calls it by this name")]
#[expect(improper_ctypes_definitions, reason = "both sides are Rust")]
#[unsafe(no_mangle)]
extern "C" fn rust_fuzzer_test_input(input: &[u8]) -> i32 {
    let target = TARGET.get().expect("it is set before the first input");
    kubeon_fuzz::run(target, input);
    0
}
