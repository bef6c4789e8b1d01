#include <stdint.h>

/* Max pooling with kernel 3, stride 2 and padding 1 over N*C maps of H rows and W columns.
 * y gets the largest value of each window and idx its position row * W + column within the map.
 * Padding never wins. Among equal values the first in row-major order wins; a NaN beats any number. */
int reference(const float *x, float *y, int64_t *idx, int64_t C, int64_t H, int64_t N, int64_t W, void *stream) {
  const int64_t out_h = (H + 1) / 2;
  const int64_t out_w = (W + 1) / 2;
  (void)stream;
  for (int64_t plane = 0; plane < N * C; ++plane) {
    const float *map = x + plane * H * W;
    for (int64_t oh = 0; oh < out_h; ++oh) {
      const int64_t top = 2 * oh - 1 < 0 ? 0 : 2 * oh - 1;
      const int64_t bottom = 2 * oh + 2 > H ? H : 2 * oh + 2;
      for (int64_t ow = 0; ow < out_w; ++ow) {
        const int64_t left = 2 * ow - 1 < 0 ? 0 : 2 * ow - 1;
        const int64_t right = 2 * ow + 2 > W ? W : 2 * ow + 2;
        int64_t where = top * W + left;
        float best = map[where];
        for (int64_t h = top; h < bottom; ++h) {
          for (int64_t w = left; w < right; ++w) {
            const float value = map[h * W + w];
            if (value > best || value != value) {
              best = value;
              where = h * W + w;
            }
          }
        }
        *y++ = best;
        *idx++ = where;
      }
    }
  }
  return 0;
}
