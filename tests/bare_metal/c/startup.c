/* Where a program in C begins on mps2-an386 or mps3-an547, and what it needs of the board. Printing goes through newlib and
   qemu. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

extern int main(void);
extern void initialise_monitor_handles(void);
extern uint32_t stack_top;

static void start(void) {
  /* Lets the program use the floating-point unit, and Helium where there is that. */
  *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20;
  __asm volatile("dsb\nisb");
  initialise_monitor_handles();
  int code = main();
  fflush(NULL);
  _exit(code);
}

static void fault(void) { _exit(3); }

/* The table of vectors: the stack, where to start, and the faults. */
__attribute__((section(".start"), used)) static const void *const vectors[16] = {
    &stack_top, (const void *)start, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault};
