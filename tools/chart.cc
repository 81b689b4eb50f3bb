#include "tools/chart.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <limits>
#include <utility>

namespace bloomline::cli {
namespace {

constexpr double kWidth = 920;
constexpr double kHeight = 560;
constexpr double kLeft = 84;
constexpr double kRight = 190;  // room for the legend
constexpr double kTop = 66;
constexpr double kBottom = 88;

// Distinct in hue and lightness, for colour-blind readers too (after Okabe and Ito 2008).
constexpr std::array<const char*, 10> kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b",
                                                  "#56b4e9", "#7f3c8d", "#555555", "#a6761d", "#1b9e77"};

std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// One axis: from data to pixels, and where its ticks are.
class Axis {
 public:
  Axis(bool log, double start, double end) : log_(log), start_(start), end_(end) {}

  bool Shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  void Include(double value) {
    if (!Shows(value)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  bool HasRange() const { return low_ <= high_; }

  // Widens the range to something that can be drawn: not empty, a little beyond the data.
  void Settle() {
    if (!HasRange()) low_ = high_ = 1;
    if (log_) {
      const double room = low_ == high_ ? 2.0 : std::pow(high_ / low_, 0.04);
      low_ /= room;
      high_ *= room;
    } else {
      const double room = low_ == high_ ? std::max(1.0, std::abs(low_)) : (high_ - low_) * 0.04;
      low_ -= low_ >= 0 && low_ < room ? low_ : room;  // an axis of non-negative values does not start below 0
      high_ += room;
    }
  }

  double Pixel(double value) const {
    const double share = log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return start_ + std::clamp(share, 0.0, 1.0) * (end_ - start_);
  }

  std::vector<double> Ticks() const { return log_ ? LogTicks() : LinearTicks(); }

 private:
  // Powers of ten; with 2 and 5 between them where there are few; every second, third … power where there are many.
  std::vector<double> LogTicks() const {
    const int first = static_cast<int>(std::floor(std::log10(low_)));
    const int last = static_cast<int>(std::ceil(std::log10(high_)));
    const int step = std::max(1, (last - first) / 10);
    std::vector<double> ticks;
    for (int power = first; power <= last; power += step) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        if (digit != 1.0 && last - first > 4) continue;
        const double value = digit * std::pow(10.0, power);
        if (value >= low_ && value <= high_) ticks.push_back(value);
      }
    }
    return ticks;
  }

  std::vector<double> LinearTicks() const {
    const double raw = (high_ - low_) / 8;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    double step = power;
    for (const double digit : {2.0, 5.0, 10.0}) {
      if (step < raw) step = digit * power;
    }
    std::vector<double> ticks;
    for (double i = std::ceil(low_ / step); i * step <= high_; ++i) ticks.push_back(i * step);
    return ticks;
  }

  bool log_;
  double start_;
  double end_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

class Drawing {
 public:
  [[gnu::format(printf, 2, 3)]] void Add(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    char text[512];
    const int size = std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    body_.append(text, static_cast<size_t>(std::clamp(size, 0, static_cast<int>(sizeof text) - 1)));
    body_ += '\n';
  }

  void Line(double x1, double y1, double x2, double y2, const char* colour, double width, const char* dash = "") {
    Add(R"(<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f" stroke-dasharray="%s"/>)", x1,
        y1, x2, y2, colour, width, *dash != '\0' ? dash : "none");
  }

  void Text(double x, double y, const std::string& text, double size, const char* anchor,
            const char* colour = "#222222", const char* extra = "") {
    char head[256];
    std::snprintf(head, sizeof head, R"(<text x="%.1f" y="%.1f" font-size="%.0f" text-anchor="%s" fill="%s"%s>)", x, y,
                  size, anchor, colour, extra);
    body_ += head + Escape(text) + "</text>\n";
  }

  void Path(const std::vector<std::pair<double, double>>& points, const char* colour, bool dashed) {
    body_ += "<polyline points=\"";
    for (const auto& [x, y] : points) {
      char text[48];
      std::snprintf(text, sizeof text, "%.1f,%.1f ", x, y);
      body_ += text;
    }
    Add(R"(" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round" stroke-dasharray="%s"/>)", colour,
        dashed ? "6 4" : "none");
  }

  std::string Document() const {
    char head[320];
    std::snprintf(head, sizeof head,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
                  "font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"%.0f\" height=\"%.0f\" "
                  "fill=\"#ffffff\"/>\n",
                  kWidth, kHeight, kWidth, kHeight, kWidth, kHeight);
    return head + body_ + "</svg>\n";
  }

