/* Wrong calls of both headers, of every kind that a call can be wrong in: each answers a code and a text, nothing crashes, and right
 * calls go on working. Arguments: DEVICE PROGRAM.graph DECODER.mil FOLDER. */
#include <ane_e5rt.h>
#include <aneforge.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition, aneforge_last_error()); \
      return 1;                                                                                 \
    }                                                                                           \
  } while (0)
/* The call fails with this code and with words. */
#define TOLD(call, code) CHECK((call) == (code) && strlen(aneforge_last_error()) > 8)
#define BAD(call) TOLD(call, ANEFORGE_BAD_ARGUMENT)

enum { THREADS = 8, ROUNDS = 12, LONG = 70000 };

static const char *device_name, *graph, *mil, *folder;
static char *long_text;

/* A place that is one byte off from where a pointer may lie. */
static char room[256] __attribute__((aligned(16)));
#define UNALIGNED(type) ((type *)(void *)(room + 1))

static int devices(void) {
  aneforge_device *device = NULL;
  const char *names[] = {"", " ", "cpu ", "CPU", "emulator:", "emulator:m99", "emulator:/nowhere.json", "fake:", "fake:e5rt:x",
                         "ane:gpu", "../cpu", "auto:m1", "%s%n", "cpu\ncpu", long_text};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    device = (aneforge_device *)room;
    TOLD(aneforge_open(names[i], &device), ANEFORGE_NO_DEVICE);
    CHECK(device == NULL);
  }
  BAD(aneforge_open(NULL, &device));
  BAD(aneforge_open("\xc3(", &device));
  BAD(aneforge_open("cpu", NULL));
  BAD(aneforge_open("cpu", UNALIGNED(aneforge_device *)));
  aneforge_close(NULL);
  aneforge_close((aneforge_device *)room);
  aneforge_close((aneforge_device *)(uintptr_t)-1);
  return 0;
}

static int compiling(void) {
  char bundle[4096];
  snprintf(bundle, sizeof bundle, "%s/attacked.ane", folder);
  const char *targets[] = {"", "m", "m1:", "m1:e5rt:e5rt", "generic ", long_text};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) BAD(aneforge_compile(graph, targets[i], bundle));
  BAD(aneforge_compile(NULL, "m1", bundle));
  BAD(aneforge_compile(graph, NULL, bundle));
  BAD(aneforge_compile(graph, "m1", NULL));
  TOLD(aneforge_compile("", "m1", bundle), ANEFORGE_BAD_PROGRAM);
  TOLD(aneforge_compile(long_text, "m1", bundle), ANEFORGE_BAD_PROGRAM);
  TOLD(aneforge_compile(mil, "m1", bundle), ANEFORGE_BAD_PROGRAM);
  TOLD(aneforge_compile(graph, "m1", "/dev/null/no/bundle"), ANEFORGE_BAD_PROGRAM);
  TOLD(aneforge_compile(graph, "m1", long_text), ANEFORGE_BAD_PROGRAM);
  return 0;
}

