/* Wrong calls of aneforge.h are told with a code and a text; right ones beside them go on working. Arguments:
 * PROGRAM.graph FOLDER. */
#include <aneforge.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, aneforge_last_error()); \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)
#define TOLD(words) (strstr(aneforge_last_error(), words) != NULL)

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const char *graph = argv[1];
  char bundle[4096];
  snprintf(bundle, sizeof bundle, "%s/counter.ane", argv[2]);
  CHECK(strcmp(aneforge_last_error(), "") == 0 && strlen(aneforge_version()) > 0);

  aneforge_device *device = (aneforge_device *)&device;
  CHECK(aneforge_open("gpu", &device) == ANEFORGE_NO_DEVICE && TOLD("gpu") && device == NULL);
  CHECK(aneforge_open(NULL, &device) == ANEFORGE_BAD_ARGUMENT && TOLD("name is NULL"));
  CHECK(aneforge_open("\xff", &device) == ANEFORGE_BAD_ARGUMENT && TOLD("UTF-8"));
  CHECK(aneforge_open("cpu", NULL) == ANEFORGE_BAD_ARGUMENT);
  CHECK(aneforge_open("cpu", &device) == ANEFORGE_OK);

  CHECK(aneforge_compile(graph, "m99", bundle) == ANEFORGE_BAD_ARGUMENT && TOLD("m99"));
  CHECK(aneforge_compile(argv[2], "m1", bundle) == ANEFORGE_BAD_PROGRAM);
  CHECK(aneforge_compile(graph, "m1:in-memory", bundle) == ANEFORGE_OK);

  aneforge_program *program = NULL, *other = NULL;
  CHECK(aneforge_load(device, "nowhere", &program) == ANEFORGE_BAD_PROGRAM && TOLD("nowhere"));
  CHECK(aneforge_load(NULL, bundle, &program) == ANEFORGE_BAD_ARGUMENT && TOLD("device is NULL"));
  CHECK(aneforge_load(device, bundle, &program) == ANEFORGE_OK);
  CHECK(aneforge_load((aneforge_device *)program, bundle, &other) == ANEFORGE_BAD_ARGUMENT);
  CHECK(aneforge_load(device, graph, &other) == ANEFORGE_OK);
  aneforge_release(other);
  aneforge_close(device);
  aneforge_close(device);
  CHECK(aneforge_load(device, graph, &other) == ANEFORGE_BAD_ARGUMENT && TOLD("released"));
  CHECK(other == NULL);

  aneforge_port_info port;
  CHECK(aneforge_port_count(program, ANEFORGE_INPUT) == 2 && aneforge_port_count(program, 7) == 0);
  CHECK(aneforge_port(program, ANEFORGE_OUTPUT, 2, &port) == ANEFORGE_BAD_ARGUMENT && TOLD("none of number 2"));
  CHECK(aneforge_port(program, -1, 0, &port) == ANEFORGE_BAD_ARGUMENT && TOLD("side is -1"));
  CHECK(aneforge_port(program, ANEFORGE_INPUT, 1, &port) == ANEFORGE_OK);
  CHECK(strcmp(port.name, "x") == 0 && strcmp(port.dtype, "fp16") == 0 && port.rank == 2 && port.bytes == 8);

  /* Buffers of the caller need no alignment, and must lie apart. */
  unsigned char memory[64] = {0};
  const void *inputs[] = {memory + 1, memory + 9};
  void *outputs[] = {memory + 17, memory + 25};
  memory[10] = 0xc0; /* the first x is -2 */
  CHECK(aneforge_run(program, inputs, 2, outputs, 2) == ANEFORGE_OK);
  CHECK(memory[18] == 0xc0 && memory[26] == 0);
  CHECK(aneforge_run(program, inputs, 1, outputs, 2) == ANEFORGE_BAD_ARGUMENT && TOLD("total, x"));
  CHECK(aneforge_run(program, NULL, 2, outputs, 2) == ANEFORGE_BAD_ARGUMENT && TOLD("inputs is NULL"));
  outputs[1] = memory + 20;
  CHECK(aneforge_run(program, inputs, 2, outputs, 2) == ANEFORGE_BAD_ARGUMENT && TOLD("another output"));
  outputs[1] = memory + 2;
  CHECK(aneforge_run(program, inputs, 2, outputs, 2) == ANEFORGE_BAD_ARGUMENT && TOLD("overlaps an input"));
  outputs[1] = NULL;
  CHECK(aneforge_run(program, inputs, 2, outputs, 2) == ANEFORGE_BAD_ARGUMENT && TOLD("shown is NULL"));

  void *data = NULL;
  size_t bytes = 0;
  CHECK(aneforge_view(program, ANEFORGE_INPUT, 9, &data, &bytes) == ANEFORGE_BAD_ARGUMENT);
  CHECK(aneforge_share(program, 5, program, 0) == ANEFORGE_BAD_ARGUMENT);
  CHECK(aneforge_view(program, ANEFORGE_OUTPUT, 0, &data, NULL) == ANEFORGE_BAD_ARGUMENT);
  CHECK(aneforge_view(program, ANEFORGE_OUTPUT, 0, &data, &bytes) == ANEFORGE_OK && bytes >= 8);
  CHECK(aneforge_execute(program) == ANEFORGE_OK);
  aneforge_release(program);
  CHECK(aneforge_execute(program) == ANEFORGE_BAD_ARGUMENT && TOLD("released"));
  aneforge_release(program);
  aneforge_release(NULL);
  return 0;
}
