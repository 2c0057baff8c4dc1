#include "orrery/profile/job_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/profile/clocks.hpp"
#include "orrery/profile/collective_entry.hpp"
#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/metadata.hpp"
#include "orrery/profile/one_sided.hpp"

namespace orrery::profile {

namespace {

// Ends of a synchronizing collective differ by less between its members.
constexpr std::int64_t kCommonEnd = 20'000;  // ns

// A member that ends before the last one starts, by more than clocks explain: the kernels are not of one collective.
constexpr std::int64_t kImpossible = 20'000;  // ns

Place in_file(const Profile& profile) { return {profile.file, 0, 0, {}}; }

class JobPlanner {
 public:
  explicit JobPlanner(const std::vector<const Profile*>& profiles) { job_.profiles = profiles; }

  Result<JobPlan> plan() {
    std::stable_sort(job_.profiles.begin(), job_.profiles.end(),
                     [](const Profile* a, const Profile* b) { return a->rank.value_or(0) < b->rank.value_or(0); });
    if (auto ok = check_files(); !ok) { return tl::make_unexpected(ok.error()); }
    for (const Profile* profile : job_.profiles) { job_.ranks.push_back(plan_of(*profile)); }
    job_.clock_offsets.assign(job_.profiles.size(), 0);
    std::vector<CollectiveEntry> all;
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      auto entries = collective_entries(*job_.profiles[rank], job_.ranks[rank], rank);
      all.insert(all.end(), entries.begin(), entries.end());
    }
    set_origin();
    if (auto ok = check_windows(); !ok) { return tl::make_unexpected(ok.error()); }
    if (auto ok = check_steps(); !ok) { return tl::make_unexpected(ok.error()); }
    if (job_.ranks.size() > 1) {
      align(all);
      set_origin();
    }
    place(all);
    if (auto ok = match(all); !ok) { return tl::make_unexpected(ok.error()); }
    number();
    note_missing();
    note_guesses();
    return std::move(job_);
  }

 private:
  Result<void> check_files() {
    std::map<std::uint64_t, const Profile*> ranks;
    for (const Profile* profile : job_.profiles) {
      if (job_.profiles.size() > 1 && !profile->rank) {
        return fail(in_file(*profile), "does not state its rank (\"distributedInfo\"); import it alone");
      }
      const auto [other, is_new] = ranks.emplace(profile->rank.value_or(0), profile);
      if (!is_new) {
        return fail(in_file(*profile),
                    fmt::format("is rank {}, and so is {}", profile->rank.value_or(0), other->second->file));
      }
      const Profile& first = *job_.profiles.front();
      if (profile->world_size != first.world_size) {
        return fail(in_file(*profile),
                    fmt::format("is of a job of {} ranks, and {} is of a job of {}", profile->world_size.value_or(0),
                                first.file, first.world_size.value_or(0)));
      }
    }
    return {};
  }

  void set_origin() {
    bool any = false;
    std::int64_t origin = 0;
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      std::int64_t first = job_.ranks[rank].first_ns;
      for (const PlannedNode& node : job_.ranks[rank].nodes) { first = std::min(first, node.start); }
      first += job_.profiles[rank]->base_ns + job_.clock_offsets[rank];
      origin = any ? std::min(origin, first) : first;
      any = true;
    }
    job_.origin_ns = origin;
  }

  // Ranks that were not recorded at the same time are not of one run, unless their clocks differ.
  Result<void> check_windows() {
    constexpr std::int64_t kClocks = 60'000'000'000;  // ns that clocks of machines may differ
    for (std::size_t rank = 1; rank < job_.ranks.size(); ++rank) {
      const std::int64_t gap =
          std::max(job_.time(rank, job_.ranks[rank].first_ns) - job_.time(0, job_.ranks[0].last_ns),
                   job_.time(0, job_.ranks[0].first_ns) - job_.time(rank, job_.ranks[rank].last_ns));
      if (gap > kClocks) {
        return fail(in_file(*job_.profiles[rank]),
                    fmt::format("was recorded {} s apart from {}: the files are not of one run", gap / 1'000'000'000,
                                job_.profiles[0]->file));
      }
    }
    return {};
  }

