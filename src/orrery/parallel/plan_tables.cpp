// How embedding tables can be shared out, and what else a plan of a recommender may say: rules of plan.hpp.
#include <algorithm>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "orrery/parallel/plan_checker.hpp"

namespace orrery::parallel {

using workload::TablePlan;
using workload::TableSharding;

namespace {

// Dense parts are replicated, and everything is one stage.
void check_dense(PlanChecker& check, const Job& job, const Plan& plan) {
  const auto one = [&](std::int64_t degree, const char* flag, const char* why) {
    check.require(degree == 1, flag,
                  [&] { return fmt::format("\"{}\" is not built yet for recommenders: {}; valid: 1", degree, why); });
  };
  one(plan.tp, "--tp", "dense parts are replicated, and tables are sharded over --table-ranks");
  one(plan.cp, "--cp", "a sample has one position");
  one(plan.pp, "--pp", "tables and dense parts are one stage");
  one(plan.etp, "--etp", "an expert stays whole");
  const bool only_tables = plan.offload == Offload{.tables = plan.offload.tables};
  check.require(only_tables, "--offload",
                [] { return std::string("of anything but tables is not modelled for recommenders; valid: tables"); });
  check.require(job.adapter.rank == 0, "--lora",
                [] { return std::string("needs the projections of a transformer; valid for a recommender: 0"); });
}

void check_ranks(PlanChecker& check, const Plan& plan) {
  const TablePlan& tables = plan.tables;
  const std::int64_t ranks = plan.stage_ranks();
  check.require(tables.ranks == 0 || tables.sharding != TableSharding::replicated, "--table-ranks", [&] {
    return fmt::format("\"{}\" shards tables, and --table-sharding replicated does not; valid: 0", tables.ranks);
  });
  check.require(tables.ranks == 0 || ranks % tables.ranks == 0, "--table-ranks", [&] {
    return fmt::format("\"{}\" does not divide the {} ranks of the job; nearest divisors: {}", tables.ranks, ranks,
                       nearest_divisors(ranks, tables.ranks));
  });
}

// Whole tables go to whole ranks.
void check_whole_tables(PlanChecker& check, const workload::Recommender& r, const Plan& plan) {
  if (plan.tables.sharding != TableSharding::table) { return; }
  const std::int64_t tables = workload::sharded_tables(r, plan.tables), ranks = plan.table_ranks();
  check.require(tables == 0 || tables >= ranks, "--table-sharding", [&] {
    std::int64_t fewer = std::min(tables, ranks);
    while (plan.stage_ranks() % fewer != 0) { --fewer; }
    const char* const all = plan.tables.replicated_below > 0 ? " that are not replicated" : "";
    return fmt::format(
        "{} whole tables{} are fewer than the {} ranks; valid: --table-sharding row, column or balanced, which split "
        "tables, or --table-ranks {}, which replicates them",
        tables, all, ranks, fewer);
  });
}

}  // namespace

void check_tables(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan) {
  const TablePlan& tables = plan.tables;
  check.require(tables.ranks >= 0, "--table-ranks",
                [&] { return fmt::format("\"{}\" is negative; valid: 0 (all ranks) or more", tables.ranks); });
  check.require(tables.replicated_below >= 0, "--replicate-tables-below", [&] {
    return fmt::format("\"{}\" is negative; valid: 0 (no table is replicated) or more", tables.replicated_below);
  });
  if (!check.ok()) { return; }
  if (!model.is_recommender()) {
    const auto none = [&](bool unset, const char* flag) {
      check.require(unset, flag, [] { return std::string("needs a recommender: a model with embedding tables"); });
    };
    none(tables.sharding == TableSharding::none, "--table-sharding");
    none(tables.ranks == 0, "--table-ranks");
    none(tables.replicated_below == 0, "--replicate-tables-below");
    check.require(!plan.offload.tables, "--offload",
                  [] { return std::string("tables needs a recommender: a model with embedding tables"); });
    return;
  }
  check.require(tables.sharding != TableSharding::none, "--table-sharding",
                [] { return std::string("is missing: table, row, column, replicated or balanced"); });
  check_dense(check, job, plan);
  if (!check.ok()) { return; }
  check_ranks(check, plan);
  if (check.ok()) { check_whole_tables(check, model.recommender, plan); }
}

}  // namespace orrery::parallel
