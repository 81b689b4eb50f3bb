// What a user of the throwing interface writes. Arguments: a file to write, the version expected.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <bloomline/bloomline.h>

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(bloomline::Version()) != argv[2]) {
    std::fprintf(stderr, "version %s, expected %s\n", bloomline::Version(), argc == 3 ? argv[2] : "an argument");
    return 1;
  }
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = 7 * i;

  bloomline::Filter filter(bloomline::FilterConfig::ForFpr(keys.size(), 0.001));
  filter.InsertBatch(keys);
  filter.Save(argv[1]);
  const auto loaded = bloomline::Filter::Load(argv[1]);
  const auto view = bloomline::FilterView::Map(argv[1]);

  std::vector<uint32_t> positions(keys.size());
  if (loaded.SelectBatch(keys, positions) != keys.size()) return 2;
  for (const uint64_t key : keys) {
    if (!view.MayContain(key)) return 3;
  }
  int maybe = 0;
  for (uint64_t key = 0; key < 10000; ++key) maybe += filter.MayContain(7 * key + 1);
  if (maybe > 100) return 4;  // ten times the 0.1 % asked for

  try {
    bloomline::FilterConfig::ForFpr(1000, 1.5);
    return 5;
  } catch (const bloomline::Error& error) {
    if (error.code() != bloomline::ErrorCode::kInvalidArgument) return 6;
  }
  try {
    bloomline::Filter::Load("/nonexistent/filter");
    return 7;
  } catch (const std::runtime_error&) {  // the base class must match across the library's border too
  }
  return 0;
}
