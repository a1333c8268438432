// The CPU backend, as its bindings see it. Arguments come checked but for what is named here.
#pragma once

#include <string>
#include <vector>

#include "../args.h"

namespace recap {

// Names of the instruction sets this build has and this processor can run, best last.
std::vector<std::string> isas();

// Throws std::invalid_argument, before it writes a result, when a key or a logit is not finite, when
// the LSE given contradicts the logits, or for an unknown `isa` ("" for the best).
void attn_stats(const AttnArgs& args, const std::string& isa);

void finalize(const FinalizeArgs& args);

}  // namespace recap
