#include "engine/same_shape.h"

#include <string>

namespace bloomline::detail {
namespace {

Error Mismatch(const char* what, const std::string& mine, const std::string& theirs) {
  return Error(ErrorCode::kMismatch, std::string("the filters differ in ") + what + ": " + mine + " and " + theirs);
}

}  // namespace

Status RequireSameShape(const FilterReader& a, const FilterReader& b) {
  if (a.layout() != b.layout() || a.k() != b.k()) {
    const std::string mine = LayoutNameWithK(a.layout(), a.k());
    const std::string theirs = LayoutNameWithK(b.layout(), b.k());
    return Mismatch(a.layout() != b.layout() ? "layout" : "k", mine, theirs);
  }
  if (a.blocks() != b.blocks()) {
    return Mismatch("size", std::to_string(a.blocks()) + " blocks", std::to_string(b.blocks()) + " blocks");
  }
  if (a.seed() != b.seed()) return Mismatch("seed", std::to_string(a.seed()), std::to_string(b.seed()));
  if (a.key_kind() != b.key_kind()) {
    return Mismatch("key kind", KeyKindName(a.key_kind()), KeyKindName(b.key_kind()));
  }
  if (a.overflow_policy() != b.overflow_policy()) {
    return Mismatch("overflow policy", OverflowPolicyName(a.overflow_policy()),
                    OverflowPolicyName(b.overflow_policy()));
  }
  return {};
}

}  // namespace bloomline::detail
