// Why a job does not end: follows who waits for whom, from the first rank that did not finish, until somebody waits for
// what never comes, or the way comes back to where it was. What is the same on every machine is here; a machine says
// what runs on it, and whom a collective waits for. Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orrery/simulate/job.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// A node that is not over; of a collective cut in chunks, the chunk in question.
struct Waiting {
  std::uint32_t rank = 0, node = 0;
  std::uint32_t chunk = kNone;

  friend auto operator<=>(const Waiting&, const Waiting&) = default;
};

struct Cause {  // what never comes
  Waiting who;
  std::string why;
};

using Next = std::variant<Waiting, Cause>;

class Inquiry {
 public:
  explicit Inquiry(const Job& job) : job_(job) {}
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;
  virtual ~Inquiry() = default;

  // `finished` by rank; at least one did not.
  [[nodiscard]] Failure failure(const std::vector<bool>& finished);

 protected:
  // Nodes of a rank that run or may start.
  [[nodiscard]] virtual std::vector<std::uint32_t> started(std::uint32_t rank) const = 0;
  [[nodiscard]] virtual bool runs(std::uint32_t rank, std::uint32_t node) const = 0;
  // Something that runs on the rank and does not end.
  [[nodiscard]] virtual Next running(std::uint32_t rank) = 0;
  // Who keeps a node from starting that no other node keeps.
  [[nodiscard]] virtual std::optional<Next> in_the_way(std::uint32_t rank, std::uint32_t node) const = 0;
  [[nodiscard]] virtual Next behind_collective(const Waiting& who) = 0;
  [[nodiscard]] virtual std::string named(const Waiting& who) const;

  [[nodiscard]] const Job& job() const { return job_; }
  [[nodiscard]] const Work& work(const Waiting& who) const { return job_.programs[who.rank].nodes[who.node]; }
  [[nodiscard]] std::string group_name(const Work& collective) const;

  // The first open node of a rank that is such: one that has started, or comes after one that has.
  template <class Fits>
  [[nodiscard]] std::optional<std::uint32_t> find_open(std::uint32_t rank, Fits&& fits) {
    const std::vector<bool>& open = this->open(rank);
    for (std::uint32_t i = 0; i < open.size(); ++i) {
      if (open[i] && fits(job_.programs[rank].nodes[i])) { return i; }
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::vector<bool>& open(std::uint32_t rank);

  // What keeps an open node from ending: itself if it runs, or what keeps a node before it.
  [[nodiscard]] Next keeper(std::uint32_t rank, std::uint32_t node);

 private:
  [[nodiscard]] Cause follow(Next next);
  [[nodiscard]] Cause circle(const std::vector<Waiting>& way, const Waiting& end) const;
  [[nodiscard]] std::optional<std::uint32_t> open_parent(std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] Next behind(const Waiting& who);
  [[nodiscard]] Next behind_receive(const Waiting& who);
  [[nodiscard]] Next behind_send(const Waiting& who);

  const Job& job_;
  std::map<std::uint32_t, std::vector<bool>> open_;  // by rank, filled when asked for
};

}  // namespace orrery::simulate
