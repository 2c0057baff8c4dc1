// `orrery plan`: searches a space of plans for every requested number of devices and merges the results by the
// objective.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "orrery/api/campaign.hpp"
#include "orrery/api/expanded_search.hpp"
#include "orrery/api/nearest.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/api/plan_speed.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/api/what_if.hpp"
#include "orrery/campaign/solve.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/expenses.hpp"

namespace orrery::api {

using results::Estimate;
using results::Objective;
using results::PlanSearch;

namespace {

// One number of devices: request, inputs, space and result. Not movable: the members refer to each other.
struct Part {
  PlanRequest request;
  Problem problem;
  std::unique_ptr<Planning> planning;
  PlanSearch answer;
};
using Parts = std::vector<std::unique_ptr<Part>>;

std::vector<std::optional<std::int64_t>> counts_of(const PlanRequest& request) {
  std::vector<std::optional<std::int64_t>> counts(request.device_counts.begin(), request.device_counts.end());
  if (counts.empty()) { counts.push_back(request.job.devices); }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// The error for a figure that the objective needs and the cluster lacks.
std::vector<Diagnostic> unknown_figures(const PlanRequest& request, const hardware::Cluster& cluster) {
  const Place place{"", 0, 0, "--objective"};
  if (request.objective == Objective::cost && !hardware::cost_rate(cluster)) {
    return {{place, "cost needs a price: " + hardware::missing_price(cluster)}};
  }
  if (request.objective == Objective::usd && !hardware::cost_rate(cluster) && !request.campaign.usd_per_device_hour &&
      !request.campaign.node_price_usd) {
    return {{place, "usd needs a price: " + hardware::missing_price(cluster)}};
  }
  const bool needs_power = request.objective == Objective::kwh || request.objective == Objective::co2;
  if (needs_power && !hardware::power(cluster) && !request.campaign.device_watts) {
    return {{place, "kwh and co2 need a power: " + hardware::missing_power(cluster)}};
  }
  if (request.objective == Objective::energy && !hardware::power(cluster)) {
    return {{place, "energy needs a power: " + hardware::missing_power(cluster)}};
  }
  return {};
}

// The value of the objective. If the plan determines the batch, time and what depends on it are per sequence.
class Order {
 public:
  explicit Order(const PlanRequest& request)
      : objective_(request.objective), per_sample_(request.space && request.space->max_batch) {}

  [[nodiscard]] bool operator()(const Estimate& a, const Estimate& b) const { return key(a) < key(b); }
  [[nodiscard]] double time(const Estimate& one) const { return share(one.step_time.value(), one); }

 private:
  [[nodiscard]] double share(double whole, const Estimate& one) const {
    return per_sample_ ? whole / static_cast<double>(one.global_batch) : whole;
  }
  [[nodiscard]] std::pair<double, double> key(const Estimate& one) const {
    switch (objective_) {
      case Objective::step_time: return {time(one), 0.0};
      case Objective::cost: return {share(one.cost->amount, one), time(one)};
      case Objective::energy: return {share(one.energy->amount, one), time(one)};
      case Objective::devices: return {static_cast<double>(one.devices), time(one)};
      case Objective::days:
      case Objective::usd:
      case Objective::kwh:
      case Objective::co2: return {time(one), 0.0};  // ordered by their campaigns afterwards
    }
    throw_internal_error("known objective", __FILE__, __LINE__);
  }

  Objective objective_;
  bool per_sample_;
};

// Merged results are sorted by time, so those within the limit come first.
void drop_beyond(std::optional<Seconds> within, std::vector<Estimate>& list) {
  if (within) {
    std::erase_if(list, [&](const Estimate& one) { return one.step_time > *within; });
  }
}

// The Pareto front of time, memory and devices; `list` has the front of each part.
std::vector<Estimate> undominated(const std::vector<Estimate>& list, const Order& order) {
  std::vector<Estimate> front;
  const auto beats = [&](const Estimate& a, const Estimate& b) {
    return a.devices < b.devices && order.time(a) <= order.time(b) && a.memory.total() <= b.memory.total();
  };
  for (const Estimate& one : list) {
    const bool is_beaten =
        std::any_of(list.begin(), list.end(), [&](const Estimate& other) { return beats(other, one); });
    if (!is_beaten) { front.push_back(one); }
  }
  std::stable_sort(front.begin(), front.end(),
                   [&](const Estimate& a, const Estimate& b) { return order.time(a) < order.time(b); });
  return front;
}

void add_counts(results::SpaceCounts& sum, const results::SpaceCounts& more) {
  sum.points += more.points;
  sum.evaluated += more.evaluated;
  sum.pruned += more.pruned;
  sum.priced += more.priced;
  sum.feasible += more.feasible;
  sum.plans += more.plans;
  sum.rejected_memory += more.rejected_memory;
  sum.rejected_network += more.rejected_network;
  sum.rejected_invalid += more.rejected_invalid;
}

results::DeviceRow row_of(const Part& part, std::optional<Seconds> within) {
  results::DeviceRow row;
  row.devices = part.problem.inputs.cluster.devices;
  row.feasible = !part.answer.best.empty();
  if (!row.feasible) { return row; }
  const Estimate& fastest = part.answer.best.front();
  row.within = !within || fastest.step_time <= *within;
  row.step_time = fastest.step_time;
  row.samples_per_s = fastest.samples_per_s;
  row.cost = fastest.cost;
  row.energy = fastest.energy;
  return row;
}

std::string why_nothing(const Parts& parts, std::optional<Seconds> within) {
  const Part* fastest = nullptr;
  for (const auto& part : parts) {
    if (part->answer.best.empty()) { continue; }
    const auto time = [](const Part& one) { return one.answer.best.front().step_time; };
    if (fastest == nullptr || time(*part) < time(*fastest)) { fastest = part.get(); }
  }
  if (fastest != nullptr && within) {
    const Estimate& best = fastest->answer.best.front();
    return fmt::format("no step takes {} or less; the fastest plan that fits takes {} on {} devices",
                       config::format_seconds(*within), config::format_seconds(best.step_time, 4), best.devices);
  }
  std::string why = parts.back()->answer.nothing_fits;
  if (parts.size() > 1) { why += fmt::format("; nor does any on the other {} numbers of devices", parts.size() - 1); }
  return why;
}

PlanSearch merged(const PlanRequest& request, const Parts& parts) {
  const Order order(request);
  PlanSearch answer;
  answer.objective = request.objective;
  answer.without_effect = parts.front()->answer.without_effect;
  for (const auto& part : parts) {
    add_counts(answer.space, part->answer.space);
    if (!request.device_counts.empty()) { answer.by_devices.push_back(row_of(*part, request.within)); }
    for (const auto& one : part->answer.best) { answer.best.push_back(one); }
    for (const auto& one : part->answer.front) { answer.front.push_back(one); }
    for (const auto& choice : part->answer.not_searched) {
      const bool is_new =
          std::find(answer.not_searched.begin(), answer.not_searched.end(), choice) == answer.not_searched.end();
      if (is_new) { answer.not_searched.push_back(choice); }
    }
  }
  drop_beyond(request.within, answer.best);
  drop_beyond(request.within, answer.front);
  std::stable_sort(answer.best.begin(), answer.best.end(), order);
  const bool is_final = !is_of_campaign(request.objective);
  if (is_final && answer.best.size() > request.top) { answer.best.resize(request.top); }
  answer.front = undominated(answer.front, order);
  if (answer.best.empty()) { answer.nothing_fits = why_nothing(parts, request.within); }
  return answer;
}

// A number of devices that the cluster cannot have was given by another flag.
Failure of_counts(Failure failure, const PlanRequest& request) {
  for (auto& diagnostic : failure.diagnostics) {
    const bool is_count = diagnostic.place.path == "--devices" && !request.device_counts.empty();
    if (is_count) { diagnostic.place.path = "--device-counts"; }
  }
  return failure;
}

// Whether only the number of devices is wrong.
bool is_of_count(const Failure& failure) {
  return std::all_of(failure.diagnostics.begin(), failure.diagnostics.end(),
                     [](const Diagnostic& diagnostic) { return diagnostic.place.path == "--devices"; });
}

// Plans with the shortest steps whose campaigns are compared. A plan with a longer step wins only if it loses less to
// failures, which bounds its step by 1 / ETTR of the fastest: a few per cent, far fewer plans than these.
constexpr std::size_t kCampaignCandidates = 200;

double value_of(const results::PlanCampaign& campaign, Objective objective) {
  if (objective == Objective::usd) { return campaign.usd.value_or(HUGE_VAL); }
  if (objective == Objective::kwh) { return campaign.kwh.value_or(HUGE_VAL); }
  if (objective == Objective::co2) { return campaign.co2_kg.value_or(HUGE_VAL); }
  return campaign.days;
}

// A plan whose campaign is compared.
struct Candidate {
  std::size_t at = 0;  // in the order of steps
  campaign::Job job;
  results::PlanCampaign figures;
};

Result<results::PlanCampaign> campaign_of(const campaign::Job& job, const campaign::Spec& spec) {
  ORRERY_TRY(solved, campaign::solve(job, spec));
  results::PlanCampaign figures{solved.days.p50, solved.ettr, {}, {}, {}};
  if (solved.money) { figures.usd = solved.money->usd; }
  if (solved.energy) { figures.kwh = solved.energy->site_J / 3.6e6; }
  if (solved.carbon) { figures.co2_kg = solved.carbon->location_kg; }
  return figures;
}

const hardware::Cluster& cluster_of(const Part& part) { return part.problem.inputs.cluster; }

const Part& part_of(const Parts& parts, std::int64_t devices) {
  return **std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return cluster_of(*p).devices == devices; });
}

using Speed = std::function<double(std::int64_t devices)>;

// Of the plan with other numbers of replicas, which is expensive. Nodes of several kinds: empty (throughput
// proportional to replicas), as it is not known which kind is missing.
Result<Speed> speed_of_replicas(const std::string& data_directory, const PlanRequest& request, const Parts& parts,
                                const Estimate& plan) {
  const auto& inputs = part_of(parts, plan.devices).problem.inputs;
  if (!inputs.cluster.nodes.empty()) { return Speed{}; }
  const auto own = request_of(request.job, plan);
  ORRERY_TRY(resolved, estimate::resolve(own, inputs.model, inputs.cluster, inputs.stack));
  return plan_speed(data_directory, own, inputs, resolved.plan);
}

// Orders plans by their campaigns. Where missing nodes cost replicas, a campaign in which they cost nothing bounds that
// of the plan from below, and plans whose bound is above the last one printed are not priced with fewer replicas.
Result<std::monostate> order_by_campaigns(const std::string& data_directory, const PlanRequest& request,
                                          const Parts& parts, PlanSearch& answer) {
  campaign::Spec spec = request.campaign;
  const bool has_work = !spec.tokens.empty() || spec.steps || !spec.until.empty() || spec.budget_usd;
  if (!has_work) { spec.tokens = "1T"; }
  const bool is_sized = !spec.capacity.empty(), can_shrink = spec.when_short == campaign::WhenShort::shrink;
  const bool is_bounded = can_shrink && !is_sized && (!spec.tokens.empty() || spec.steps);
  const auto value = [&](const Candidate& one) { return value_of(one.figures, request.objective); };
  const auto is_before = [&](const Candidate& a, const Candidate& b) {
    return std::pair(value(a), a.at) < std::pair(value(b), b.at);
  };
  std::vector<Candidate> candidates, ordered;
  for (std::size_t i = 0; i < answer.best.size(); ++i) {
    const Estimate& one = answer.best[i];
    const auto& inputs = part_of(parts, one.devices).problem.inputs;
    ORRERY_TRY(job, campaign_job(data_directory, inputs, request.job.precision, one, spec));
    if (is_bounded) {
      job.speed = [](std::int64_t) { return 1.0; };
    } else if (can_shrink || is_sized) {
      ORRERY_TRY(speed, speed_of_replicas(data_directory, request, parts, one));
      job.speed = std::move(speed);
    }
    const auto figures = campaign_of(job, spec);
    if (!figures && i == 0) { return tl::make_unexpected(figures.error()); }
    if (figures) { candidates.push_back({i, std::move(job), *figures}); }
  }
  std::sort(candidates.begin(), candidates.end(), is_before);
  for (auto& one : candidates) {
    const bool is_full = ordered.size() >= request.top;
    if (is_full && value(one) > value(ordered[request.top - 1])) { break; }
    if (is_bounded) {
      ORRERY_TRY(speed, speed_of_replicas(data_directory, request, parts, answer.best[one.at]));
      one.job.speed = std::move(speed);
      const auto figures = campaign_of(one.job, spec);
      if (!figures) { continue; }
      one.figures = *figures;
    }
    ordered.insert(std::upper_bound(ordered.begin(), ordered.end(), one, is_before), std::move(one));
  }
  answer.campaigns_of = answer.best.size();
  std::vector<Estimate> best;
  for (std::size_t i = 0; i < std::min(request.top, ordered.size()); ++i) {
    best.push_back(answer.best[ordered[i].at]);
    answer.campaigns.push_back(ordered[i].figures);
  }
  answer.best = std::move(best);
  return std::monostate{};
}

// For the number of devices of the best plan.
std::vector<std::string> explained(const Parts& parts, const Estimate& best) {
  const auto part = std::find_if(parts.begin(), parts.end(),
                                 [&](const auto& one) { return one->problem.inputs.cluster.devices == best.devices; });
  return (*part)->planning->explained((*part)->answer.best);
}

Result<PlanSearch> search_with_expansion(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                         const PlanRequest& request) {
  if (auto wrong = estimate::problems(request.job); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  PlanRequest one_count = request;
  one_count.job.devices = counts_of(request).front();
  const auto length = request.space ? Length::longest : Length::typed;
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, without_expansion(one_count.job),
                                 hardware::UnlikeNodes{"--expansion"}, length));
  return expanded_search(data_directory, one_count, std::move(inputs));
}

}  // namespace

