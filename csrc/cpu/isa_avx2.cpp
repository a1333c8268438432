#define RECAP_ISA isa_avx2
#define RECAP_ISA_NAME "avx2"
#define RECAP_KERNEL kernel_avx2
#define RECAP_LANES 8
#define RECAP_GROUP_ROWS 6

#include "kernel_impl.hpp"