  // Ranks that were recorded in different steps have no collective in common.
  Result<void> check_steps() {
    const auto steps_of = [&](std::size_t rank) {
      std::set<std::uint64_t> steps;
      if (job_.ranks[rank].guessed_steps) { return steps; }
      for (const PlannedNode& node : job_.ranks[rank].nodes) {
        if (node.kind == NodeKind::step_begin) { steps.insert(node.step); }
      }
      return steps;
    };
    const std::set<std::uint64_t> first = steps_of(0);
    for (std::size_t rank = 1; rank < job_.ranks.size(); ++rank) {
      const std::set<std::uint64_t> steps = steps_of(rank);
      const bool common =
          std::any_of(steps.begin(), steps.end(), [&](std::uint64_t step) { return first.contains(step); });
      if (first.empty() || steps.empty() || common) { continue; }
      return fail(
          in_file(*job_.profiles[rank]),
          fmt::format("rank {} was recorded in steps {} to {}, rank {} in steps {} to {}: they have no step in common",
                      job_.ranks[rank].rank, *steps.begin(), *steps.rbegin(), job_.ranks[0].rank, *first.begin(),
                      *first.rbegin()));
    }
    return {};
  }

  void place(std::vector<CollectiveEntry>& all) const {
    for (CollectiveEntry& entry : all) {
      const PlannedNode& node = job_.ranks[entry.rank].nodes[entry.node];
      entry.start = job_.time(entry.rank, node.start);
      entry.end = job_.time(entry.rank, node.end());
    }
  }

