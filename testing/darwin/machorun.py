#!/usr/bin/env python3
"""machorun: run a small arm64 Mach-O program (LC_DYLD_INFO fixups, static-libSystem surface below) in the
unicorn CPU emulator on Linux x86-64. It is a test harness for ABI checks, not a macOS: libSystem is the
handful of functions a small Rust program imports, written in Python here.   machorun.py PROG [ARGS...]"""
import os, struct, sys, time
from unicorn import Uc, UcError, UC_ARCH_ARM64, UC_MODE_ARM, UC_HOOK_CODE, UC_PROT_ALL
from unicorn import arm64_const as A
from unicorn import UC_HOOK_MEM_UNMAPPED
u64 = lambda b, o: struct.unpack_from("<Q", b, o)[0]
u32 = lambda b, o: struct.unpack_from("<I", b, o)[0]
X = [getattr(A, f"UC_ARM64_REG_X{i}") for i in range(31)]
STUB, HEAP, STACK, EXIT = 0x6_0000_0000, 0x5_0000_0000, 0x7_0000_0000, 0x6_0000_0000
HSZ, SSZ, STSZ = 1 << 30, 8 << 20, 1 << 20
trace = os.environ.get("MACHORUN_TRACE")

class Image: pass
class Run:
    def __init__(s):
        s.uc = uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM); uc.ctl_set_cpu_model(A.UC_CPU_ARM64_MAX)
        uc.mem_map(STUB, STSZ, UC_PROT_ALL); uc.mem_map(HEAP, HSZ, UC_PROT_ALL); uc.mem_map(STACK, SSZ, UC_PROT_ALL)
        uc.mem_write(STUB, struct.pack("<I", 0xD65F03C0) * (STSZ // 4))  # every stub is `ret`
        uc.reg_write(A.UC_ARM64_REG_CPACR_EL1, 3 << 20)
        s.stubs, s.names, s.brk, s.sizes, s.free_, s.images, s.handles, s.code = {}, ["<exit>"], HEAP + 4096, {}, {}, [], {}, None
        s.errno = s.malloc(16); s.next = 0x1_0000_0000; s.calls = 0; s.dlerr = 0; s.keys = {}; s.tls, s.dtors, s.tid, s.nthr = {}, {}, 1, 1; s.stacks = {1: (STACK + SSZ, SSZ)}
        uc.hook_add(UC_HOOK_CODE, s.stub, begin=STUB, end=STUB + STSZ - 1)
    # ---- memory helpers
    def rd(s, a, n): return bytes(s.uc.mem_read(a, n))
    def wr(s, a, b): s.uc.mem_write(a, bytes(b))
    def q(s, a): return u64(s.rd(a, 8), 0)
    def cstr(s, a):
        o = b""
        while b"\0" not in o: o += s.rd(a + len(o), 32)
        return o.split(b"\0")[0]
    def malloc(s, n, al=16):
        n = max(n, 1); a = (s.brk + al - 1) & -al; s.brk = a + ((n + 15) & -16); s.sizes[a] = n
        if s.brk > HEAP + HSZ: raise MemoryError
        return a
    def stub_for(s, name):
        if name not in s.stubs: s.names.append(name); s.stubs[name] = STUB + 4 * (len(s.names) - 1)
        return s.stubs[name]
    # ---- loader
    def load(s, path):
        b = open(path, "rb").read()
        if u32(b, 0) != 0xFEEDFACF or u32(b, 4) != 0x0100000C: raise OSError("not a thin arm64 Mach-O")
        im = Image(); im.path, im.segs, im.dylibs, im.init, im.tdata, im.tbss, im.exports, im.entry = path, [], [], [], None, 0, {}, None
        off, di, sym = 32, None, None
        for _ in range(u32(b, 16)):
            cmd, sz = u32(b, off), u32(b, off + 4)
            if cmd == 0x19:
                nm = b[off+8:off+24].rstrip(b"\0").decode(); va, vs, fo, fs = struct.unpack_from("<4Q", b, off + 24)
                im.segs.append((nm, va, vs, fo, fs))
                for i in range(u32(b, off + 64)):
                    so = off + 72 + 80 * i; addr, size = u64(b, so + 32), u64(b, so + 40); ty = u32(b, so + 64) & 0xFF
                    if ty == 0x9: im.init.append((addr, size // 8))
                    if ty == 0x11: im.tdata = (addr, size)
                    if ty == 0x12: im.tbss = (addr, size)
            elif cmd & 0x7FFFFFFF == 0x22: di = struct.unpack_from("<10I", b, off + 8)
            elif cmd == 2: sym = struct.unpack_from("<4I", b, off + 8)
            elif cmd & 0x7FFFFFFF == 0x28: im.entry = u64(b, off + 8)
            elif cmd & 0x7FFFFFFF in (0xC, 0x18, 0x1F): im.dylibs.append(b[off+u32(b, off+8):off+sz].split(b"\0")[0].decode())
            elif cmd & 0x7FFFFFFF in (0x33, 0x34): raise OSError("chained fixups are not supported (link with minos < 13)")
            off += sz
        lo = min(v for n, v, *_ in im.segs if n != "__PAGEZERO"); hi = max(v + z for n, v, z, *_ in im.segs)
        base = s.next; im.base = base; im.slide = base - lo; sp = (hi - lo + 0xFFFF) & ~0xFFFF; s.next += sp + 0x1000000
        s.uc.mem_map(base, sp, UC_PROT_ALL)
        for n, va, vs, fo, fs in im.segs:
            if n != "__PAGEZERO": s.wr(va + im.slide, b[fo:fo + fs])
        for i in range(sym[1]):
            o = sym[0] + 16 * i
            if b[o+4] & 0x0E == 0x0E and b[o+4] & 1 and not b[o+4] & 0xE0: im.exports[b[sym[2]+u32(b, o):].split(b"\0", 1)[0].decode()] = u64(b, o + 8) + im.slide
        s.images.append(im)
        s.rebase(im, b[di[0]:di[0]+di[1]])
        for o, n in ((2, 3), (6, 7)): s.bind(im, b[di[o]:di[o]+di[n]], o == 6)
        for a, n in im.init:
            for i in range(n): s.call(s.q(a + im.slide + 8 * i), 1, s.argv, s.argv + 8, 0)
        return im
    @staticmethod
    def leb(b, i, signed=False):
        r = sh = 0
        while True:
            c = b[i]; i += 1; r |= (c & 0x7F) << sh; sh += 7
            if c < 0x80: break
        if signed and c & 0x40: r -= 1 << sh
        return r, i
    def rebase(s, im, b):
        i = a = 0
        def go(n, skip=0):
            nonlocal a
            for _ in range(n): s.wr(a, struct.pack("<Q", (s.q(a) + im.slide) & (2**64-1))); a += 8 + skip
        while i < len(b):
            op, v = b[i] & 0xF0, b[i] & 15; i += 1
            if op == 0: break
            elif op == 0x20: o, i = s.leb(b, i); a = im.segs[v][1] + im.slide + o
            elif op == 0x30: o, i = s.leb(b, i); a += o
            elif op == 0x40: a += 8 * v
            elif op == 0x50: go(v)
            elif op == 0x60: n, i = s.leb(b, i); go(n)
            elif op == 0x70: o, i = s.leb(b, i); go(1, o)
            elif op == 0x80: n, i = s.leb(b, i); o, i = s.leb(b, i); go(n, o)
    def resolve(s, im, ordn, name):
        for j in s.images:
            if name in j.exports and (ordn <= 0 or j is not im): return j.exports[name]
        return s.stub_for(name)
    def bind(s, im, b, lazy):
        i = a = add = ordn = 0; name = ""
        def go(skip=0):
            nonlocal a
            s.wr(a, struct.pack("<Q", (s.resolve(im, ordn, name) + add) & (2**64-1))); a = (a + 8 + skip) & (2**64-1)
        while i < len(b):
            op, v = b[i] & 0xF0, b[i] & 15; i += 1
            if op == 0:
                if not lazy: break
            elif op == 0x10: ordn = v
            elif op == 0x20: ordn, i = s.leb(b, i)
            elif op == 0x30: ordn = v - 16 if v else 0
            elif op == 0x40: e = b.index(0, i); name = b[i:e].decode(); i = e + 1
            elif op == 0x60: add, i = s.leb(b, i, True)
            elif op == 0x70: o, i = s.leb(b, i); a = im.segs[v][1] + im.slide + o
            elif op == 0x80: o, i = s.leb(b, i); a = (a + o) & (2**64-1)
            elif op == 0x90: go()
            elif op == 0xA0: o, i = s.leb(b, i); go(o)
            elif op == 0xB0: go(8 * v)
            elif op == 0xC0:
                n, i = s.leb(b, i); o, i = s.leb(b, i)
                for _ in range(n): go(o)
    # ---- execution
    def call(s, pc, *args):
        uc = s.uc
        for r, v in zip(X, args): uc.reg_write(r, v & (2**64-1))
        uc.reg_write(A.UC_ARM64_REG_LR, EXIT); uc.emu_start(pc, EXIT)
        return uc.reg_read(X[0])
    def main(s, path, args):
        av = [os.fsencode(x) for x in [path] + args]; ev = [k + b"=" + v for k, v in os.environb.items()]
        s.env = {k: 0 for k in os.environb}
        def strs(l):
            p = []
            for t in l: x = s.malloc(len(t) + 1); s.wr(x, t + b"\0"); p.append(x)
            v = s.malloc(8 * len(p) + 16); s.wr(v, struct.pack(f"<{len(p)+2}Q", *p, 0, 0)); return v, p
        s.argv, _ = strs(av); s.envp, ep = strs(ev); s.argc = len(av)
        for t, p in zip(ev, ep): s.env[t.split(b"=")[0]] = p + t.index(b"=") + 1
        s.uc.reg_write(A.UC_ARM64_REG_SP, STACK + SSZ - 256)
        for p in filter(None, os.environ.get("MACHORUN_PRELOAD", "").split(":")): s.load(p)  # stands in for a system dylib
        im = s.load(path)
        r = s.call(im.base + im.entry, s.argc, s.argv, s.envp, s.envp)
        return s.code if s.code is not None else r & 0xFF
    def stub(s, uc, addr, size, _):
        n = (addr - STUB) // 4
        if n == 0: return
        name = s.names[n]; s.calls += 1
        f = getattr(s, "f" + name, None)
        a = [uc.reg_read(r) for r in X[:8]]
        if f is None: print(f"machorun: {name} is not provided", file=sys.stderr); s.code = 127; uc.emu_stop(); return
        r = f(*a[:f.__code__.co_argcount - 1])
        if trace: print(f"  {name}({', '.join(hex(x) for x in a[:f.__code__.co_argcount - 1])}) = {r if r is None else hex(r)}", file=sys.stderr)
        if r is not None: uc.reg_write(X[0], r & (2**64-1))
    def quit(s, c):
        s.code = c; s.uc.emu_stop()
    # ---- libSystem (names carry the Mach-O leading underscore)
    def f__tlv_bootstrap(s, d):
        key, off = s.q(d + 8), s.q(d + 16)
        im = next(j for j in reversed(s.images) if j.base <= d)
        if (s.tid, id(im)) not in s.tls:
            st = min(x[0] for x in (im.tdata, im.tbss) if x); en = max(x[0] + x[1] for x in (im.tdata, im.tbss) if x)
            t = s.tls[s.tid, id(im)] = s.malloc(en - st + 64, 64); s.wr(t, bytes(en - st))
            if im.tdata: s.wr(t + im.tdata[0] - st, s.rd(im.tdata[0] + im.slide, im.tdata[1]))
        return s.tls[s.tid, id(im)] + off
    def f__tlv_atexit(s, f, o): s.dtors.setdefault(s.tid, []).append((f, o)); return 0
    def f___error(s): return s.errno
    def f_malloc(s, n): return s.malloc(n)
    def f_calloc(s, n, m): a = s.malloc(n * m); s.wr(a, bytes(n * m)); return a
    def f_free(s, p): return 0
    def f_realloc(s, p, n):
        a = s.malloc(n)
        if p: s.wr(a, s.rd(p, min(n, s.sizes[p])))
        return a
    def f_posix_memalign(s, out, al, n): s.wr(out, struct.pack("<Q", s.malloc(n, al))); return 0
    def f_memcpy(s, d, p, n):
        if n: s.wr(d, s.rd(p, n))
        return d
    f_memmove = f_memcpy
    def f_memset(s, d, c, n): s.wr(d, bytes([c & 255]) * n); return d
    def f_bzero(s, d, n): s.wr(d, bytes(n))
    def f_memcmp(s, a, b, n): x, y = s.rd(a, n), s.rd(b, n); return (x > y) - (x < y)
    f_bcmp = f_memcmp
    def f_strlen(s, p): return len(s.cstr(p))
    def f_write(s, fd, p, n): os.write(fd if fd in (1, 2) else 2, s.rd(p, n)); return n
    def f_writev(s, fd, v, n): return sum(s.f_write(fd, s.q(v + 16*i), s.q(v + 16*i + 8)) for i in range(n & 0xFFFFFFFF))
    def f_getenv(s, k): return s.env.get(s.cstr(k), 0)
    def f_getcwd(s, b, n): s.wr(b, os.getcwdb() + b"\0"); return b
    def f_mmap(s, a, n, prot, flags):
        if flags & 0x10: return a  # MAP_FIXED: the stack guard page
        p = s.malloc(n, 16384); s.wr(p, bytes(n)); return p
    def zero(s): return 0
    f_munmap = f_mprotect = f_sigaction = f_sigaltstack = f_signal = f_fcntl = f_close = f_dlclose = f_pthread_setname_np = zero
    f_pthread_mutex_init = f_pthread_mutex_destroy = f_pthread_mutex_lock = f_pthread_mutex_trylock = f_pthread_mutex_unlock = zero
    f_pthread_mutexattr_init = f_pthread_mutexattr_settype = f_pthread_mutexattr_destroy = f_dispatch_release = f_dispatch_semaphore_signal = zero
    f_pthread_attr_init = f_pthread_attr_setstacksize = f_pthread_attr_destroy = f_pthread_join = f_pthread_detach = f_dispatch_semaphore_wait = f_sched_yield = zero
    f_pthread_cond_init = f_pthread_cond_destroy = f_pthread_cond_signal = f_pthread_cond_broadcast = zero
    f_os_unfair_lock_lock = f_os_unfair_lock_unlock = f_poll = zero
    # threads: pthread_create runs the new thread to its end before it returns (no real concurrency)
    def f_pthread_create(s, out, attr, fn, arg):
        uc, me = s.uc, s.tid; s.nthr += 1; s.tid = t = s.nthr; n = 1 << 20; b = s.malloc(n, 16384); s.stacks[t] = (b + n, n)
        s.wr(out, struct.pack("<Q", 0x1000 + t)); ctx = uc.context_save(); uc.reg_write(A.UC_ARM64_REG_SP, b + n - 256)
        try:
            s.call(fn, arg)
            while s.code is None and s.dtors.get(t): s.call(*s.dtors[t].pop())
        finally: s.tid = me
        if s.code is None: uc.context_restore(ctx)
        else: uc.emu_stop(); return None
        return 0
    def f_pthread_self(s): return 0x1000 + s.tid
    def f_pthread_threadid_np(s, t, out): s.wr(out, struct.pack("<Q", s.tid)); return 0
    def f_pthread_get_stackaddr_np(s, t): return s.stacks[s.tid][0]
    def f_pthread_get_stacksize_np(s, t): return s.stacks[s.tid][1]
    def f_pthread_key_create(s, k, d): s.keys[len(s.keys)+1] = 0; s.wr(k, struct.pack("<Q", len(s.keys))); return 0
    def f_pthread_setspecific(s, k, v): s.keys[k] = v; return 0
    def f_pthread_getspecific(s, k): return s.keys.get(k, 0)
    def f_sysconf(s, n): return {29: 16384}.get(n, 1)
    def f__NSGetArgc(s): p = s.malloc(8); s.wr(p, struct.pack("<Q", s.argc)); return p
    def f__NSGetArgv(s): p = s.malloc(8); s.wr(p, struct.pack("<Q", s.argv)); return p
    def f__NSGetEnviron(s): p = s.malloc(8); s.wr(p, struct.pack("<Q", s.envp)); return p
    def f_CCRandomGenerateBytes(s, p, n): s.wr(p, os.urandom(n)); return 0
    def enoent(s): s.wr(s.errno, struct.pack('<I', 2)); return -1
    f_stat = f_lstat = f_open = f_opendir = f_readlink = enoent  # no file system
    def f_isatty(s, fd): return 0
    def f_mach_absolute_time(s): return time.monotonic_ns()
    def f_mach_timebase_info(s, p): s.wr(p, struct.pack('<II', 1, 1)); return 0
    def f_clock_gettime(s, c, p): n = time.time_ns(); s.wr(p, struct.pack('<QQ', n // 10**9, n % 10**9)); return 0
    def f_abort(s): print("machorun: abort()", file=sys.stderr); s.quit(134)
    def f_exit(s, c): s.quit(c & 255)
    f__exit = f_exit
    def f_dlopen(s, p):
        path = s.cstr(p).decode()
        for h in s.images:  # a library is loaded once
            if h.path == path: s.handles[id(h)] = h; return id(h)
        try:
            uc = s.uc; ctx = uc.context_save(); h = s.load(path); uc.context_restore(ctx)  # initialisers would nest emu_start; fine here
            s.handles[id(h)] = h; return id(h)
        except OSError as e:
            m = f"machorun dlopen({path}): {e.strerror or e}".encode(); s.dlerr = s.malloc(len(m) + 1); s.wr(s.dlerr, m + b"\0"); return 0
    def f_dlsym(s, h, n): return s.handles[h].exports.get("_" + s.cstr(n).decode(), 0)
    def f_dlerror(s): e, s.dlerr = s.dlerr, 0; return e
    # there is no file system: every file is missing
    def missing(s): s.wr(s.errno, struct.pack("<I", 2)); return -1
    f_open = f_stat = f_fstatat = f_lstat = f_mkdir = f_rename = f_unlink = f_access = f_realpath_DARWIN_EXTSN = missing
    f_confstr = zero
    # no unwinding: report a panic's message, then stop with Rust's panic code
    def f__Unwind_RaiseException(s): print("machorun: a panic would unwind here", file=sys.stderr); s.quit(101)
    def f__Unwind_Backtrace(s, cb, d): return 5
    def f_dispatch_semaphore_create(s): return 0x77
    def f_strerror_r(s, e, b, n): s.wr(b, b"error\0"); return 0

if __name__ == "__main__":
    r = Run(); t = time.time(); rc = r.main(sys.argv[1], sys.argv[2:]); sys.stdout.flush()
    if os.environ.get("MACHORUN_STATS"): print(f"machorun: rc={rc}, {r.calls} libSystem calls, {time.time()-t:.2f} s", file=sys.stderr)
    sys.exit(rc)
