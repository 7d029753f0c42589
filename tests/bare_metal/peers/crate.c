/* Counts the instructions of a frame of an emitted crate, layer by layer. `run` makes the crate call `mark` before its first
   layer and after each firing, and its own example in C, whose `main` is named `example` here, gives it a frame. */
#include <stdio.h>

#include "clock.h"

enum { MOST = 256 };

int example(void);

static uint64_t taken[MOST];
static uint32_t last;

/* The firing of this layer has ended. */
void mark(uint32_t layer) {
  if (layer < MOST) taken[layer] += clock_since(last);
  last = clock_now();
}

int main(void) {
  clock_start();
  printf("clock %u\n", (unsigned)clock_of_two_million());
  int code = example();
  for (unsigned layer = 0; layer < MOST; layer++)
    if (taken[layer] > 0) printf("layer %u %u\n", layer, (unsigned)taken[layer]);
  return code;
}
