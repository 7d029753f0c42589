/* A clock of instructions: qemu with `-icount shift=0` lets a nanosecond pass with each, and the timer SysTick of this board
   counts down once in 40 of them. It has 24 bits, so somebody must look every 600 million instructions. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

enum { PER_TICK = 40, BITS = 0xffffff };

static inline void clock_start(void) {
  *(volatile uint32_t *)0xe000e014 = BITS;
  *(volatile uint32_t *)0xe000e018 = 0;
  *(volatile uint32_t *)0xe000e010 = 5;
}

static inline uint32_t clock_now(void) { return *(volatile uint32_t *)0xe000e018; }

/* Instructions from an earlier time on. */
static inline uint32_t clock_since(uint32_t earlier) { return ((earlier - clock_now()) & BITS) * PER_TICK; }

/* Counts a loop of two million instructions, to show what the clock is worth. */
static inline uint32_t clock_of_two_million(void) {
  uint32_t times = 1000000, before = clock_now();
  __asm volatile("1: subs %0, #1\n bne 1b" : "+r"(times) : : "cc");
  return clock_since(before);
}

#endif
