/* A running total that stays in the device's memory: an output shared with an input.
 *
 *   make capi
 *   cc -Ibuild/include examples/c/counter.c -Lbuild/lib -laneforge -Wl,-rpath,build/lib -o counter
 *   ./counter cpu examples/c/counter.graph
 */
#include <aneforge.h>
#include <stdio.h>
#include <stdlib.h>

static void check(aneforge_status status) {
  if (status != ANEFORGE_OK) {
    fprintf(stderr, "error %d: %s\n", (int)status, aneforge_last_error());
    exit(1);
  }
}

static void print_ports(aneforge_program *program, int32_t side) {
  for (size_t i = 0; i < aneforge_port_count(program, side); i++) {
    aneforge_port_info port;
    check(aneforge_port(program, side, i, &port));
    printf("%s %s %s [", side == ANEFORGE_INPUT ? "input" : "output", port.name, port.dtype);
    for (size_t axis = 0; axis < port.rank; axis++) {
      printf(axis == 0 ? "%zu" : ", %zu", port.shape[axis]);
    }
    printf("]\n");
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s DEVICE PROGRAM\n", argv[0]);
    return 2;
  }
  aneforge_device *device = NULL;
  aneforge_program *program = NULL;
  check(aneforge_open(argv[1], &device));
  check(aneforge_load(device, argv[2], &program));
  aneforge_close(device); /* the program stays */
  print_ports(program, ANEFORGE_INPUT);
  print_ports(program, ANEFORGE_OUTPUT);

  /* The total that a call writes is the total that the next one reads. */
  check(aneforge_share(program, 0, program, 0));
  void *data = NULL;
  size_t bytes = 0;
  check(aneforge_view(program, ANEFORGE_INPUT, 1, &data, &bytes));
  uint16_t *x = data;
  const uint16_t one = 0x3c00, minus_two = 0xc000, half = 0x3800, zero = 0; /* fp16 */
  x[0] = one, x[1] = minus_two, x[2] = half, x[3] = zero;
  for (int step = 0; step < 3; step++) {
    check(aneforge_execute(program));
  }
  check(aneforge_view(program, ANEFORGE_OUTPUT, 0, &data, &bytes));
  const uint16_t *total = data;
  printf("total %04x %04x %04x %04x\n", total[0], total[1], total[2], total[3]);
  check(aneforge_view(program, ANEFORGE_OUTPUT, 1, &data, &bytes));
  const uint16_t *shown = data;
  printf("shown %04x %04x %04x %04x\n", shown[0], shown[1], shown[2], shown[3]);
  aneforge_release(program);
  return 0;
}
