/* ANEForge for C: open a device, load a program, run it.
 *
 * Every function that can fail answers a code, ANEFORGE_OK if it did not; aneforge_last_error gives the
 * reason in words. Nothing is printed, nothing exits, and no exception crosses this interface.
 *
 * Pointers: NULL, released handles and handles that never were are told, where a call takes them. What a
 * pointer leads to is the caller's word: strings are UTF-8 and end in a zero byte, arrays and buffers are as
 * long as it says here, and results are written where there is room.
 *
 * Threads: every function may be called from every thread. Calls with the same program wait for each
 * other; different programs run side by side as far as their device can. A handle may be released while
 * another thread uses it: the object goes when that call returns. Views (aneforge_view) are bare memory:
 * keep other threads from touching them while aneforge_execute runs. Do not use the library in a child of
 * fork() without exec. */
#ifndef ANEFORGE_H
#define ANEFORGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A device, and a program loaded on one. Neither is memory that can be looked at. */
typedef struct aneforge_device aneforge_device;
typedef struct aneforge_program aneforge_program;

/* What calls answer. */
typedef int32_t aneforge_status;
enum {
  ANEFORGE_OK = 0,
  ANEFORGE_BAD_ARGUMENT = 1, /* NULL, no live handle, out of range, of the wrong size */
  ANEFORGE_NO_DEVICE = 2,    /* no device has that name, or this machine cannot provide it */
  ANEFORGE_BAD_PROGRAM = 3,  /* a file could not be read or written, or is no program */
  ANEFORGE_UNSUPPORTED = 4,  /* the device or the target cannot execute the program */
  ANEFORGE_NO_MEMORY = 5,    /* the system refused memory */
  ANEFORGE_FAILED = 6,       /* the device failed */
  ANEFORGE_INTERNAL = 7      /* a defect of this library */
};

/* The two sides of a program. */
enum { ANEFORGE_INPUT = 0, ANEFORGE_OUTPUT = 1 };

/* What a port is. The pointers are valid until the program is released. */
typedef struct aneforge_port_info {
  const char *name;
  const char *dtype;   /* MIL's keyword: "fp16", "fp32", "int32", "uint8", "bool", ... */
  const size_t *shape; /* extents, outermost first; NULL or anything where rank is 0 */
  size_t rank;
  size_t bytes; /* of all elements, little-endian, row-major */
} aneforge_port_info;

/* Version of the library, as "0.1.0". */
const char *aneforge_version(void);

/* Why the last call of this thread that failed did so; "" before any did. Valid until the next one fails. */
const char *aneforge_last_error(void);

/* Opens a device by name: "auto", "cpu", "reference", "null", "emulator:m1", "ane", ... A name that is
 * unknown, or not possible here, is ANEFORGE_NO_DEVICE; nothing else is opened in its place. */
aneforge_status aneforge_open(const char *name, aneforge_device **device);

/* Closes a device. Programs that were loaded on it stay. NULL is nothing. */
void aneforge_close(aneforge_device *device);

/* Compiles a graph written as text (.graph) for a target ("generic", "m1", "m5:in-memory", ...) and writes
 * the bundle, a folder, which appears whole or not at all. */
aneforge_status aneforge_compile(const char *source, const char *target, const char *bundle);

/* Loads a program on a device: a bundle's folder, a MIL text (.mil) with its weights beside it, or a graph
 * text (.graph), which is compiled first. */
aneforge_status aneforge_load(aneforge_device *device, const char *source, aneforge_program **program);

/* Releases a program and its buffers; buffers that another program shares stay for that one. NULL is
 * nothing. */
void aneforge_release(aneforge_program *program);

/* Number of inputs or outputs; 0 where that fails. */
size_t aneforge_port_count(aneforge_program *program, int32_t side);

/* Describes input or output `index`, counted from 0. */
aneforge_status aneforge_port(aneforge_program *program, int32_t side, size_t index, aneforge_port_info *info);

/* Executes once on buffers of the caller, one for each port in their order, each of the port's `bytes`. They
 * need no alignment. No output may overlap another buffer. The program's own buffers are not touched. */
aneforge_status aneforge_run(aneforge_program *program, const void *const *inputs, size_t input_count, void *const *outputs, size_t output_count);

/* The program's own buffer of a port: write inputs there, read outputs there, no copy in between. It is zero
 * at first, at least the port's `bytes` long, and stays in its place until the program is released or, for
 * an input, shared. */
aneforge_status aneforge_view(aneforge_program *program, int32_t side, size_t index, void **data, size_t *bytes);

/* Executes once on the program's own buffers. */
aneforge_status aneforge_execute(aneforge_program *program);

/* Makes input `input` of `target` the buffer of output `output` of `source`: the next execution of `target` reads
 * what the last one of `source` wrote. Both may be the same program, whose value then stays with it from call
 * to call. Both must be on the same kind of device, and the output at least as long as the input. Views of
 * that input that were taken before are void. */
aneforge_status aneforge_share(aneforge_program *source, size_t output, aneforge_program *target, size_t input);

#ifdef __cplusplus
}
#endif

#endif
