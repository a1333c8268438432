#define RECAP_ISA isa_avx512
#define RECAP_ISA_NAME "avx512"
#define RECAP_KERNEL kernel_avx512
#define RECAP_LANES 16
#define RECAP_GROUP_ROWS 12

#include "kernel_impl.hpp"
