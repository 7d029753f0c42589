/* The layers of a network, as `run` writes them into `shapes.h`. */
#ifndef LAYERS_H
#define LAYERS_H

enum kind { CONVOLUTION, DEPTHWISE, DENSE, AVERAGE, SUM, SOFTMAX, OTHER };

struct layer {
  enum kind kind;
  /* Height, width and channels. */
  int in[3], out[3];
  /* Height and width. */
  int kernel[2], stride[2], pad[2];
};

#endif
