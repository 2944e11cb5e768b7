//! Stands in for libunwind in a program that aborts on a panic: nothing is ever unwound, and the binary is stripped,
//! so that a backtrace could name no function. Without these the agent would carry an unwinder and a reader of DWARF.

use std::ffi::{c_char, c_int, c_void};

/// `_URC_END_OF_STACK` of the Itanium C++ ABI: there are no frames to walk.
const END_OF_STACK: c_int = 5;

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_each: *const c_void, _argument: *mut c_void) -> c_int {
    END_OF_STACK
}

macro_rules! nothing {
    ($($name:ident($($argument:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name($(_: $argument),*) -> usize {
            0
        })*
    };
}

// What the standard library asks of a frame while it walks: never called, since there is no frame.
nothing! {
    _Unwind_FindEnclosingFunction(*mut c_void);
    _Unwind_GetCFA(*mut c_void);
    _Unwind_GetDataRelBase(*mut c_void);
    _Unwind_GetIP(*mut c_void);
    _Unwind_GetIPInfo(*mut c_void, *mut c_int);
    _Unwind_GetLanguageSpecificData(*mut c_void);
    _Unwind_GetRegionStart(*mut c_void);
    _Unwind_GetTextRelBase(*mut c_void);
}

macro_rules! abort {
    ($($name:ident($($argument:ty),*);)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name($(_: $argument),*) -> usize {
            std::process::abort()
        })*
    };
}

// What unwinding itself takes: a panic has ended this program before.
abort! {
    _Unwind_DeleteException(*mut c_void);
    _Unwind_RaiseException(*mut c_void);
    _Unwind_Resume(*mut c_void);
    _Unwind_SetGR(*mut c_void, c_int, usize);
    _Unwind_SetIP(*mut c_void, usize);
}

/// Stands in for the C library's, which brings `printf` along: only a debugger would see the names of threads.
#[unsafe(no_mangle)]
extern "C" fn pthread_setname_np(_thread: *mut c_void, _name: *const c_char) -> c_int {
    0
}
