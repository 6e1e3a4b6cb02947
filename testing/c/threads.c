/* Eight threads: two programs that all of them share, and one of their own each, made and released again and again.
 * Arguments: DEVICE PROGRAM.graph. */
#include <aneforge.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 25 };

static aneforge_device *device;
static aneforge_program *shared[2];
static const char *graph;

static const char *run(aneforge_program *program, uint16_t total, uint16_t x, uint16_t sum) {
  uint16_t given[2][4], taken[2][4];
  for (int i = 0; i < 4; i++) given[0][i] = total, given[1][i] = x;
  const void *inputs[] = {given[0], given[1]};
  void *outputs[] = {taken[0], taken[1]};
  if (aneforge_run(program, inputs, 2, outputs, 2) != ANEFORGE_OK) return aneforge_last_error();
  for (int i = 0; i < 4; i++) {
    if (taken[0][i] != sum) return "a wrong answer";
  }
  return NULL;
}

static void *work(void *number) {
  const char *problem = NULL;
  for (int round = 0; round < ROUNDS && problem == NULL; round++) {
    aneforge_program *own = NULL;
    if (aneforge_load(device, graph, &own) != ANEFORGE_OK) problem = aneforge_last_error();
    if (problem == NULL) problem = run(own, 0x3c00, 0x4000, 0x4200);       /* 1 + 2 */
    if (problem == NULL) problem = run(shared[0], 0x3c00, 0x3c00, 0x4000); /* 1 + 1 */
    if (problem == NULL) problem = run(shared[1], 0x4000, 0x4000, 0x4400); /* 2 + 2 */
    aneforge_release(own);
    if (problem != NULL) break;
    /* Texts of failures belong to their thread. */
    if (aneforge_execute(own) != ANEFORGE_BAD_ARGUMENT) problem = "a released handle was taken";
    if (strstr(aneforge_last_error(), "released") == NULL) problem = "another thread's text";
  }
  if (problem != NULL) fprintf(stderr, "thread %d: %s\n", *(const int *)number, problem);
  return problem == NULL ? NULL : number;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  graph = argv[2];
  if (aneforge_open(argv[1], &device) != ANEFORGE_OK) return 3;
  for (int i = 0; i < 2; i++) {
    if (aneforge_load(device, graph, &shared[i]) != ANEFORGE_OK) return 4;
  }
  pthread_t threads[THREADS];
  int failed = 0, numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    void *problem = NULL;
    pthread_join(threads[i], &problem);
    failed |= problem != NULL;
  }
  for (int i = 0; i < 2; i++) aneforge_release(shared[i]);
  aneforge_close(device);
  return failed;
}
