// Threads of one call, and the floating-point state the kernels run in.
#pragma once

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace recap {

// Denormals count as zero while it lives; the state before comes back.
class FlushDenormals {
#if defined(__x86_64__) || defined(__i386__)
  public:
    FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }
    ~FlushDenormals() { _mm_setcsr(before_); }
    FlushDenormals(const FlushDenormals&) = delete;

  private:
    unsigned before_;
#endif
};

// Runs work(item, thread) for every item in [0, count) on up to `threads` threads. Items are handed
// out in any order, so results must not depend on which thread ran what. work must not throw.
// Own threads: OpenMP would load a second runtime beside the one torch carries.
template <class Work>
void parallel_for(int threads, int count, const Work& work) {
    std::atomic<int> next{0};
    auto loop = [&](int thread) {
        FlushDenormals state;
        for (int item = next++; item < count; item = next++) work(item, thread);
    };
    std::vector<std::thread> others;
    others.reserve(threads);
    try {
        for (int thread = 1; thread < threads && thread < count; ++thread) others.emplace_back(loop, thread);
    } catch (const std::system_error&) {
        // No more threads to be had: those that started do the work.
    }
    loop(0);
    for (std::thread& other : others) other.join();
}

}  // namespace recap
