#define RECAP_ISA isa_base
#define RECAP_ISA_NAME "base"
#define RECAP_KERNEL kernel_base
#define RECAP_LANES 4
#define RECAP_GROUP_ROWS 6

#include "kernel_impl.hpp"
