/* A stand-in for DMK's library: the calls of its dmk.h that benchmarks use, with direct sums, wrong by a share of eps. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int n_dim;
    double eps;
    int kernel, eval_src, eval_trg;
    double fparam;
    int use_periodic, n_per_leaf, log_level;
    uint32_t debug_flags;
    double debug_params[8];
} tree_parameters;

typedef struct {
    tree_parameters p;
    int n, components;
    double *x, *q;
} tree;

const char *pdmk_last_error_message(void) { return "no eps"; }

int trees = 0; /* trees that were made and not destroyed */

tree *pdmk_tree_create(void *comm, tree_parameters p, int n, const double *x, const double *q, const double *normals,
                       int n_trg, const double *x_trg) {
    int components = p.kernel == 3 ? 3 : 1;
    if (comm || normals || n_trg || x_trg || p.n_dim != 3 || p.use_periodic || p.debug_flags || p.n_per_leaf < 1)
        abort();
    if (p.eps <= 0)
        return 0;
    tree *t = malloc(sizeof(tree));
    *t = (tree){p, n, components, malloc(3 * n * sizeof(double)), malloc(components * n * sizeof(double))};
    memcpy(t->x, x, 3 * n * sizeof(double));
    memcpy(t->q, q, components * n * sizeof(double));
    trees++;
    return t;
}

int pdmk_tree_update_charges(tree *t, const double *q, const double *normals) {
    memcpy(t->q, q, t->components * t->n * sizeof(double));
    return normals != 0 || isnan(q[0]);
}

int pdmk_tree_eval(tree *t, double *u, double *u_trg) {
    int results = t->components == 3 ? 3 : t->p.eval_src == 2 ? 4 : 1;
    memset(u, 0, results * t->n * sizeof(double));
    for (int i = 0; i < t->n; i++)
        for (int j = 0; j < t->n; j++) {
            double d[3], r2 = 0, *v = u + results * i, *q = t->q + t->components * j;
            for (int a = 0; a < 3; a++)
                r2 += (d[a] = t->x[3 * i + a] - t->x[3 * j + a]) * d[a];
            double r = sqrt(r2), k = t->p.kernel == 0 ? t->p.fparam : 0;
            if (i == j)
                continue;
            if (results == 3) {
                double along = (d[0] * q[0] + d[1] * q[1] + d[2] * q[2]) / r2;
                for (int a = 0; a < 3; a++)
                    v[a] += 0.5 * (q[a] + along * d[a]) / r;
                continue;
            }
            double f = q[0] * exp(-k * r) / r;
            v[0] += f;
            for (int a = 0; results == 4 && a < 3; a++)
                v[1 + a] -= f * (k + 1 / r) * d[a] / r;
        }
    for (int i = 0; i < results * t->n; i++)
        u[i] *= 1 + 0.5 * t->p.eps * (i % 2 ? 1 : -1);
    return u_trg != 0;
}

void pdmk_tree_destroy(tree *t) {
    free(t->x);
    free(t->q);
    free(t);
    trees--;
}

typedef struct {
    double L, r_c, eps;
    int log_level, kernel;
    double fparam;
    int n_dim, eval_type;
    double sigma;
    int use_periodic;
    double freespace_pad;
    uint32_t esp_flags;
    int esp_bins, esp_stile;
} esp_parameters;

int plans = 0;

esp_parameters *pdmk_esp_plan_create(void *comm, esp_parameters p) {
    if (p.eps <= 0)
        return 0;
    esp_parameters *plan = malloc(sizeof(p));
    *plan = p;
    plans++;
    return comm ? 0 : plan;
}

/* Return the parameters, points and charges that arrive, as numbers that tell them apart. */
void pdmk_esp_eval(void *comm, esp_parameters *p, int n, const double *x, const double *q, const double *normals,
                   double *u) {
    double known = comm || normals ? NAN : 1e3 * p->L + 1e4 * p->r_c + 1e6 * p->eps + 1e5 * p->sigma + p->log_level;
    known += 10 * p->kernel + 20 * p->n_dim + 30 * p->eval_type + 40 * p->use_periodic + 50 * p->esp_flags;
    known += p->fparam + p->freespace_pad + p->esp_stile + 60 * p->esp_bins;
    for (int i = 0; i < n; i++)
        u[i] = known + x[3 * i] + 2 * x[3 * i + 1] + 3 * x[3 * i + 2] + 4 * q[i];
}

void pdmk_esp_plan_destroy(esp_parameters *p) {
    free(p);
    plans--;
}
