//! Messages: the method is looked up and jumped to with all arguments as they came.

use super::{Id, Sel};
use crate::counters::{COUNTERS, count, violation};
use std::arch::naked_asm;
use std::ffi::c_void;

/// What a message gives that no method answers.
extern "C" fn nothing(_this: Id, _selector: Sel) -> usize {
    0
}

/// The address of the method that answers. A selector without a method ends a real process ("unrecognized selector sent to
/// instance"); here it is recorded and answers nil.
extern "C" fn lookup(receiver: Id, selector: Sel) -> *const c_void {
    count(&COUNTERS.messages);
    if let Some(method) = receiver.class().and_then(|class| class.find(selector)) {
        return std::ptr::with_exposed_provenance(method.imp);
    }
    let name = selector.name();
    if let Some(was) = receiver.freed() {
        violation(format!("[{name}] sent to a freed {was}"));
    } else {
        let (sign, class) = match receiver.as_class() {
            Some(class) => ('+', class.name),
            None => ('-', receiver.class().map_or("a block", |class| class.name)),
        };
        violation(format!("{sign}[{class} {name}]: unrecognized selector"));
    }
    nothing as *const c_void
}

/// Sends a message. Nil answers zero.
///
/// # Safety
/// Called with a receiver, a selector and the arguments of the method, by the C convention of the method's type.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn objc_msgSend() {
    naked_asm!(
        "test rdi, rdi",
        "je 2f",
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, 192",
        "mov [rsp], rdi",
        "mov [rsp + 8], rsi",
        "mov [rsp + 16], rdx",
        "mov [rsp + 24], rcx",
        "mov [rsp + 32], r8",
        "mov [rsp + 40], r9",
        "mov [rsp + 48], rax",
        "movups [rsp + 64], xmm0",
        "movups [rsp + 80], xmm1",
        "movups [rsp + 96], xmm2",
        "movups [rsp + 112], xmm3",
        "movups [rsp + 128], xmm4",
        "movups [rsp + 144], xmm5",
        "movups [rsp + 160], xmm6",
        "movups [rsp + 176], xmm7",
        "call {lookup}",
        "mov r11, rax",
        "mov rdi, [rsp]",
        "mov rsi, [rsp + 8]",
        "mov rdx, [rsp + 16]",
        "mov rcx, [rsp + 24]",
        "mov r8, [rsp + 32]",
        "mov r9, [rsp + 40]",
        "mov rax, [rsp + 48]",
        "movups xmm0, [rsp + 64]",
        "movups xmm1, [rsp + 80]",
        "movups xmm2, [rsp + 96]",
        "movups xmm3, [rsp + 112]",
        "movups xmm4, [rsp + 128]",
        "movups xmm5, [rsp + 144]",
        "movups xmm6, [rsp + 160]",
        "movups xmm7, [rsp + 176]",
        "leave",
        "jmp r11",
        "2:",
        "xor eax, eax",
        "xor edx, edx",
        "xorps xmm0, xmm0",
        "xorps xmm1, xmm1",
        "ret",
        lookup = sym lookup,
    )
}

/// Sends a message. Nil answers zero.
///
/// # Safety
/// Called with a receiver, a selector and the arguments of the method, by the C convention of the method's type.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn objc_msgSend() {
    naked_asm!(
        "cbz x0, 2f",
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "sub sp, sp, #208",
        "stp x0, x1, [sp]",
        "stp x2, x3, [sp, #16]",
        "stp x4, x5, [sp, #32]",
        "stp x6, x7, [sp, #48]",
        "str x8, [sp, #64]",
        "stp q0, q1, [sp, #80]",
        "stp q2, q3, [sp, #112]",
        "stp q4, q5, [sp, #144]",
        "stp q6, q7, [sp, #176]",
        "bl {lookup}",
        "mov x16, x0",
        "ldp x0, x1, [sp]",
        "ldp x2, x3, [sp, #16]",
        "ldp x4, x5, [sp, #32]",
        "ldp x6, x7, [sp, #48]",
        "ldr x8, [sp, #64]",
        "ldp q0, q1, [sp, #80]",
        "ldp q2, q3, [sp, #112]",
        "ldp q4, q5, [sp, #144]",
        "ldp q6, q7, [sp, #176]",
        "mov sp, x29",
        "ldp x29, x30, [sp], #16",
        "br x16",
        "2:",
        "mov x1, #0",
        "movi d0, #0",
        "movi d1, #0",
        "movi d2, #0",
        "movi d3, #0",
        "ret",
        lookup = sym lookup,
    )
}
