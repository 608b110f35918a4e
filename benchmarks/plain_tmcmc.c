/* Transitional MCMC of a 1-3-1 tanh network in plain C: the algorithm of sbnn.sampling.tmcmc.

   cc -O3 -march=native -ffast-math plain_tmcmc.c -lm && ./a.out DATA PARTICLES SEED

   DATA holds a line "x y" per point. The prior is uniform on (-10, 10), the noise is 0.5. Prints the
   log evidence, the moves of all stages and the seconds after the data are read. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HIDDEN 3
#define D (3 * HIDDEN + 1)
#define BLOCK 20
#define MAX_MOVES 400
#define MAX_POINTS 1024
static const double BOUND = 10.0, SIGMA = 0.5, LOG_2PI = 1.8378770664093453;
static const double TARGET = 0.25, DECORRELATED = 0.2;

static float x[MAX_POINTS], y[MAX_POINTS]; /* single precision for the network, as in sbnn */
static int points;

/* xoshiro256** (Blackman and Vigna) */
static uint64_t s[4];
static inline uint64_t rotl(uint64_t v, int k) { return (v << k) | (v >> (64 - k)); }
static inline uint64_t bits(void) {
  uint64_t out = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
  s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = rotl(s[3], 45);
  return out;
}
static inline double uniform(void) { return ((bits() >> 11) + 0.5) * 0x1p-53; }
static void seed_with(uint64_t seed) {
  for (int i = 0; i < 4; i++) { /* splitmix64 */
    uint64_t z = (seed += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    s[i] = z ^ (z >> 31);
  }
}

static double log_likelihood(const double *phi) {
  float p[D], squares[MAX_POINTS];
  double sum = 0.0;
  for (int j = 0; j < D; j++) p[j] = (float)phi[j];
  for (int i = 0; i < points; i++) {
    float r = y[i] - p[3 * HIDDEN];
    for (int h = 0; h < HIDDEN; h++)
      r -= p[2 * HIDDEN + h] * tanhf(p[h] * x[i] + p[HIDDEN + h]);
    squares[i] = r * r;
  }
  for (int i = 0; i < points; i++) sum += squares[i];
  return -0.5 * sum / (SIGMA * SIGMA) - points * (log(SIGMA) + 0.5 * LOG_2PI);
}

static double coefficient_of_variation(const double *ll, int n, double delta, double top) {
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < n; i++) {
    double w = exp(delta * (ll[i] - top));
    sum += w;
    squares += w * w;
  }
  double mean = sum / n;
  return sqrt(fmax(squares / n - mean * mean, 0.0)) / mean;
}

static double next_beta(const double *ll, int n, double beta, double top) {
  double low = beta, high = 1.0;
  if (coefficient_of_variation(ll, n, 1.0 - beta, top) <= 1.0) return 1.0;
  for (int k = 0; k < 100; k++) {
    double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    if (coefficient_of_variation(ll, n, middle - beta, top) > 1.0) high = middle; else low = middle;
  }
  return low > beta ? low : high;
}

/* Cholesky factor of the covariance of the particles with weights w in [from, to). */
static void factor_of(const double *phi, const double *w, int from, int to, double out[D][D]) {
  double mean[D] = {0}, total = 0.0, c[D][D] = {{0}};
  for (int i = from; i < to; i++) {
    total += w[i];
    for (int j = 0; j < D; j++) mean[j] += w[i] * phi[i * D + j];
  }
  for (int j = 0; j < D; j++) mean[j] /= total;
  for (int i = from; i < to; i++) {
    double delta[D];
    for (int j = 0; j < D; j++) delta[j] = phi[i * D + j] - mean[j];
    for (int j = 0; j < D; j++)
      for (int k = 0; k <= j; k++) c[j][k] += w[i] / total * delta[j] * delta[k];
  }
  memset(out, 0, sizeof(double) * D * D);
  for (int j = 0; j < D; j++)
    for (int k = 0; k <= j; k++) {
      double sum = c[j][k] + (j == k ? 1e-10 * c[j][j] : 0.0);
      for (int m = 0; m < k; m++) sum -= out[j][m] * out[k][m];
      out[j][k] = j == k ? sqrt(sum) : sum / out[k][k];
    }
}

/* A random order of the neurons with random signs: the network stays the same. */
static void random_image(const double *from, double *to) {
  int order[HIDDEN];
  for (int h = 0; h < HIDDEN; h++) order[h] = h;
  for (int h = HIDDEN - 1; h > 0; h--) {
    int other = bits() % (h + 1), kept = order[h];
    order[h] = order[other];
    order[other] = kept;
  }
  for (int h = 0; h < HIDDEN; h++) {
    double sign = bits() >> 63 ? 1.0 : -1.0;
    for (int part = 0; part < 3; part++)
      to[part * HIDDEN + h] = sign * from[part * HIDDEN + order[h]];
  }
  to[3 * HIDDEN] = from[3 * HIDDEN];
}

