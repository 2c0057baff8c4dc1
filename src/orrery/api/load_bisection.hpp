// The highest load that a service level allows, to 1 %: which load to try next. Private to the room.
//
// Doubles or halves from the start until one load is good and twice that is not, then bisects the ratio. What it finds
// is at least `good()` and less than `bad()` at any time.
#pragma once

#include <limits>
#include <optional>

namespace orrery::api {

class LoadBisection {
 public:
  // `lowest`: below it nothing is tried; a start below it is there. `counts`: loads are whole numbers of clients.
  // Nothing is above `highest`, or 4096 times the start.
  LoadBisection(double start, double lowest, bool counts, double highest = std::numeric_limits<double>::infinity());

  // None: it is over.
  [[nodiscard]] std::optional<double> next() const;
  void tell(bool is_good);

  // Over, or a good load and a bad one are known.
  [[nodiscard]] bool is_bracketed() const { return !widens_; }
  [[nodiscard]] double good() const { return good_; }  // the highest so far; 0: none
  [[nodiscard]] double bad() const { return bad_; }    // the lowest so far; 0: none

 private:
  double start_, lowest_, highest_;
  bool counts_, widens_ = true;
  double good_ = 0, bad_ = 0, load_;
};

}  // namespace orrery::api
