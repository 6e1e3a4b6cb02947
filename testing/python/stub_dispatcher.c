/* A stand-in for the native library of the Python package aneforge 0.4.0, so that its front end runs
 * where there is no Apple hardware: it writes MIL text and weights, then hands them to `compile`, which
 * here only says yes. The nine entry points are those that the package binds; nothing is executed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct program {
  char unused;
} program;

program *ane_e5rt_program_compile(const char *mil, const char *cache, uint64_t device_mask,
                                  const char **input_names, const size_t *input_sizes,
                                  size_t inputs, const char **output_names,
                                  const size_t *output_sizes, size_t outputs) {
  (void)mil, (void)cache, (void)device_mask, (void)input_names, (void)input_sizes, (void)inputs;
  (void)output_names, (void)output_sizes, (void)outputs;
  return calloc(1, sizeof(program));
}

void ane_e5rt_program_release(program *handle) { free(handle); }

int ane_e5rt_program_set_input_fp16(program *handle, const char *port, const uint16_t *values,
                                    size_t count) {
  (void)handle, (void)port, (void)values, (void)count;
  return 0;
}

int ane_e5rt_program_get_output_fp16(program *handle, const char *port, uint16_t *values,
                                     size_t count) {
  (void)handle, (void)port, (void)values, (void)count;
  return 0;
}

int ane_e5rt_program_input_buffer(program *handle, const char *port, void **data, size_t *bytes) {
  (void)handle, (void)port, *data = NULL, *bytes = 0;
  return -1;
}

int ane_e5rt_program_output_buffer(program *handle, const char *port, void **data, size_t *bytes) {
  (void)handle, (void)port, *data = NULL, *bytes = 0;
  return -1;
}

int ane_e5rt_program_execute(program *handle) {
  (void)handle;
  return 0;
}

int ane_e5rt_program_share_buffer(program *handle, size_t source_op, const char *source_port,
                                  size_t target_op, const char *target_port) {
  (void)handle, (void)source_op, (void)source_port, (void)target_op, (void)target_port;
  return 0;
}

int ane_e5rt_compile_check(const char *mil, const char *cache, uint64_t device_mask,
                           const char *options) {
  (void)mil, (void)cache, (void)device_mask, (void)options;
  return 0;
}