 private:
  std::string body_;
};

std::string TickText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", std::abs(value) < 1e-12 ? 0.0 : value);
  return text;
}

void DrawFrame(Drawing& drawing, const Chart& chart, const Axis& x, const Axis& y) {
  const double right = kWidth - kRight;
  const double base = kHeight - kBottom;
  drawing.Text(kLeft, 26, chart.title, 17, "start", "#222222", " font-weight=\"bold\"");
  drawing.Text(kLeft, 46, chart.subtitle, 12, "start", "#555555");
  for (const double tick : y.Ticks()) {
    drawing.Line(kLeft, y.Pixel(tick), right, y.Pixel(tick), "#e4e4e4", 1);
    drawing.Text(kLeft - 8, y.Pixel(tick) + 4, TickText(tick), 12, "end");
  }
  for (const double tick : x.Ticks()) {
    drawing.Line(x.Pixel(tick), kTop, x.Pixel(tick), base, "#eeeeee", 1);
    drawing.Text(x.Pixel(tick), base + 19, TickText(tick), 12, "middle");
  }
  drawing.Line(kLeft, base, right, base, "#222222", 1);
  drawing.Line(kLeft, kTop, kLeft, base, "#222222", 1);
  drawing.Text((kLeft + right) / 2, base + 42, chart.x_label, 13, "middle");
  const double middle = (kTop + base) / 2;
  char turn[64];
  std::snprintf(turn, sizeof turn, " transform=\"rotate(-90 22 %.1f)\"", middle);
  drawing.Text(22, middle, chart.y_label, 13, "middle", "#222222", turn);
  drawing.Text(kLeft, kHeight - 14, chart.footer, 11, "start", "#555555");
}

void DrawSeries(Drawing& drawing, const ChartSeries& series, const char* colour, const Axis& x, const Axis& y) {
  std::vector<std::pair<double, double>> path;
  for (const ChartPoint& point : series.points) {
    if (x.Shows(point.x) && y.Shows(point.y)) path.emplace_back(x.Pixel(point.x), y.Pixel(point.y));
  }
  if (series.line && path.size() > 1) drawing.Path(path, colour, series.dashed);
  for (const ChartPoint& point : series.points) {
    if (!x.Shows(point.x) || !y.Shows(point.y)) continue;
    const double at = x.Pixel(point.x);
    const double height = y.Pixel(point.y);
    if (!std::isnan(point.low) && !std::isnan(point.high)) {
      // What lies below a logarithmic axis ends at its foot.
      const double low = y.Shows(point.low) ? y.Pixel(point.low) : kHeight - kBottom;
      const double high = y.Shows(point.high) ? y.Pixel(point.high) : height;
      drawing.Line(at, low, at, high, colour, 1.4);
      drawing.Line(at - 3, low, at + 3, low, colour, 1.4);
      drawing.Line(at - 3, high, at + 3, high, colour, 1.4);
    }
    if (series.markers) drawing.Add(R"(<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>)", at, height, colour);
    if (!point.label.empty()) drawing.Text(at + 7, height - 6, point.label, 12, "start", colour);
  }
}

}  // namespace

std::string Chart::Svg() const {
  Axis x(log_x, kLeft, kWidth - kRight);
  Axis y(log_y, kHeight - kBottom, kTop);
  for (const ChartSeries& one : series) {
    for (const ChartPoint& point : one.points) {
      if (!x.Shows(point.x) || !y.Shows(point.y)) continue;
      x.Include(point.x);
      for (const double value : {point.y, point.low, point.high}) y.Include(value);
    }
  }
  const bool is_empty = !x.HasRange();
  x.Settle();
  y.Settle();

  Drawing drawing;
  DrawFrame(drawing, *this, x, y);
  if (is_empty) drawing.Text((kLeft + kWidth - kRight) / 2, kHeight / 2, "nothing to draw", 15, "middle", "#888888");
  double legend = kTop + 8;
  for (size_t i = 0; i < series.size(); ++i) {
    const ChartSeries& one = series[i];
    const size_t index = one.colour >= 0 ? static_cast<size_t>(one.colour) : i;
    const char* colour = kPalette[index % kPalette.size()];
    DrawSeries(drawing, one, colour, x, y);
    if (one.label.empty()) continue;
    const double left = kWidth - kRight + 16;
    if (one.line) drawing.Line(left, legend, left + 24, legend, colour, 2.2, one.dashed ? "6 4" : "");
    if (one.markers) drawing.Add(R"(<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>)", left + 12, legend, colour);
    drawing.Text(left + 31, legend + 4, one.label, 12, "start");
    legend += 20;
  }
  return drawing.Document();
}

}  // namespace bloomline::cli