/* Moves of every particle; returns how many were accepted. */
static long walk(double *phi, double *ll, int n, const int *half, double factor[2][D][D],
                 double scale, double beta, int moves) {
  long accepted = 0;
  for (int i = 0; i < n; i++) {
    double *here = phi + i * D, there[D], noise[D];
    for (int move = 0; move < moves; move++) {
      uint64_t word = 0;
      for (int j = 0; j < D; j++) { /* sixteen bits of a uniform of variance one, as in sbnn */
        if (j % 4 == 0) word = bits();
        noise[j] = (((word >> 16 * (j % 4) & 0xffff) + 0.5) / 65536.0 - 0.5) * 3.4641016151377544;
      }
      int inside = 1;
      for (int j = 0; j < D; j++) {
        double sum = 0.0;
        for (int k = 0; k <= j; k++) sum += factor[half[i]][j][k] * noise[k];
        there[j] = here[j] + scale * sum;
        inside &= fabs(there[j]) < BOUND;
      }
      if (!inside) continue;
      double found = log_likelihood(there);
      if (log(uniform()) < beta * (found - ll[i])) {
        memcpy(here, there, sizeof there);
        ll[i] = found;
        accepted++;
      }
    }
  }
  return accepted;
}

static double correlation(const double *a, const double *b, int n) {
  double ma = 0, mb = 0, aa = 0, bb = 0, ab = 0;
  for (int i = 0; i < n; i++) { ma += a[i] / n; mb += b[i] / n; }
  for (int i = 0; i < n; i++) {
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
    ab += (a[i] - ma) * (b[i] - mb);
  }
  return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0.0;
}

int main(int argc, char **argv) {
  if (argc != 4) return fprintf(stderr, "usage: plain_tmcmc DATA PARTICLES SEED\n"), 2;
  FILE *file = fopen(argv[1], "r");
  if (!file) return perror(argv[1]), 2;
  while (points < MAX_POINTS && fscanf(file, "%f %f", x + points, y + points) == 2) points++;
  fclose(file);
  int n = atoi(argv[2]), total_moves = 0;
  seed_with(strtoull(argv[3], NULL, 10));
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);

  double *phi = malloc(sizeof(double) * n * D), *other = malloc(sizeof(double) * n * D);
  double *ll = malloc(sizeof(double) * n), *w = malloc(sizeof(double) * n);
  double *start = malloc(sizeof(double) * n), factor[2][D][D];
  int *half = malloc(sizeof(int) * n);
  double beta = 0.0, log_evidence = 0.0, scale = 2.38 / sqrt(D);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < D; j++) phi[i * D + j] = BOUND * (2.0 * uniform() - 1.0);
    ll[i] = log_likelihood(phi + i * D);
  }
  while (beta < 1.0) {
    double top = ll[0], sum = 0.0;
    for (int i = 1; i < n; i++) top = fmax(top, ll[i]);
    double next = next_beta(ll, n, beta, top);
    for (int i = 0; i < n; i++) sum += w[i] = exp((next - beta) * (ll[i] - top));
    log_evidence += log(sum / n) + (next - beta) * top;
    beta = next;
    factor_of(phi, w, (n + 1) / 2, n, factor[0]); /* each half moves with the other's shape */
    factor_of(phi, w, 0, (n + 1) / 2, factor[1]);
    double at = uniform() / n * sum, step = sum / n, cumulated = w[0];
    for (int i = 0, from = 0; i < n; i++, at += step) {
      while (cumulated < at && from < n - 1) cumulated += w[++from];
      random_image(phi + from * D, other + i * D);
      start[i] = ll[from];
      half[i] = 2 * from >= n;
    }
    double *kept = phi;
    phi = other;
    other = kept;
    memcpy(ll, start, sizeof(double) * n);
    for (int moves = 0, calm = 0; moves < MAX_MOVES && calm < 2; moves += BLOCK) {
      long accepted = walk(phi, ll, n, half, factor, scale, beta, BLOCK);
      scale *= exp(2.0 * ((double)accepted / BLOCK / n - TARGET));
      calm = correlation(start, ll, n) <= DECORRELATED ? calm + 1 : 0;
      total_moves += BLOCK;
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = end.tv_sec - begin.tv_sec + 1e-9 * (end.tv_nsec - begin.tv_nsec);
  printf("%.6f %d %.6f\n", log_evidence, total_moves, seconds);
  return 0;
}