Result<PlanSearch> Orrery::plan(const PlanRequest& request) const {
  if (request.within && request.space && request.space->max_batch) {
    return fail({"", 0, 0, "--within"}, "is a limit on steps of one batch; the space file says max_batch");
  }
  if (request.what_if && request.device_counts.size() > 1) {
    return fail({"", 0, 0, "--what-if"}, "is about one number of devices; --device-counts has several");
  }
  if (request.job.expansion) { return search_with_expansion(data_directory_, catalogue_, request); }
  Parts parts;
  std::vector<results::DeviceRow> impossible;
  std::vector<Diagnostic> wrong;  // errors of fixed values, for every number of devices so far
  bool some_can = false;
  for (const auto devices : counts_of(request)) {
    auto part = std::make_unique<Part>();
    part->request = request;
    part->request.job.devices = devices;
    if (is_of_campaign(request.objective)) { part->request.top = std::max(request.top, kCampaignCandidates); }
    auto problem = read_problem(data_directory_, catalogue_, part->request);
    if (!problem && request.device_counts.size() > 1 && is_of_count(problem.error())) {
      results::DeviceRow row;
      row.devices = *devices;
      row.impossible = problem.error().diagnostics.front().message;
      impossible.push_back(std::move(row));
      if (wrong.empty()) { wrong = of_counts(problem.error(), request).diagnostics; }
      continue;
    }
    if (!problem) { return tl::make_unexpected(of_counts(problem.error(), request)); }
    part->problem = std::move(*problem);
    if (auto unknown = unknown_figures(request, part->problem.inputs.cluster); !unknown.empty()) {
      return tl::make_unexpected(Failure{std::move(unknown)});
    }
    ORRERY_TRY(space, space_of(part->request, part->problem));
    auto mistakes = space.points() == 0 ? fixed_problems(part->request, part->problem) : std::vector<Diagnostic>{};
    some_can |= mistakes.empty();
    if (wrong.empty()) { wrong = std::move(mistakes); }
    part->planning = std::make_unique<Planning>(part->request, part->problem, std::move(space));
    parts.push_back(std::move(part));
  }
  if (!some_can) { return tl::make_unexpected(Failure{std::move(wrong)}); }
  for (const auto& part : parts) { part->answer = part->planning->run(); }
  PlanSearch answer = merged(request, parts);
  if (is_of_campaign(request.objective) && !answer.best.empty()) {
    ORRERY_TRY(ordered, order_by_campaigns(data_directory_, request, parts, answer));
    (void)ordered;
  }
  answer.by_devices.insert(answer.by_devices.end(), impossible.begin(), impossible.end());
  std::sort(answer.by_devices.begin(), answer.by_devices.end(),
            [](const auto& a, const auto& b) { return a.devices < b.devices; });
  const bool some_fit = std::any_of(parts.begin(), parts.end(), [](const auto& p) { return !p->answer.best.empty(); });
  if (!some_fit) {
    answer.nearest = nearest_plan(data_directory_, catalogue_, parts.back()->request);
    if (answer.nearest) { answer.nothing_fits += "; " + sentence_of(*answer.nearest); }
    if (!answer.not_searched.empty()) { answer.nothing_fits += "; not searched: " + join(answer.not_searched, "; "); }
  }
  if (request.explain && !answer.best.empty()) { answer.explanation = explained(parts, answer.best.front()); }
  if (request.what_if && !answer.best.empty()) {
    const Part& part = *parts.front();
    answer.what_if = what_if(part.request, part.problem, part.planning->winner().point.plan, request.what_if_progress);
  }
  return answer;
}

}  // namespace orrery::api
