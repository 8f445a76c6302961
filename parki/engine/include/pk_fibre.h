// Fibres: separate stacks inside one thread of the host, and the switch between them.
// x86-64 and AArch64 switch in some 20 instructions; ucontext, elsewhere or with PK_FIBRE_UCONTEXT, makes system calls.
#ifndef PK_FIBRE_H
#define PK_FIBRE_H
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#if !defined(PK_FIBRE_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define PK_FIBRE_UCONTEXT
#endif
#ifdef PK_FIBRE_UCONTEXT
#include <ucontext.h>
#endif

enum { pk_fibre_bytes = 64 << 10 };  // size of a stack; an inaccessible page lies below each stack

struct pk_fibre {
#ifdef PK_FIBRE_UCONTEXT
  ucontext_t context;
#else
  void* sp;
#endif
  pk_fibre* next;  // in the list of fibres at rest
};

#ifdef PK_FIBRE_UCONTEXT
static inline void pk_fibre_switch(pk_fibre* from, const pk_fibre* to) { swapcontext(&from->context, &to->context); }
static inline void pk_fibre_begin(pk_fibre* fibre, char* stack, void (*entry)()) {
  getcontext(&fibre->context);
  fibre->context.uc_stack.ss_sp = stack;
  fibre->context.uc_stack.ss_size = pk_fibre_bytes;
  fibre->context.uc_link = nullptr;
  makecontext(&fibre->context, entry, 0);
}
#else
// Push the callee-saved registers, store the stack pointer in *from, and continue where `to` was left.
extern "C" void pk_fibre_swap(void** from, void* to) __asm__("pk_fibre_swap") __attribute__((visibility("hidden")));

#ifdef __ELF__
#define PK_FIBRE_TEXT(body) __asm__(".pushsection .text\n.p2align 4\npk_fibre_swap:\n" body "\n.popsection\n")
#else
#define PK_FIBRE_TEXT(body) __asm__(".text\n.p2align 4\npk_fibre_swap:\n" body "\n")
#endif
#ifdef __x86_64__
enum { pk_fibre_frame = 8, pk_fibre_return = 6 };  // words: size of the frame, position of the return address
PK_FIBRE_TEXT(
    "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
    "movq %rsp, (%rdi)\n"
    "movq %rsi, %rsp\n"
    "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
    "ret");
#else
enum { pk_fibre_frame = 20, pk_fibre_return = 11 };
PK_FIBRE_TEXT(
    "sub sp, sp, #160\n"
    "stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n"
    "stp x25, x26, [sp, #48]\n stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
    "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
    "mov x2, sp\n str x2, [x0]\n"
    "mov sp, x1\n"
    "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n"
    "ldp x25, x26, [sp, #48]\n ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
    "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
    "add sp, sp, #160\n"
    "ret");
#endif

static inline void pk_fibre_switch(pk_fibre* from, const pk_fibre* to) { pk_fibre_swap(&from->sp, to->sp); }
static inline void pk_fibre_begin(pk_fibre* fibre, char* stack, void (*entry)()) {
  void** const sp = (void**)(stack + pk_fibre_bytes) - pk_fibre_frame;  // all words are zero: the stack is fresh
  sp[pk_fibre_return] = (void*)entry;
  fibre->sp = sp;
}
#endif

// Up to `most` fibres; a stack is made when first needed, and all stacks are freed together.
struct pk_fibres {
  pk_fibre* all;
  pk_fibre* rest;
  char* stacks;
  size_t step;
  int32_t made, most;
};

extern "C" int getpagesize(void);  // <unistd.h> declares `read`, `link` and other names that a kernel may define

static inline bool pk_fibres_open(pk_fibres* f, int32_t most) {
  *f = {};
  f->most = most;
  f->step = (size_t)getpagesize() + pk_fibre_bytes;
  f->all = (pk_fibre*)__builtin_calloc((size_t)most, sizeof(pk_fibre));
  void* const stacks = mmap(nullptr, f->step * (size_t)most, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  f->stacks = stacks == MAP_FAILED ? nullptr : (char*)stacks;
  return f->all && f->stacks;
}
// Return a fibre at rest, or a new one that will begin at `entry`; null if all are in use or there is no memory.
static inline pk_fibre* pk_fibres_take(pk_fibres* f, void (*entry)()) {
  if (pk_fibre* const found = f->rest) {
    f->rest = found->next;
    return found;
  }
  if (f->made == f->most) return nullptr;
  char* const stack = f->stacks + f->step * (size_t)f->made + (f->step - pk_fibre_bytes);
  if (mprotect(stack, pk_fibre_bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
  pk_fibre* const fibre = f->all + f->made++;
  pk_fibre_begin(fibre, stack, entry);
  return fibre;
}
static inline void pk_fibres_put(pk_fibres* f, pk_fibre* fibre) {
  fibre->next = f->rest;
  f->rest = fibre;
}
static inline void pk_fibres_close(pk_fibres* f) {
  if (f->stacks) munmap(f->stacks, f->step * (size_t)f->most);
  __builtin_free(f->all);
  *f = {};
}
#endif