static int programs(void) {
  aneforge_device *device = NULL;
  aneforge_program *program = NULL, *other = NULL;
  CHECK(aneforge_open(device_name, &device) == ANEFORGE_OK);
  const char *sources[] = {"", folder, "/dev/null", "/nowhere", long_text};
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    program = (aneforge_program *)room;
    TOLD(aneforge_load(device, sources[i], &program), ANEFORGE_BAD_PROGRAM);
    CHECK(program == NULL);
  }
  BAD(aneforge_load(device, NULL, &program));
  BAD(aneforge_load(device, graph, NULL));
  BAD(aneforge_load(device, graph, UNALIGNED(aneforge_program *)));
  BAD(aneforge_load((aneforge_device *)room, graph, &program));
  BAD(aneforge_load((aneforge_device *)(void *)((char *)device + 1), graph, &program));
  CHECK(aneforge_load(device, graph, &program) == ANEFORGE_OK && aneforge_load(device, graph, &other) == ANEFORGE_OK);
  BAD(aneforge_load((aneforge_device *)program, graph, UNALIGNED(aneforge_program *)));
  aneforge_close(device);
  aneforge_close(device);

  aneforge_port_info port;
  const int32_t sides[] = {-1, 2, INT32_MIN, INT32_MAX};
  for (int i = 0; i < 4; i++) {
    void *data;
    size_t bytes;
    CHECK(aneforge_port_count(program, sides[i]) == 0);
    BAD(aneforge_port(program, sides[i], 0, &port));
    BAD(aneforge_view(program, sides[i], 0, &data, &bytes));
  }
  aneforge_program *none[] = {NULL, (aneforge_program *)device, (aneforge_program *)room, (aneforge_program *)(uintptr_t)-1,
                              (aneforge_program *)(void *)((char *)program + 16 * 1000)};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    void *data;
    size_t bytes;
    CHECK(aneforge_port_count(none[i], ANEFORGE_INPUT) == 0);
    BAD(aneforge_port(none[i], ANEFORGE_INPUT, 0, &port));
    BAD(aneforge_run(none[i], NULL, 0, NULL, 0));
    BAD(aneforge_view(none[i], ANEFORGE_INPUT, 0, &data, &bytes));
    BAD(aneforge_execute(none[i]));
    BAD(aneforge_share(none[i], 0, program, 0));
    BAD(aneforge_share(program, 0, none[i], 0));
    aneforge_release(none[i]);
  }
  BAD(aneforge_port(program, ANEFORGE_INPUT, SIZE_MAX, &port));
  BAD(aneforge_port(program, ANEFORGE_INPUT, 0, NULL));
  BAD(aneforge_port(program, ANEFORGE_INPUT, 0, UNALIGNED(aneforge_port_info)));

  /* Counts and arrays. What is asked for beyond the ports is never looked at. */
  unsigned char memory[64] = {0};
  const void *inputs[] = {memory, memory + 8};
  void *outputs[] = {memory + 16, memory + 24};
  const size_t counts[] = {0, 1, 3, SIZE_MAX / 8, SIZE_MAX / 8 + 1, SIZE_MAX};
  for (int i = 0; i < 6; i++) {
    BAD(aneforge_run(program, inputs, counts[i], outputs, 2));
    BAD(aneforge_run(program, inputs, 2, outputs, counts[i]));
    BAD(aneforge_run(program, NULL, counts[i], NULL, counts[i]));
  }
  BAD(aneforge_run(program, NULL, 2, outputs, 2));
  BAD(aneforge_run(program, inputs, 2, NULL, 2));
  BAD(aneforge_run(program, UNALIGNED(const void *), 2, outputs, 2));
  BAD(aneforge_run(program, inputs, 2, UNALIGNED(void *), 2));
  /* A buffer that goes on where memory has ended, and one that lies over another. */
  const void *beyond[] = {memory, (void *)(uintptr_t)-4};
  BAD(aneforge_run(program, beyond, 2, outputs, 2));
  void *beyond_out[] = {(void *)(uintptr_t)-4, memory + 16};
  BAD(aneforge_run(program, inputs, 2, beyond_out, 2));
  void *over[] = {memory + 15, memory + 24};
  BAD(aneforge_run(program, inputs, 2, over, 2));
  for (int offset = 0; offset < 4; offset++) { /* buffers of any alignment */
    const void *in[] = {memory + offset, memory + 8 + offset};
    void *out[] = {memory + 24 + offset, memory + 33 + offset};
    CHECK(aneforge_run(program, in, 2, out, 2) == ANEFORGE_OK);
  }

  void *data = NULL;
  size_t bytes = 0;
  BAD(aneforge_view(program, ANEFORGE_INPUT, SIZE_MAX, &data, &bytes));
  BAD(aneforge_view(program, ANEFORGE_INPUT, 0, NULL, &bytes));
  BAD(aneforge_view(program, ANEFORGE_INPUT, 0, &data, NULL));
  BAD(aneforge_view(program, ANEFORGE_INPUT, 0, UNALIGNED(void *), &bytes));
  BAD(aneforge_view(program, ANEFORGE_INPUT, 0, &data, UNALIGNED(size_t)));
  BAD(aneforge_share(program, SIZE_MAX, program, 0));
  BAD(aneforge_share(program, 0, program, SIZE_MAX));

  /* A shared buffer outlives the program that made it. */
  CHECK(aneforge_view(program, ANEFORGE_OUTPUT, 0, &data, &bytes) == ANEFORGE_OK);
  CHECK(aneforge_share(program, 0, other, 0) == ANEFORGE_OK);
  CHECK(aneforge_execute(program) == ANEFORGE_OK);
  aneforge_release(program);
  aneforge_release(program);
  CHECK(aneforge_execute(other) == ANEFORGE_OK);
  memset(data, 0, bytes);
  CHECK(aneforge_execute(other) == ANEFORGE_OK);
  BAD(aneforge_share(program, 0, other, 0));
  aneforge_release(other);

  /* Devices of two kinds share nothing, and say so. */
  aneforge_device *one = NULL, *two = NULL;
  CHECK(aneforge_open("cpu", &one) == ANEFORGE_OK && aneforge_open(device_name, &two) == ANEFORGE_OK);
  CHECK(aneforge_load(one, graph, &program) == ANEFORGE_OK && aneforge_load(two, graph, &other) == ANEFORGE_OK);
  aneforge_status shared = aneforge_share(program, 0, other, 0);
  CHECK(shared == ANEFORGE_OK || shared == ANEFORGE_BAD_ARGUMENT);
  CHECK(aneforge_execute(program) == ANEFORGE_OK && aneforge_execute(other) == ANEFORGE_OK);
  aneforge_release(other);
  aneforge_release(program);
  aneforge_close(one);
  aneforge_close(two);
  return 0;
}

