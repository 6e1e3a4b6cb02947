/* The nine symbols that the PyPI package aneforge 0.4.0 binds of its native dispatcher, for programs that
 * use them. The environment variable ANEFORGE_DEVICE names the device, "auto" where it is not set; a
 * device that is unknown or not possible here makes compiling fail, with the reason on stderr.
 *
 * int functions answer 0, or -1 with the reason on stderr. Buffers are at least 64 bytes long, a multiple of
 * 64, and zero at first; on a device with memory of its own they may be longer. Threads: as in aneforge.h. New programs use aneforge.h. */
#ifndef ANE_E5RT_H
#define ANE_E5RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ane_e5rt_program ane_e5rt_program;

/* Compiles a MIL text with its weights beside it. Ports are named with their sizes in bytes; every input must
 * be. Bits of the mask: 1 CPU, 2 GPU, 4 engine; where no device is named, a mask without the engine means
 * "cpu". NULL where that fails. */
ane_e5rt_program *ane_e5rt_program_compile(const char *mil_path, const char *cache_dir, uint64_t device_mask, const char *const *input_names, const size_t *input_sizes, size_t input_count, const char *const *output_names, const size_t *output_sizes, size_t output_count);

/* Copies `count` numbers into an input; -1 where they are more than the buffer holds. */
int ane_e5rt_program_set_input_fp16(ane_e5rt_program *program, const char *port, const uint16_t *data, size_t count);

/* Copies `count` numbers out of an output, or as many as the buffer holds. */
int ane_e5rt_program_get_output_fp16(ane_e5rt_program *program, const char *port, uint16_t *data, size_t count);

/* Where a port's bytes are, and how many. */
int ane_e5rt_program_input_buffer(ane_e5rt_program *program, const char *port, void **data, size_t *bytes);
int ane_e5rt_program_output_buffer(ane_e5rt_program *program, const char *port, void **data, size_t *bytes);

/* Executes once on the buffers. */
int ane_e5rt_program_execute(ane_e5rt_program *program);

/* Makes an input use an output's buffer. Operations are numbered from 0, and there is one. Before the first
 * execution alone. */
int ane_e5rt_program_share_buffer(ane_e5rt_program *program, size_t source_op, const char *source_port, size_t target_op, const char *target_port);

/* Releases a program; NULL is nothing. */
void ane_e5rt_program_release(ane_e5rt_program *program);

/* 0 if a MIL text compiles: for the device, or for the generation that "TargetArchitecture=h13" names. */
int ane_e5rt_compile_check(const char *mil_path, const char *cache_dir, uint64_t device_mask, const char *custom_options);

#ifdef __cplusplus
}
#endif

#endif
