// A line chart as one SVG file: no fonts, scripts or styles from elsewhere.
#pragma once

#include <cmath>
#include <string>
#include <vector>

namespace bloomline::cli {

struct ChartPoint {
  double x = 0;
  double y = 0;
  double low = NAN;  // an interval bar from low to high; NaN: none
  double high = NAN;
  std::string label;  // text beside the point; empty: none
};

struct ChartSeries {
  std::string label;     // in the legend; empty: not listed there
  bool line = true;      // connect the points, in their order
  bool markers = false;  // a dot at each point
  bool dashed = false;
  int colour = -1;  // index into the palette; -1: the series' own position. Equal indices share a colour.
  std::vector<ChartPoint> points;
};

struct Chart {
  std::string title;
  std::string subtitle;  // one line below the title: machine, conditions
  std::string footer;    // one line at the bottom: what bars mean, which command drew it
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  bool log_y = false;
  std::vector<ChartSeries> series;

  // Points that an axis cannot show (NaN, infinite, not positive on a logarithmic axis) are left out. A chart without
  // any point says so in its middle.
  std::string Svg() const;
};

}  // namespace bloomline::cli
