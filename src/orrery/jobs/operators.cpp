#include "orrery/jobs/operators.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/jobs/servers.hpp"

namespace orrery::config {

const Record<jobs::Operator>& Described<jobs::Operator>::record() {
  using jobs::Operator;
  static const auto record =
      Record<Operator>("operator", "An operator of a training step.")
          .required("name", &Operator::name, "name", {.nonempty = true})
          .required("forward", &Operator::forward, "time on one server")
          .required("backward", &Operator::backward, "time on one server of its backward operator")
          .required("bytes", &Operator::bytes, "activations and parameters")
          .optional("inputs", &Operator::inputs, "positions of its producers in the list, from 1", {.min = 1});
  return record;
}

}  // namespace orrery::config

namespace orrery::jobs {

namespace {

const config::Record<Operators>& operators_record() {
  static const auto record =
      config::Record<Operators>("operators", "The operators of a training step.")
          .required("operators", &Operators::operators, "in an order in which inputs come first", {.nonempty = true})
          .check([](const Operators& step) -> config::Objection {
            for (std::size_t i = 0; i < step.operators.size(); ++i) {
              for (const auto input : step.operators[i].inputs) {
                if (input > static_cast<std::int64_t>(i)) {
                  return {fmt::format("/operators/{}/inputs", i),
                          fmt::format("{} is not before operator {}; valid: 1 to {}", input, i + 1, i)};
                }
              }
            }
            return sequential_time(step) > Seconds(0) ? config::Objection{} : "all operators take no time";
          });
  return record;
}

}  // namespace

Result<Operators> read_operators(const std::string& path) {
  ORRERY_TRY(root, config::read_file(path));
  return operators_record().read(root);
}

Seconds sequential_time(const Operators& step) {
  Seconds sum(0);
  for (const auto& one : step.operators) { sum += one.forward + one.backward; }
  return sum;
}

std::vector<std::int64_t> pieces_of(const Operators& step, std::int64_t degree, Seconds quantum) {
  std::vector<std::int64_t> pieces;
  for (const auto& one : step.operators) {
    const double even = 2.0 * std::ceil(std::ceil(one.forward / quantum) / 2.0);
    pieces.push_back(even >= static_cast<double>(degree) ? degree
                                                         : std::max<std::int64_t>(1, static_cast<std::int64_t>(even)));
  }
  return pieces;
}

std::optional<PiecePlaces> place_pieces(const Operators& step, const std::vector<std::int64_t>& pieces,
                                        const Servers& servers) {
  PiecePlaces places;
  std::vector<std::int32_t> own;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<std::int32_t>* same = nullptr;
    for (const auto input : step.operators[i].inputs) {
      const auto& of_input = places[static_cast<std::size_t>(input - 1)];
      if (same == nullptr && static_cast<std::int64_t>(of_input.size()) == pieces[i]) { same = &of_input; }
    }
    if (same != nullptr) {
      places.push_back(std::vector<std::int32_t>(*same));
      continue;
    }
    auto block = servers.piece_block(pieces[i], own);
    if (!block) { return std::nullopt; }
    for (const auto server : *block) {
      if (std::find(own.begin(), own.end(), server) == own.end()) { own.push_back(server); }
    }
    places.push_back(std::move(*block));
  }
  return places;
}

}  // namespace orrery::jobs
