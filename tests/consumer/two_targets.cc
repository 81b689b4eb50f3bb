// The part for every processor, and a program that calls the others where the processor is theirs. Arguments: a file to
// write; "parts" runs them too. The parts' objects are linked before this one, so that of every function that both have
// the linker keeps the part's: on a processor without AVX2 none of these may be called.
#include "two_targets.h"

#include <cstring>

int PartAvx2(const char* path);
int PartSse42(const char* path);

int main(int argc, char** argv) {
  if (argc < 2) return 100;
  int status = UseEverything(argv[1]);
  if (status != 0 || argc < 3 || std::strcmp(argv[2], "parts") != 0) return status;
  if (__builtin_cpu_supports("sse4.2")) status = PartSse42(argv[1]);
  if (status == 0 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) status = PartAvx2(argv[1]);
  return status;
}
