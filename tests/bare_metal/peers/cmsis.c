/* Counts the instructions of a network's layers in CMSIS-NN, each on random data, and compares what convolutions and dense
   layers make with their definition. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "arm_nnfunctions.h"
#include "clock.h"
#include "layers.h"

static const struct layer layers[] = {
#include "shapes.h"
};

/* Zero points, as CMSIS-NN wants them; a Relu follows each layer. */
enum { INPUT_OFFSET = 5, OUTPUT_OFFSET = -120, LOW = -120, HIGH = 127 };
enum { ELEMENTS = 1 << 17, CHANNELS = 1024, ROOM = 1 << 16 };

static int8_t input[ELEMENTS], second[ELEMENTS], output[ELEMENTS], weights[ELEMENTS];
static int32_t biases[CHANNELS], multipliers[CHANNELS], shifts[CHANNELS], room[ROOM / 4];

static uint32_t random_number(void) {
  static uint32_t state = 1;
  state = state * 1664525 + 1013904223;
  return state >> 8;
}

static void randomise(void) {
  for (int i = 0; i < ELEMENTS; i++) {
    input[i] = (int8_t)random_number();
    second[i] = (int8_t)random_number();
    weights[i] = (int8_t)(random_number() % 255 - 127);
  }
  for (int i = 0; i < CHANNELS; i++) {
    biases[i] = (int32_t)(random_number() % 4096) - 2048;
    multipliers[i] = (1 << 30) + (int32_t)random_number();
    shifts[i] = -8 - (int32_t)(random_number() % 3);
  }
}

static cmsis_nn_context context(int32_t bytes) {
  if (bytes > ROOM) {
    printf("room for %d bytes is missing\n", (int)bytes);
    exit(2);
  }
  return (cmsis_nn_context){room, bytes};
}

static arm_cmsis_nn_status call(const struct layer *l) {
  const cmsis_nn_dims in = {1, l->in[0], l->in[1], l->in[2]}, out = {1, l->out[0], l->out[1], l->out[2]};
  const cmsis_nn_tile stride = {l->stride[1], l->stride[0]}, pad = {l->pad[1], l->pad[0]}, one = {1, 1};
  const cmsis_nn_activation bounds = {LOW, HIGH};
  const cmsis_nn_dims of_bias = {1, 1, 1, l->out[2]};
  const cmsis_nn_per_channel_quant_params each = {multipliers, shifts};
  cmsis_nn_context with;
  switch (l->kind) {
    case CONVOLUTION: {
      const cmsis_nn_conv_params how = {INPUT_OFFSET, OUTPUT_OFFSET, stride, pad, one, bounds};
      const cmsis_nn_dims filter = {l->out[2], l->kernel[0], l->kernel[1], l->in[2]};
      with = context(arm_convolve_wrapper_s8_get_buffer_size(&how, &in, &filter, &out));
      return arm_convolve_wrapper_s8(&with, &how, &each, &in, input, &filter, weights, &of_bias, biases, &out, output);
    }
    case DEPTHWISE: {
      const cmsis_nn_dw_conv_params how = {INPUT_OFFSET, OUTPUT_OFFSET, 1, stride, pad, one, bounds};
      const cmsis_nn_dims filter = {1, l->kernel[0], l->kernel[1], l->out[2]};
      with = context(arm_depthwise_conv_wrapper_s8_get_buffer_size(&how, &in, &filter, &out));
      return arm_depthwise_conv_wrapper_s8(&with, &how, &each, &in, input, &filter, weights, &of_bias, biases, &out, output);
    }
    case DENSE: {
      const cmsis_nn_fc_params how = {INPUT_OFFSET, 0, OUTPUT_OFFSET, bounds};
      const cmsis_nn_per_tensor_quant_params all = {multipliers[0], shifts[0]};
      const cmsis_nn_dims one_row = {1, 1, 1, l->in[2]}, filter = {l->in[2], 1, 1, l->out[2]};
      with = context(arm_fully_connected_s8_get_buffer_size(&filter));
      return arm_fully_connected_s8(&with, &how, &all, &one_row, input, &filter, weights, &of_bias, biases, &out, output);
    }
    case AVERAGE: {
      const cmsis_nn_pool_params how = {stride, pad, {-128, 127}};
      const cmsis_nn_dims filter = {1, l->kernel[0], l->kernel[1], 1};
      with = context(arm_avgpool_s8_get_buffer_size(l->out[1], l->in[2]));
      return arm_avgpool_s8(&with, &how, &in, input, &filter, &out, output);
    }
    case SUM: {
      const int count = l->out[0] * l->out[1] * l->out[2];
      return arm_elementwise_add_s8(input, second, 3, multipliers[0], -1, 7, multipliers[1], 0, 20, output, OUTPUT_OFFSET,
                                    multipliers[2], -19, LOW, HIGH, count);
    }
    case SOFTMAX:
      arm_softmax_s8(input, 1, l->out[2], 1 << 30, 23, -248, output);
      return ARM_CMSIS_NN_SUCCESS;
    default: return ARM_CMSIS_NN_SUCCESS;
  }
}

