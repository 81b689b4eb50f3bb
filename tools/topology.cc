// bloomline topology: the machine as the library sees it, and what it chooses by itself on it.
#include "bloomline/topology.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bloomline/target.h"
#include "bloomline/thread_pool.h"
#include "tools/cli_error.h"
#include "tools/command.h"
#include "tools/numbers.h"
#include "tools/output.h"
#include "tools/report.h"

namespace bloomline::cli {
namespace {

constexpr uint64_t kDefaultMemory = uint64_t{1} << 30;

// Huge pages that the administrator has set aside.
struct PageReserve {
  uint64_t page_bytes;
  uint64_t total;
  uint64_t free;
};

std::vector<PageReserve> ReadReserves() {
  std::vector<PageReserve> reserves;
  for (const uint64_t page_bytes : {uint64_t{2} << 20, uint64_t{1} << 30}) {
    const std::string directory = "/sys/kernel/mm/hugepages/hugepages-" + std::to_string(page_bytes / 1024) + "kB/";
    PageReserve reserve{page_bytes, 0, 0};
    std::ifstream total(directory + "nr_hugepages");
    std::ifstream free(directory + "free_hugepages");
    if (total >> reserve.total && free >> reserve.free) reserves.push_back(reserve);
  }
  return reserves;
}

// "0-7, 16-23"
std::string Ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(numbers[i]);
    if (end > i) text += "-" + std::to_string(numbers[end]);
    i = end + 1;
  }
  return text;
}

std::string Plural(size_t count, const std::string& thing) {
  return FormatCount(count) + " " + thing + (count == 1 ? "" : "s");
}

class TopologyCommand final : public Command {
 public:
  const char* name() const override { return "topology"; }
  const char* summary() const override { return "Show nodes, cores and caches, and what auto chooses on them"; }
  const char* epilogue() const override {
    return "What the process may use is shown: a control group's cpuset and its affinity count. The choices are for a\n"
           "filter of --memory bytes; the command line's and the library's defaults make the same ones. --synthetic\n"
           "shows them for another machine, in hwloc's notation; nothing is bound by such a topology.\n"
           "\n"
           "Examples:\n"
           "  bloomline topology\n"
           "  bloomline topology --memory 64MiB --json\n"
           "  bloomline topology --synthetic 'numa:2 l3:1(size=33554432) core:16 pu:2'";
  }

  void Declare(CLI::App& app) override {
    app.add_option("--memory", memory_, "The filter's size, such as 64MiB [1GiB]")->type_name("BYTES");
    app.add_option("--synthetic", synthetic_, "A made-up machine in hwloc's notation in place of this one")
        ->type_name("TEXT");
  }

  void Run(const CommonOptions& common) override {
    const uint64_t bytes = memory_ ? ParseBytes("--memory", *memory_) : kDefaultMemory;
    const std::shared_ptr<const Topology> topology =
        synthetic_ ? Must(Topology::Synthetic(*synthetic_), "--synthetic") : Topology::Machine();
    const PlacementChoice placement = ChoosePlacement(*topology, bytes);
    const std::unique_ptr<ThreadPool> pool = Must(ThreadPool::Create(ThreadPool::kAuto, topology));
    // Of this machine; a made-up one has none.
    const std::vector<PageReserve> reserves = topology->synthetic() ? std::vector<PageReserve>() : ReadReserves();
    if (common.json) {
      PrintJson(ToJson(*topology, bytes, placement, *pool, reserves));
    } else {
      PrintText(ToText(*topology, bytes, placement, *pool, reserves));
    }
  }

