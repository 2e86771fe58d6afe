/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMSNorm as one would write it by hand: two passes over a row that is in the cache, rows split
 * between threads that are made for the call. `streaming` writes past the cache.
 */
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#if defined(__AVX__)
#include <immintrin.h>
#endif

struct part {
  const float* x;
  const float* scale;
  float* y;
  size_t begin, end, width;
  float epsilon;
  int streaming;
};

static void* rows(void* argument) {
  const struct part* p = argument;
  for (size_t r = p->begin; r < p->end; ++r) {
    const float* x = p->x + r * p->width;
    float* y = p->y + r * p->width;
    float sums[64] = {0}; /* as many lanes as the compiler can use without -ffast-math */
    size_t i = 0;
    for (; i + 64 <= p->width; i += 64) {
      for (size_t k = 0; k < 64; ++k) sums[k] += x[i + k] * x[i + k];
    }
    float sum = 0;
    for (size_t k = 0; k < 64; ++k) sum += sums[k];
    for (; i < p->width; ++i) sum += x[i] * x[i];
    const float factor = 1.0f / sqrtf(sum / (float)p->width + p->epsilon);
    i = 0;
#if defined(__AVX__)
    if (p->streaming && ((size_t)y & 31) == 0) {
      const __m256 all = _mm256_set1_ps(factor);
      for (; i + 8 <= p->width; i += 8) {
        const __m256 value = _mm256_mul_ps(_mm256_loadu_ps(x + i), all);
        _mm256_stream_ps(y + i, _mm256_mul_ps(value, _mm256_loadu_ps(p->scale + i)));
      }
    }
#endif
    for (; i < p->width; ++i) y[i] = x[i] * factor * p->scale[i];
  }
#if defined(__AVX__)
  if (p->streaming) _mm_sfence();
#endif
  return NULL;
}

/* Returns 0, or -1 if `threads` is not 1 to 64 or a thread could not be made. */
int rms_norm(const float* x, const float* scale, float* y, size_t height, size_t width,
             float epsilon, int threads, int streaming) {
  pthread_t made[64];
  struct part parts[64];
  int started = 1;
  if (threads < 1 || threads > 64) return -1;
  for (int t = 0; t < threads; ++t) {
    parts[t].x = x;
    parts[t].scale = scale;
    parts[t].y = y;
    parts[t].begin = height * (size_t)t / (size_t)threads;
    parts[t].end = height * (size_t)(t + 1) / (size_t)threads;
    parts[t].width = width;
    parts[t].epsilon = epsilon;
    parts[t].streaming = streaming;
  }
  for (; started < threads; ++started) {
    if (pthread_create(&made[started], NULL, rows, &parts[started]) != 0) break;
  }
  rows(&parts[0]);
  for (int t = 1; t < started; ++t) pthread_join(made[t], NULL);
  return started == threads ? 0 : -1;
}