/* A sum times 2^shift times the multiplier as a fraction of 31 bits: rounded to an integer, and once more as it is shifted,
   where half goes away from 0. */
static int32_t scaled(int32_t sum, int32_t multiplier, int32_t shift) {
  const int64_t high = ((int64_t)sum * multiplier + (1 << 30)) >> 31, half = (int64_t)1 << (-shift - 1);
  return (int32_t)((high + half - (high < 0)) >> -shift);
}

static int32_t product(const struct layer *l, int y, int x, int filter, int ky, int kx, int channel) {
  const int iy = y * l->stride[0] + ky - l->pad[0], ix = x * l->stride[1] + kx - l->pad[1];
  const int tap = ky * l->kernel[1] + kx, taps = l->kernel[0] * l->kernel[1];
  if (iy < 0 || iy >= l->in[0] || ix < 0 || ix >= l->in[1]) return 0;
  const int32_t element = input[(iy * l->in[1] + ix) * l->in[2] + channel] + INPUT_OFFSET;
  return element * weights[l->kind == DEPTHWISE ? tap * l->out[2] + channel : (filter * taps + tap) * l->in[2] + channel];
}

/* Elements that are not as the definition says. */
static int wrong(const struct layer *l) {
  int count = 0, at = 0;
  for (int y = 0; y < l->out[0]; y++)
    for (int x = 0; x < l->out[1]; x++)
      for (int filter = 0; filter < l->out[2]; filter++, at++) {
        int32_t sum = biases[filter];
        const int first = l->kind == DEPTHWISE ? filter : 0, end = l->kind == DEPTHWISE ? filter + 1 : l->in[2];
        for (int ky = 0; ky < l->kernel[0]; ky++)
          for (int kx = 0; kx < l->kernel[1]; kx++)
            for (int channel = first; channel < end; channel++) sum += product(l, y, x, filter, ky, kx, channel);
        const int scale = l->kind == DENSE ? 0 : filter;
        int32_t made = scaled(sum, multipliers[scale], shifts[scale]) + OUTPUT_OFFSET;
        made = made < LOW ? LOW : made > HIGH ? HIGH : made;
        count += made != output[at];
      }
  return count;
}

int main(void) {
  clock_start();
  printf("clock %u\n", (unsigned)clock_of_two_million());
  randomise();
  for (unsigned i = 0; i < sizeof layers / sizeof *layers; i++) {
    const struct layer *l = &layers[i];
    if (l->kind == OTHER) continue;
    const uint32_t before = clock_now();
    const arm_cmsis_nn_status status = call(l);
    const uint32_t taken = clock_since(before);
    const bool is_compared = l->kind == CONVOLUTION || l->kind == DEPTHWISE || l->kind == DENSE;
    const int differ = is_compared ? wrong(l) : 0;
    if (status != ARM_CMSIS_NN_SUCCESS || differ > 0) {
      printf("layer %u fails: status %d, %d elements differ\n", i, (int)status, differ);
      return 1;
    }
    printf("layer %u %u\n", i, (unsigned)taken);
  }
  return 0;
}
