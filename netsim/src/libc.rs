//! The kernel's time and randomness, replaced on the thread that runs a world.
//!
//! Libraries reach the kernel past our seams: rustls with ring asks `syscall(SYS_getrandom)`, hash maps ask
//! `getrandom`, hyper puts the date into every response, h2 keeps `Instant`s. [`override_libc!`] defines these four
//! symbols in the binary that invokes it; they answer from the seed and the world's time on the simulation's thread
//! while a world exists there, and go to the kernel in all other cases.
//!
//! x86_64 Linux only, because the way to the kernel is written for it. Never invoke the macro in a production binary.

use std::cell::Cell;
use std::time::Duration;

use crate::clock::EPOCH_MS;
use crate::rng::splitmix;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("netsim's override of libc is written for x86_64 Linux");

/// Monotonic time starts here, not at zero: libraries subtract from `Instant::now()`.
const MONOTONIC_BASE: Duration = Duration::from_secs(1_000_000);

thread_local! {
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The override is active on this thread until this is dropped.
#[derive(Debug)]
pub struct Active(());

/// Activates the override on this thread. Without [`override_libc!`] in the binary it does nothing.
pub fn activate(seed: u64) -> Active {
    ACTIVE.set(true);
    NOW.set(Duration::ZERO);
    RANDOM.set(splitmix(seed));
    CALLS.set(0);
    Active(())
}

impl Drop for Active {
    fn drop(&mut self) {
        ACTIVE.set(false);
    }
}

/// How many calls the override has answered on this thread since it was activated; 0 where the macro is missing.
pub fn calls() -> u64 {
    CALLS.get()
}

pub(crate) fn publish(now: Duration) {
    NOW.set(now);
}

/// Fills `len` bytes at `into` from the seed. False when this thread runs no world; nothing is written then.
///
/// # Safety
/// `into` must be valid for writes of `len` bytes, as for `getrandom`.
#[allow(unsafe_code)] // The raw buffer is the C interface's.
pub unsafe fn random(into: *mut u8, len: usize) -> bool {
    if !ACTIVE.get() {
        return false;
    }
    CALLS.set(CALLS.get() + 1);
    for i in 0..len {
        if i % 8 == 0 {
            RANDOM.set(RANDOM.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        }
        let word = splitmix(RANDOM.get()).to_le_bytes();
        // SAFETY: the caller says that `len` bytes may be written, and i < len.
        unsafe { into.add(i).write(word[i % 8]) };
    }
    true
}

/// The world's time for a clock of `clock_gettime`; none when this thread runs no world or doesn't know the clock.
pub fn time(clock: ::libc::clockid_t) -> Option<::libc::timespec> {
    if !ACTIVE.get() {
        return None;
    }
    let time = match clock {
        ::libc::CLOCK_REALTIME | ::libc::CLOCK_REALTIME_COARSE => Duration::from_millis(EPOCH_MS) + NOW.get(),
        ::libc::CLOCK_MONOTONIC
        | ::libc::CLOCK_MONOTONIC_RAW
        | ::libc::CLOCK_MONOTONIC_COARSE
        | ::libc::CLOCK_BOOTTIME => MONOTONIC_BASE + NOW.get(),
        _ => return None,
    };
    CALLS.set(CALLS.get() + 1);
    Some(::libc::timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    })
}

/// A system call as the C library's `syscall` makes it: -1 and `errno` on failure.
///
/// # Safety
/// The same as for the system call itself.
#[allow(unsafe_code)] // The way to the kernel that doesn't lead through the symbols that are replaced here.
pub unsafe fn kernel(number: ::libc::c_long, args: [::libc::c_long; 6]) -> ::libc::c_long {
    let result: ::libc::c_long;
    // SAFETY: the x86_64 calling convention of Linux; the caller answers for the arguments.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
        if (-4095..0).contains(&result) {
            *::libc::__errno_location() = i32::try_from(-result).unwrap_or(::libc::EIO);
            return -1;
        }
    }
    result
}

/// Re-exported for [`override_libc!`].
#[doc(hidden)]
pub use ::libc as c;

/// Defines `getrandom`, `getentropy`, `syscall` and `clock_gettime` in this binary; see [`crate::libc`].
#[macro_export]
macro_rules! override_libc {
    () => {
        #[allow(unsafe_code, missing_docs, clippy::missing_safety_doc)] // C symbols, documented in cara_netsim::libc.
        mod libc_override {
            use $crate::libc::c::{c_int, c_long, c_uint, c_void, clockid_t, size_t, ssize_t, timespec};
            use $crate::libc::{c, kernel, random, time};

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn getrandom(into: *mut c_void, len: size_t, flags: c_uint) -> ssize_t {
                // SAFETY: the caller's buffer, as getrandom(2) demands.
                unsafe {
                    if random(into.cast(), len) {
                        return len as ssize_t;
                    }
                    kernel(c::SYS_getrandom, [into as c_long, len as c_long, flags as c_long, 0, 0, 0]) as ssize_t
                }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn getentropy(into: *mut c_void, len: size_t) -> c_int {
                // SAFETY: the caller's buffer, as getentropy(3) demands.
                unsafe {
                    if random(into.cast(), len) {
                        return 0;
                    }
                    let got = kernel(c::SYS_getrandom, [into as c_long, len as c_long, 0, 0, 0, 0]);
                    if got == len as c_long { 0 } else { -1 }
                }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn syscall(
                number: c_long,
                a: c_long,
                b: c_long,
                c: c_long,
                d: c_long,
                e: c_long,
                f: c_long,
            ) -> c_long {
                // SAFETY: passed on as it came; for getrandom the buffer is the caller's.
                unsafe {
                    if number == $crate::libc::c::SYS_getrandom && random(a as *mut u8, b as size_t) {
                        return b;
                    }
                    kernel(number, [a, b, c, d, e, f])
                }
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn clock_gettime(clock: clockid_t, into: *mut timespec) -> c_int {
                // SAFETY: the caller's buffer, as clock_gettime(2) demands.
                unsafe {
                    if let Some(now) = time(clock) {
                        into.write(now);
                        return 0;
                    }
                    kernel(c::SYS_clock_gettime, [clock as c_long, into as c_long, 0, 0, 0, 0]) as c_int
                }
            }
        }
    };
}
