/* The nine symbols the way a speech decoder in C uses them: compile once, write into the views, execute in a
 * loop, keep state by sharing a buffer, release. Arguments: MODEL.mil CACHE. */
#include <ane_e5rt.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
      return 1;                                                              \
    }                                                                        \
  } while (0)

enum { ONE = 0x3c00, COUNT = 40 };

static int decode(const char *mil, const char *cache) {
  const char *inputs[] = {"state", "x"}, *outputs[] = {"next", "y"};
  const size_t sizes[] = {COUNT * 2, COUNT * 2};
  ane_e5rt_program *program = ane_e5rt_program_compile(mil, cache, 4, inputs, sizes, 2, outputs, sizes, 2);
  CHECK(program != NULL);

  /* Views: 80 bytes are rounded up to 128, zero at first, at one place for good. */
  void *x = NULL, *y = NULL, *again = NULL;
  size_t bytes = 0;
  CHECK(ane_e5rt_program_input_buffer(program, "x", &x, &bytes) == 0 && bytes == 128);
  CHECK(ane_e5rt_program_output_buffer(program, "y", &y, &bytes) == 0 && bytes == 128);
  for (size_t i = 0; i < bytes; i++) CHECK(((unsigned char *)x)[i] == 0);

  /* state reads what next wrote in the step before. */
  CHECK(ane_e5rt_program_share_buffer(program, 0, "next", 0, "state") == 0);
  CHECK(ane_e5rt_program_share_buffer(program, 0, "next", 1, "state") == -1);
  CHECK(ane_e5rt_program_share_buffer(program, 0, "y", 0, "nobody") == -1);

  uint16_t ones[COUNT];
  for (int i = 0; i < COUNT; i++) ones[i] = ONE;
  CHECK(ane_e5rt_program_set_input_fp16(program, "x", ones, COUNT) == 0);
  CHECK(memcmp(x, ones, sizeof ones) == 0);
  CHECK(ane_e5rt_program_set_input_fp16(program, "x", ones, 65) == -1); /* 130 bytes */
  CHECK(ane_e5rt_program_set_input_fp16(program, "y", ones, COUNT) == -1);

  /* y = 2 next, next = state + x: after step n all of y is 2 n. */
  for (int step = 1; step <= 20; step++) {
    CHECK(ane_e5rt_program_execute(program) == 0);
    static const uint16_t doubled[] = {0x4000, 0x4400, 0x4600, 0x4800, 0x4900, 0x4a00, 0x4b00, 0x4c00};
    for (int i = 0; step <= 8 && i < COUNT; i++) CHECK(((uint16_t *)y)[i] == doubled[step - 1]);
  }
  CHECK(ane_e5rt_program_output_buffer(program, "y", &again, &bytes) == 0 && again == y);
  /* Bound for good since the first step. */
  CHECK(ane_e5rt_program_share_buffer(program, 0, "y", 0, "x") == -1);

  /* More is asked for than there is: 64 numbers come, the rest stays. */
  uint16_t read[100];
  memset(read, 0xff, sizeof read);
  CHECK(ane_e5rt_program_get_output_fp16(program, "next", read, 100) == 0);
  CHECK(read[0] == 0x4d00 && read[COUNT - 1] == 0x4d00 && read[COUNT] == 0 && read[64] == 0xffff);
  CHECK(ane_e5rt_program_get_output_fp16(program, "next", read, 1) == 0);
  CHECK(ane_e5rt_program_get_output_fp16(program, "x", read, 1) == -1);

  ane_e5rt_program_release(program);
  CHECK(ane_e5rt_program_execute(program) == -1); /* told, not a crash */
  ane_e5rt_program_release(program);
  ane_e5rt_program_release(NULL);
  return 0;
}

static int misuse(const char *mil, const char *cache) {
  const char *inputs[] = {"state", "x"}, *outputs[] = {"y"}, *wrong[] = {"state", "z"};
  const size_t sizes[] = {COUNT * 2, COUNT * 2}, small[] = {COUNT * 2, COUNT};
  CHECK(ane_e5rt_program_compile(NULL, cache, 4, inputs, sizes, 2, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_compile("nowhere.mil", cache, 4, inputs, sizes, 2, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_compile(mil, cache, 0, inputs, sizes, 2, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_compile(mil, cache, 4, wrong, sizes, 2, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_compile(mil, cache, 4, inputs, small, 2, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_compile(mil, cache, 4, inputs, sizes, 1, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_compile(mil, cache, 4, NULL, sizes, 2, outputs, sizes, 1) == NULL);
  CHECK(ane_e5rt_program_execute(NULL) == -1);
  uint16_t number = 0;
  CHECK(ane_e5rt_program_set_input_fp16((ane_e5rt_program *)&number, "x", &number, 1) == -1);

  CHECK(ane_e5rt_compile_check(mil, cache, 4, NULL) == 0);
  CHECK(ane_e5rt_compile_check(mil, cache, 4, "TargetArchitecture=h13") == 0);
  CHECK(ane_e5rt_compile_check(mil, cache, 4, "TargetArchitecture=h17s") == 0);
  CHECK(ane_e5rt_compile_check(mil, cache, 4, "TargetArchitecture=h99") != 0);
  CHECK(ane_e5rt_compile_check("nowhere.mil", cache, 4, NULL) != 0);
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  for (int round = 0; round < 3; round++) {
    if (decode(argv[1], argv[2]) != 0) return 1;
  }
  return misuse(argv[1], argv[2]);
}
