// What a user writes whose project is built with -fno-exceptions. Arguments: a file to write, the version expected.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <bloomline/bloomline.h>

#if defined(__cpp_exceptions)
#error "this program is to be compiled with -fno-exceptions"
#endif

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(bloomline::Version()) != argv[2]) return 1;

  if (bloomline::FilterConfig::TryForFpr(1000, 0.0).ok()) return 2;
  const auto config = bloomline::FilterConfig::TryForFpr(1000, 0.01);
  if (!config) return 3;
  auto filter = bloomline::Filter::Create(*config);
  if (!filter) return 4;

  if (!filter->TryInsert("alpha")) return 5;
  filter->Insert(std::string("beta"));
  if (!filter->TrySave(argv[1]).ok()) return 6;
  if (filter->TrySave("/nonexistent/filter").ok()) return 7;

  const auto loaded = bloomline::Filter::TryLoad(argv[1]);
  if (!loaded || !loaded->MayContain("alpha") || !loaded->MayContain(std::string_view("beta"))) return 8;
  if (loaded->MayContain("a word of neither")) return 9;  // two keys among thousands of bits: as good as never

  const auto view = bloomline::FilterView::TryMap(argv[1]);
  if (!view || !view->MayContain("alpha")) return 11;

  const auto counters = bloomline::FilterConfig::TryForFpr(1000, 0.01, bloomline::Layout::kCounting4);
  if (!counters) return 12;
  auto counting = bloomline::CountingFilter::Create(*counters, bloomline::OverflowPolicy::kReject);
  if (!counting || !counting->Add("alpha") || counting->Count("alpha") != 1) return 13;
  const auto twin = counting->TryClone();
  if (!twin || !counting->TryMerge(*twin).ok() || counting->Count("alpha") != 2) return 14;
  const auto smaller =
      bloomline::CountingFilter::Create(*bloomline::FilterConfig::TryForBits(512, 8, bloomline::Layout::kCounting4));
  if (!smaller || counting->TryMerge(*smaller).ok()) return 15;
  if (!bloomline::ConcurrentFilter::Create(*config).ok() || !bloomline::ThreadPool::Create(2).ok()) return 16;

  const auto missing = bloomline::Filter::TryLoad("/nonexistent/filter");
  if (missing.ok() || missing.error().code() != bloomline::ErrorCode::kIo) return 10;
  std::printf("%s\n", missing.error().what());
  return 0;
}
