// What a calibration depends on: the CPU, its caches, the SIMD target and the library.
#pragma once

#include <cstdint>
#include <string>

namespace bloomline::cli {

// Two machines with equal fields are taken to be equally fast.
struct MachineIdentity {
  std::string cpu;      // "AMD EPYC 9575F, family 26, model 2, stepping 1"; "unknown" where the system does not say
  std::string caches;   // as cpu0 sees them: "L1 Data 48K, L2 Unified 1024K"
  std::string target;   // the SIMD target in use
  std::string version;  // of the library
  friend bool operator==(const MachineIdentity&, const MachineIdentity&) = default;
};

MachineIdentity ThisMachine();

// Memory that could be taken now without swapping; 0 where the system does not say.
uint64_t AvailableMemoryBytes();

}  // namespace bloomline::cli