static int dispatcher(void) {
  const char *in[] = {"state", "x"}, *out[] = {"next", "y"}, *twice[] = {"x", "x"}, *null[] = {"state", NULL};
  const char *broken[] = {"state", "\xff"}, *empty[] = {"state", ""};
  const size_t sizes[] = {80, 80}, zero[] = {80, 0}, huge[] = {80, SIZE_MAX}, large[] = {80, SIZE_MAX / 4};
  const size_t counts[] = {3, SIZE_MAX / 16, SIZE_MAX / 8 + 1, SIZE_MAX};
  for (int i = 0; i < 4; i++) {
    CHECK(ane_e5rt_program_compile(mil, folder, 4, in, sizes, counts[i], out, sizes, 2) == NULL);
    CHECK(ane_e5rt_program_compile(mil, folder, 4, in, sizes, 2, out, sizes, counts[i]) == NULL);
  }
  const char **lists[] = {twice, null, broken, empty, NULL, (const char **)(void *)(room + 1)};
  for (int i = 0; i < 6; i++) {
    CHECK(ane_e5rt_program_compile(mil, folder, 4, lists[i], sizes, 2, out, sizes, 2) == NULL);
    CHECK(ane_e5rt_program_compile(mil, folder, 4, in, sizes, 2, lists[i], sizes, 2) == NULL);
  }
  const size_t *lengths[] = {zero, huge, large, NULL, (const size_t *)(void *)(room + 1)};
  for (int i = 0; i < 5; i++) {
    CHECK(ane_e5rt_program_compile(mil, folder, 4, in, lengths[i], 2, out, sizes, 2) == NULL);
    CHECK(ane_e5rt_program_compile(mil, folder, 4, in, sizes, 2, out, lengths[i], 2) == NULL);
  }
  CHECK(ane_e5rt_program_compile(mil, NULL, 4, in, sizes, 2, out, sizes, 2) == NULL);
  CHECK(ane_e5rt_program_compile(long_text, folder, 4, in, sizes, 2, out, sizes, 2) == NULL);
  CHECK(ane_e5rt_program_compile(folder, folder, 4, in, sizes, 2, out, sizes, 2) == NULL);
  CHECK(ane_e5rt_program_compile(mil, folder, UINT64_MAX & ~7ull, in, sizes, 2, out, sizes, 2) == NULL);
  const char *options[] = {"", "TargetArchitecture", "TargetArchitecture=", "TargetArchitecture=h", "targetarchitecture=h13",
                           "TargetArchitecture=h13 h14", "\xff", long_text};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++) CHECK(ane_e5rt_compile_check(mil, folder, 4, options[i]) == -1);
  CHECK(ane_e5rt_compile_check(NULL, folder, 4, NULL) == -1 && ane_e5rt_compile_check(mil, NULL, 4, NULL) == -1);

  ane_e5rt_program *program = ane_e5rt_program_compile(mil, folder, 4, in, sizes, 2, out, sizes, 2);
  CHECK(program != NULL);
  uint16_t numbers[41] = {0};
  void *data = NULL;
  size_t bytes = 0;
  const char *ports[] = {NULL, "", "X", "x ", "y", "\xff", long_text};
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
    CHECK(ane_e5rt_program_set_input_fp16(program, ports[i], numbers, 40) == -1);
    CHECK(ane_e5rt_program_input_buffer(program, ports[i], &data, &bytes) == -1);
    CHECK(ane_e5rt_program_share_buffer(program, 0, "next", 0, ports[i]) == -1);
    if (i == 4) continue; /* y is an output */
    CHECK(ane_e5rt_program_get_output_fp16(program, ports[i], numbers, 40) == -1);
    CHECK(ane_e5rt_program_output_buffer(program, ports[i], &data, &bytes) == -1);
    CHECK(ane_e5rt_program_share_buffer(program, 0, ports[i], 0, "state") == -1);
  }
  const size_t lots[] = {SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 41, SIZE_MAX};
  for (int i = 0; i < 4; i++) CHECK(ane_e5rt_program_set_input_fp16(program, "x", numbers, lots[i]) == -1);
  CHECK(ane_e5rt_program_set_input_fp16(program, "x", NULL, 40) == -1);
  CHECK(ane_e5rt_program_get_output_fp16(program, "y", NULL, 40) == -1);
  CHECK(ane_e5rt_program_set_input_fp16(program, "x", NULL, 0) == 0);
  CHECK(ane_e5rt_program_get_output_fp16(program, "y", NULL, 0) == 0);
  CHECK(ane_e5rt_program_share_buffer(program, SIZE_MAX, "next", 0, "state") == -1);
  CHECK(ane_e5rt_program_share_buffer(program, 0, "next", SIZE_MAX, "state") == -1);
  CHECK(ane_e5rt_program_input_buffer(program, "x", NULL, &bytes) == -1);
  CHECK(ane_e5rt_program_input_buffer(program, "x", &data, (size_t *)(void *)(room + 1)) == -1);
  /* Numbers of any alignment. */
  CHECK(ane_e5rt_program_set_input_fp16(program, "x", (uint16_t *)(void *)(room + 1), 40) == 0);
  CHECK(ane_e5rt_program_execute(program) == 0);
  CHECK(ane_e5rt_program_get_output_fp16(program, "y", (uint16_t *)(void *)(room + 1), 40) == 0);
  /* Handles of the other interface are none of this one's. */
  aneforge_device *device = NULL;
  CHECK(aneforge_open("cpu", &device) == ANEFORGE_OK);
  CHECK(ane_e5rt_program_execute((ane_e5rt_program *)device) == -1);
  BAD(aneforge_execute((aneforge_program *)program));
  aneforge_release((aneforge_program *)program);
  CHECK(ane_e5rt_program_execute(program) == 0);
  aneforge_close(device);
  ane_e5rt_program_release(program);
  ane_e5rt_program_release(program);
  CHECK(ane_e5rt_program_execute(program) == -1);
  return 0;
}

