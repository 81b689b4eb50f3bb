#include "tools/memory_option.h"

#include <string_view>

#include "bloomline/thread_pool.h"
#include "bloomline/topology.h"
#include "tools/cli_error.h"
#include "tools/numbers.h"

namespace bloomline::cli {
namespace {

constexpr std::string_view kBind = "bind:";

}  // namespace

void ThreadsOption::Declare(CLI::App& app) {
  app.add_option("--threads", threads_, "1 to 4096, or auto: all that this process may use [auto]")->type_name("N");
}

int ThreadsOption::Read() const {
  if (!threads_ || *threads_ == "auto") return ThreadPool::kAuto;
  return static_cast<int>(ParseCount("--threads", *threads_, 1, ThreadPool::kMaxThreads));
}

void MemoryOption::Declare(CLI::App& app) {
  app.add_option("--pages", pages_, "default, transparent (huge), 2MiB or 1GiB [transparent]")->type_name("P");
  app.add_option("--placement", placement_, "NUMA: auto, local, interleave, bind:NODE, replicate, partition [auto]")
      ->type_name("WHERE");
}

MemoryPolicy MemoryOption::Read() const {
  MemoryPolicy policy;
  if (pages_) {
    bool known = false;
    for (const Pages pages : {Pages::kDefault, Pages::kTransparentHuge, Pages::kHuge2MiB, Pages::kHuge1GiB}) {
      if (*pages_ != PagesName(pages)) continue;
      policy.pages = pages;
      known = true;
    }
    if (!known) ThrowUsage("--pages", *pages_, "must be default, transparent, 2MiB or 1GiB");
  }
  if (placement_) {
    bool known = false;
    if (placement_->starts_with(kBind)) {
      const std::string node = placement_->substr(kBind.size());
      policy.placement = Placement::kBind;
      policy.node = static_cast<int>(ParseCount("--placement bind:", node, 0, 1'000'000));
      std::string nodes;
      for (const NumaNode& one : Topology::Machine()->nodes()) {
        nodes += (nodes.empty() ? "" : ", ") + std::to_string(one.number);
        known = known || one.number == policy.node;
      }
      if (!known) ThrowUsage("--placement", *placement_, "there is no such node; the nodes are " + nodes);
    }
    for (const Placement placement :
         {Placement::kAuto, Placement::kLocal, Placement::kInterleave, Placement::kReplicate, Placement::kPartition}) {
      if (*placement_ != PlacementName(placement)) continue;
      policy.placement = placement;
      known = true;
    }
    if (!known) {
      ThrowUsage("--placement", *placement_, "must be auto, local, interleave, bind:NODE, replicate or partition");
    }
  }
  return policy;
}

}  // namespace bloomline::cli