  void align(std::vector<CollectiveEntry>& all) {
    place(all);
    job_.clock_offsets = clock_offsets(all, job_.ranks.size());
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      if (job_.clock_offsets[rank] == 0) { continue; }
      job_.notes.push_back(fmt::format("rank {}: clock corrected by {:.3f} ms, by common ends of collectives",
                                       job_.ranks[rank].rank, static_cast<double>(job_.clock_offsets[rank]) * 1e-6));
    }
  }

  Result<void> match(const std::vector<CollectiveEntry>& all) {
    std::map<std::string, std::vector<const CollectiveEntry*>> named;
    std::map<std::pair<std::string, std::int64_t>, std::map<std::uint64_t, std::vector<const CollectiveEntry*>>>
        by_step;
    std::map<std::string, std::vector<const CollectiveEntry*>> messages;
    for (const CollectiveEntry& entry : all) {
      if (is_message(entry)) {
        messages[entry.key].push_back(&entry);
      } else if (!entry.key.empty()) {
        named[entry.key].push_back(&entry);
      } else {
        by_step[{entry.kind, entry.step}][entry.number].push_back(&entry);
      }
    }
    for (const auto& [key, entries] : named) {
      if (auto ok = add_named(entries); !ok) { return ok; }
    }
    for (const auto& [key, entries] : messages) { add_messages(entries, !key.empty()); }
    return match_unnamed(by_step);
  }

  // Messages from one rank to another in a step: in the order of their starts on either side. Where one side has
  // another number of them, or a pair cannot be one message, all keep their recorded time.
  void add_messages(const std::vector<const CollectiveEntry*>& entries, bool known) {
    std::vector<const CollectiveEntry*> sent;
    std::vector<const CollectiveEntry*> received;
    for (const CollectiveEntry* entry : entries) { (kind_of(*entry) == "send" ? sent : received).push_back(entry); }
    if (!known || !has_file(*entries.front()->from) || !has_file(*entries.front()->to)) { return split(entries); }
    const CollectiveEntry& first = *entries.front();
    const std::string step = first.step >= 0 ? fmt::format(" in step {}", first.step) : "";
    if (sent.size() != received.size()) {
      job_.notes.push_back(
          fmt::format("rank {}: sends {} messages to rank {}{}, which receives {}: they keep their recorded time",
                      *first.from, sent.size(), *first.to, step, received.size()));
      return split(entries);
    }
    std::vector<CollectiveInstance> pairs;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      auto members = message_members(*sent[i], *received[i], kImpossible);
      if (!members) {
        job_.notes.push_back(fmt::format(
            "rank {}: one of its messages to rank {}{} is received before it is sent: they keep their recorded time",
            *first.from, *first.to, step));
        return split(entries);
      }
      CollectiveInstance pair = described(*sent[i]);
      pair.kind = "send_recv";
      pair.members = std::move(*members);
      pair.one_sided = true;
      pair.guessed = sent[i]->record == nullptr || received[i]->record == nullptr;
      pairs.push_back(std::move(pair));
    }
    for (CollectiveInstance& pair : pairs) { job_.collectives.push_back(std::move(pair)); }
  }

  [[nodiscard]] bool has_file(std::uint64_t number) const {
    return std::any_of(job_.ranks.begin(), job_.ranks.end(), [&](const RankPlan& rank) { return rank.rank == number; });
  }

  // Broadcasts, scatters, reductions to one rank and gathers.
  Result<void> add_rooted(const std::vector<const CollectiveEntry*>& entries, CollectiveInstance instance) {
    const auto direction = direction_of(kind_of(*entries.front()));
    if (!direction) {
      split(entries);
      return {};
    }
    const std::vector<std::size_t> possible = possible_roots(entries, *direction, kImpossible);
    std::optional<std::size_t> root;
    if (const auto known = entries.front()->root) {
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (job_.ranks[entries[i]->rank].rank == *known) { root = i; }
      }
      if (root && std::find(possible.begin(), possible.end(), *root) == possible.end()) {
        return fail_root(entries, *root, instance);
      }
    } else if (!possible.empty()) {
      root = likely_root(entries, *direction, possible);
      instance.guessed_root = true;
    }
    if (!root) {  // it has no file, or none is possible: all keep their recorded time
      split(entries);
      return {};
    }
    instance.members = rooted_members(entries, *direction, *root);
    instance.one_sided = true;
    job_.collectives.push_back(std::move(instance));
    return {};
  }

  tl::unexpected<Failure> fail_root(const std::vector<const CollectiveEntry*>& entries, std::size_t root,
                                    const CollectiveInstance& instance) const {
    const CollectiveEntry& entry = *entries[root];
    return fail(
        in_file(*job_.profiles[entry.rank]),
        fmt::format("rank {}: it is the root of {} number {} of group {}, which {}: kernels are missing in a "
                    "file, or the files are of different runs",
                    job_.ranks[entry.rank].rank, kind_of(entry), entry.number, instance.group,
                    direction_of(kind_of(entry)) == Direction::from_root ? "another rank ends before the root starts"
                                                                         : "it ends before another rank starts"));
  }

  Result<void> add_named(const std::vector<const CollectiveEntry*>& entries) {
    for (const CollectiveEntry* entry : entries) {
      if (entry->kind != entries.front()->kind) {
        return fail(in_file(*job_.profiles[entry->rank]),
                    fmt::format("rank {}: a collective of group {} is {}, on rank {} it is {}",
                                job_.ranks[entry->rank].rank, entry->record->group, entry->kind,
                                job_.ranks[entries.front()->rank].rank, entries.front()->kind));
      }
    }
    return add(entries, false);
  }

  // Without metadata: collectives at the same place of a step are of one group if they end together. At a place, all
  // steps have the same groups; the finest division that a step shows is right, since ends are rarely equal by chance.
  using Places = std::map<std::uint64_t, std::vector<const CollectiveEntry*>>;
  Result<void> match_unnamed(const std::map<std::pair<std::string, std::int64_t>, Places>& by_step) {
    std::map<std::pair<std::string, std::uint64_t>, std::map<std::size_t, std::set<std::size_t>>> apart;
    for (const auto& [step, places] : by_step) {
      for (const auto& [number, entries] : places) {
        for (const CollectiveEntry* a : entries) {
          for (const CollectiveEntry* b : entries) {
            const bool differs = std::abs(a->end - b->end) > kCommonEnd;
            if (differs && may_synchronize(*a)) { apart[{step.first, number}][a->rank].insert(b->rank); }
          }
        }
      }
    }
    for (const auto& [step, places] : by_step) {
      for (const auto& [number, entries] : places) {
        if (auto ok = add_divided(entries, apart[{step.first, number}]); !ok) { return ok; }
      }
    }
    return {};
  }

  Result<void> add_divided(const std::vector<const CollectiveEntry*>& entries,
                           const std::map<std::size_t, std::set<std::size_t>>& apart) {
    std::vector<std::vector<const CollectiveEntry*>> groups;
    for (const CollectiveEntry* entry : entries) {
      auto fits = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        return std::all_of(group.begin(), group.end(), [&](const CollectiveEntry* other) {
          const auto found = apart.find(entry->rank);
          return found == apart.end() || !found->second.contains(other->rank);
        });
      });
      if (fits == groups.end()) {
        groups.push_back({entry});
      } else {
        fits->push_back(entry);
      }
    }
    for (const auto& group : groups) {
      if (group.size() == 1 && entries.size() > 1 && synchronizes(*group.front())) {
        return fail_alone(*group.front(), entries);
      }
      if (auto ok = add(group, true); !ok) { return ok; }
    }
    return {};
  }

  tl::unexpected<Failure> fail_alone(const CollectiveEntry& entry,
                                     const std::vector<const CollectiveEntry*>& entries) const {
    std::int64_t latest = entry.start;
    for (const CollectiveEntry* other : entries) { latest = std::max(latest, other->start); }
    return fail(in_file(*job_.profiles[entry.rank]),
                fmt::format("rank {}: its {} number {}{} ends together with that of no other rank (time on the wire "
                            "would be {:.3f} ms): kernels are missing in a file, or its groups have no common ranks; "
                            "import the ranks one by one",
                            job_.ranks[entry.rank].rank, entry.kind, entry.number,
                            entry.step >= 0 ? fmt::format(" of step {}", entry.step) : "",
                            static_cast<double>(entry.end - latest) * 1e-6));
  }

  Result<void> add(const std::vector<const CollectiveEntry*>& entries, bool guessed) {
    CollectiveInstance instance = described(*entries.front());
    std::int64_t latest = entries.front()->start;
    for (const CollectiveEntry* entry : entries) { latest = std::max(latest, entry->start); }
    set_size(instance, entries);
    instance.alone = entries.size() == 1;
    instance.guessed = guessed;
    std::set<std::size_t> ranks;
    for (const CollectiveEntry* entry : entries) {
      if (!ranks.insert(entry->rank).second) {
        return fail(in_file(*job_.profiles[entry->rank]),
                    fmt::format("rank {}: two kernels are the same collective of group {}",
                                job_.ranks[entry->rank].rank, instance.group));
      }
    }
    if (entries.size() > 1 && !may_synchronize(*entries.front())) { return add_rooted(entries, std::move(instance)); }
    for (const CollectiveEntry* entry : entries) {
      const std::int64_t wire = entry->end - latest;
      if (wire < -kImpossible && may_synchronize(*entry)) {
        return fail(in_file(*job_.profiles[entry->rank]),
                    fmt::format("rank {}: its {} number {} of group {} ends {:.3f} ms before the last rank starts it: "
                                "kernels are missing in a file, or the files are of different runs",
                                job_.ranks[entry->rank].rank, entry->kind, entry->number, instance.group,
                                static_cast<double>(-wire) * 1e-6));
      }
      const bool waits = may_synchronize(*entry) && entries.size() > 1;
      const std::int64_t on_wire = waits ? std::max<std::int64_t>(wire, 0) : entry->end - entry->start;
      instance.members.push_back({entry->rank, entry->node, on_wire, entry->end - entry->start - on_wire, {}});
    }
    job_.collectives.push_back(std::move(instance));
    return {};
  }

  // Without metadata: the largest size of its operator's inputs over the members.
  static void set_size(CollectiveInstance& instance, const std::vector<const CollectiveEntry*>& entries) {
    if (entries.front()->record != nullptr) { return; }
    for (const CollectiveEntry* entry : entries) { instance.bytes = std::max(instance.bytes, entry->input_bytes); }
    const std::string& kind = instance.operation.empty() ? instance.kind : instance.operation;
    if (kind == "all_gather") { instance.bytes *= entries.size(); }
  }

  // Each keeps its recorded time.
  void split(const std::vector<const CollectiveEntry*>& entries) {
    for (const CollectiveEntry* entry : entries) {
      CollectiveInstance one = described(*entry);
      one.members.push_back({entry->rank, entry->node, entry->end - entry->start, 0, {}});
      one.alone = true;
      job_.collectives.push_back(std::move(one));
    }
  }

  [[nodiscard]] CollectiveInstance described(const CollectiveEntry& entry) const {
    CollectiveInstance instance;
    instance.kind = entry.kind;
    instance.operation = entry.operation;
    instance.group = "world";
    if (entry.record == nullptr) { return instance; }
    const CommRecord& record = *entry.record;
    instance.group_name = record.group;
    instance.group = record.group_description.empty() ? record.group : record.group_description;
    instance.group_ranks = ranks_of_text(record.ranks);
    for (const ListedGroup& group : job_.profiles[entry.rank]->groups) {
      if (instance.group_ranks.empty() && group.name == record.group) { instance.group_ranks = group.ranks; }
    }
    const auto elements =
        static_cast<std::uint64_t>(std::max<std::int64_t>({record.in_elements, record.out_elements, 0}));
    instance.bytes = elements * element_bytes(record.dtype);
    return instance;
  }

  // Numbers by group and kind, in the order of time.
  void number() {
    const auto start = [&](const CollectiveInstance& one) {
      const CollectiveMember& member = one.members.front();
      return job_.time(member.rank, job_.ranks[member.rank].nodes[member.node].start);
    };
    std::stable_sort(job_.collectives.begin(), job_.collectives.end(),
                     [&](const CollectiveInstance& a, const CollectiveInstance& b) { return start(a) < start(b); });
    std::map<std::string, std::uint64_t> numbers;
    for (CollectiveInstance& one : job_.collectives) {
      std::vector<std::uint64_t> members;
      for (const CollectiveMember& member : one.members) { members.push_back(job_.ranks[member.rank].rank); }
      one.number = ++numbers[fmt::format("{} {} {}", one.group, one.kind, fmt::join(members, ","))];
    }
  }

  void note_missing() {
    const auto world = job_.profiles.front()->world_size;
    if (!world || *world <= job_.profiles.size() || job_.profiles.size() < 2) { return; }
    std::set<std::uint64_t> given;
    for (const RankPlan& rank : job_.ranks) { given.insert(rank.rank); }
    std::vector<std::uint64_t> missing;
    for (std::uint64_t rank = 0; rank < *world && missing.size() < 8; ++rank) {
      if (!given.contains(rank)) { missing.push_back(rank); }
    }
    job_.notes.push_back(fmt::format(
        "{} of {} ranks have no file (rank {}{}): collectives wait only for ranks with a file, and waiting for the "
        "others "
        "is part of the time on the wire",
        *world - given.size(), *world, fmt::join(missing, ", "), *world - given.size() > missing.size() ? ", …" : ""));
  }

  void note_guesses() {
    for (const RankPlan& rank : job_.ranks) {
      if (rank.guessed_steps) {
        job_.notes.push_back(
            fmt::format("rank {}: no ProfilerStep; steps are one period of its repeated launches", rank.rank));
      }
      if (const std::uint64_t mtia = job_.profiles[&rank - job_.ranks.data()]->mtia_operations; mtia > 0) {
        job_.notes.push_back(
            fmt::format("rank {}: {} device operations are of MTIA, which the file links to no call: only their order "
                        "on a stream is "
                        "known",
                        rank.rank, mtia));
      }
      if (rank.counts.polls > 0) {
        job_.notes.push_back(fmt::format("rank {}: {} waits by repeated event queries", rank.rank, rank.counts.polls));
      }
    }
  }

  JobPlan job_;
};

}  // namespace

Result<JobPlan> job_plan(const std::vector<const Profile*>& profiles) { return JobPlanner(profiles).plan(); }

}  // namespace orrery::profile