/* Threads that use, share and release the same handles as they like. */
static aneforge_device *common_device;
static aneforge_program *common[ROUNDS];
static ane_e5rt_program *dispatched;

static void *crowd(void *argument) {
  const char *problem = NULL;
  for (int round = 0; round < ROUNDS && problem == NULL; round++) {
    aneforge_program *program = common[round];
    unsigned char memory[32] = {0};
    const void *in[] = {memory, memory + 8};
    void *out[] = {memory + 16, memory + 24};
    void *data = NULL;
    size_t bytes = 0;
    aneforge_status answers[] = {
        aneforge_run(program, in, 2, out, 2), aneforge_execute(program),
        aneforge_view(program, ANEFORGE_OUTPUT, 0, &data, &bytes), aneforge_share(program, 0, program, 0),
        aneforge_share(program, 0, common[(round + 1) % ROUNDS], 0)};
    /* Another thread may have released it: that is told, and nothing else is. */
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
      if (answers[i] != ANEFORGE_OK && (answers[i] != ANEFORGE_BAD_ARGUMENT || !strstr(aneforge_last_error(), "released"))) {
        problem = aneforge_last_error();
      }
    }
    if (ane_e5rt_program_execute(dispatched) != 0) problem = "a program that all threads share";
    aneforge_release(program);
    aneforge_close(common_device);
    if (aneforge_execute(program) != ANEFORGE_BAD_ARGUMENT) problem = "a released program was taken";
  }
  if (problem != NULL) fprintf(stderr, "a thread: %s\n", problem);
  return problem == NULL ? NULL : argument;
}

static int threads(void) {
  const char *in[] = {"state", "x"}, *out[] = {"next", "y"};
  const size_t sizes[] = {80, 80};
  dispatched = ane_e5rt_program_compile(mil, folder, 4, in, sizes, 2, out, sizes, 2);
  CHECK(dispatched != NULL && aneforge_open(device_name, &common_device) == ANEFORGE_OK);
  for (int i = 0; i < ROUNDS; i++) CHECK(aneforge_load(common_device, graph, &common[i]) == ANEFORGE_OK);
  pthread_t all[THREADS];
  int failed = 0;
  for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&all[i], NULL, crowd, room) == 0);
  for (int i = 0; i < THREADS; i++) {
    void *problem = NULL;
    pthread_join(all[i], &problem);
    failed |= problem != NULL;
  }
  ane_e5rt_program_release(dispatched);
  return failed;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  device_name = argv[1], graph = argv[2], mil = argv[3], folder = argv[4];
  long_text = malloc(LONG + 1);
  if (long_text == NULL) return 2;
  memset(long_text, 'a', LONG);
  long_text[LONG] = 0;
  int failed = devices() || compiling() || programs() || dispatcher() || threads();
  free(long_text);
  return failed;
}