 private:
  static Json ToJson(const Topology& topology, uint64_t bytes, const PlacementChoice& placement, const ThreadPool& pool,
                     const std::vector<PageReserve>& reserves) {
    Json json;
    json["nodes"] = Json::array();
    for (const NumaNode& node : topology.nodes()) {
      json["nodes"].push_back({{"number", node.number}, {"memory_bytes", node.memory_bytes}, {"cpus", node.cpus}});
    }
    json["cores"] = Json::array();
    for (const CpuCore& core : topology.cores()) {
      const int node = topology.nodes()[static_cast<size_t>(core.node)].number;
      json["cores"].push_back({{"node", node}, {"cpus", core.cpus}});
    }
    json["caches"] = Json::array();
    for (const CpuCache& cache : topology.caches()) {
      json["caches"].push_back({{"level", cache.level},
                                {"bytes", cache.bytes},
                                {"count", cache.count},
                                {"cpus_sharing", cache.cpus_sharing}});
    }
    json["distances"] = topology.distances();
    json["synthetic"] = topology.synthetic();
    json["note"] = topology.note();
    json["reserved_pages"] = Json::array();
    for (const PageReserve& reserve : reserves) {
      json["reserved_pages"].push_back(
          {{"page_bytes", reserve.page_bytes}, {"total", reserve.total}, {"free", reserve.free}});
    }
    json["auto"] = {{"memory_bytes", bytes},
                    {"placement", PlacementName(placement.placement)},
                    {"why", placement.why},
                    {"pages", PagesName(MemoryPolicy().pages)},
                    {"threads", pool.threads()},
                    {"threads_note", pool.note()},
                    {"target", Must(TryChosenTarget())}};
    return json;
  }

  static std::string ToText(const Topology& topology, uint64_t bytes, const PlacementChoice& placement,
                            const ThreadPool& pool, const std::vector<PageReserve>& reserves) {
    Table table;
    size_t cpus = 0;
    for (const NumaNode& node : topology.nodes()) cpus += node.cpus.size();
    table.Add(topology.synthetic() ? "made up" : "machine", Plural(topology.nodes().size(), "NUMA node") + ", " +
                                                                Plural(topology.cores().size(), "core") + ", " +
                                                                Plural(cpus, "hardware thread"));
    for (const NumaNode& node : topology.nodes()) {
      table.Add("node " + std::to_string(node.number),
                (node.memory_bytes != 0 ? FormatBytes(node.memory_bytes) + ", " : std::string()) +
                    (node.cpus.size() == 1 ? "hardware thread " : "hardware threads ") + Ranges(node.cpus));
    }
    std::string label = "caches";
    for (const CpuCache& cache : topology.caches()) {
      table.Add(std::exchange(label, {}), "L" + std::to_string(cache.level) + " " + FormatBytes(cache.bytes) + ", " +
                                              FormatCount(static_cast<uint64_t>(cache.count)) +
                                              (cache.count == 1 ? " of it" : " of them") + ", for " +
                                              Plural(static_cast<size_t>(cache.cpus_sharing), "hardware thread") +
                                              (cache.count == 1 ? "" : " each"));
    }
    label = "distances";
    for (size_t i = 0; i < topology.distances().size(); ++i) {
      std::string row = "from node " + std::to_string(topology.nodes()[i].number) + ":";
      for (const uint64_t distance : topology.distances()[i]) row += " " + std::to_string(distance);
      table.Add(std::exchange(label, {}), row);
    }
    label = "huge pages";
    for (const PageReserve& reserve : reserves) {
      table.Add(std::exchange(label, {}), "in reserve, of " + FormatBytes(reserve.page_bytes) + ": " +
                                              FormatCount(reserve.total) + ", free: " + FormatCount(reserve.free));
    }
    if (!topology.note().empty()) table.AddProse("note", topology.note());
    std::string text = table.Text();

    Table choices;
    choices.AddProse("placement", std::string(PlacementName(placement.placement)) + ": " + placement.why);
    choices.AddProse("pages",
                     "transparent huge pages where the kernel grants them; those in reserve only when asked "
                     "for (--pages 2MiB, 1GiB)");
    choices.AddProse("threads", FormatCount(static_cast<uint64_t>(pool.threads())) +
                                    ": one for each hardware thread that this process may use" +
                                    (pool.note().empty() ? "" : "; " + pool.note()));
    choices.Add("target", Must(TryChosenTarget()));
    return text + "\nFor a filter of " + FormatBytes(bytes) + ", auto chooses\n" + choices.Text();
  }

  std::optional<std::string> memory_, synthetic_;
};

}  // namespace

std::unique_ptr<Command> MakeTopologyCommand() { return std::make_unique<TopologyCommand>(); }

}  // namespace bloomline::cli
