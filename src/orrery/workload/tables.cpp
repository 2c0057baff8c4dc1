#include "orrery/workload/tables.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"

namespace orrery::workload {

namespace {

constexpr double kLeastPart = 64.0;  // bytes: one HBM access

bool is_replicated(const Table& table, const TablePlan& plan) {
  return plan.sharding == TableSharding::replicated || table.rows < plan.replicated_below;
}

// Identical parts that are not placed yet.
struct Batch {
  TablePart one;  // count 1
  std::int64_t count = 0;

  [[nodiscard]] double memory() const { return one.rows * real(one.width); }
  [[nodiscard]] double work() const { return one.lookups * real(one.width); }
};

// Splits tables by rows until no part exceeds a rank's even share of memory or lookups; if there are fewer parts than
// ranks, into enough parts for all ranks.
void cut_to_shares(std::vector<Batch>& batches, std::int64_t ranks) {
  double memory = 0, work = 0;
  std::int64_t tables = 0;
  for (const Batch& batch : batches) {
    memory += real(batch.count) * batch.memory();
    work += real(batch.count) * batch.work();
    tables += batch.count;
  }
  for (Batch& batch : batches) {
    const double shares = real(ranks) * std::max(batch.memory() / memory, batch.work() / work);
    const double needed = std::max(std::ceil(shares - 1e-9), std::ceil(real(ranks) / real(tables)));
    const auto parts = std::clamp(static_cast<std::int64_t>(needed), std::int64_t{1}, ranks);
    batch.count *= parts;
    batch.one.rows /= real(parts);
    batch.one.lookups /= real(parts);
  }
}

// Puts parts on ranks.
class Placing {
 public:
  explicit Placing(std::int64_t ranks)
      : shares_(static_cast<std::size_t>(ranks)), memory_(shares_.size(), 0.0), work_(shares_.size(), 0.0) {}

  std::vector<TableShare> run(std::vector<Batch> batches) {
    double memory = 0, work = 0;
    for (const Batch& batch : batches) {
      memory += real(batch.count) * batch.memory();
      work += real(batch.count) * batch.work();
    }
    memory_share_ = memory / real(ranks());
    work_share_ = work / real(ranks());
    for (Batch& batch : batches) { place_evenly(batch); }
    const auto larger = [this](const Batch& a, const Batch& b) {
      return fullness(a.memory(), a.work()) > fullness(b.memory(), b.work());
    };
    std::stable_sort(batches.begin(), batches.end(), larger);
    for (const Batch& batch : batches) {
      for (std::int64_t i = 0; i < batch.count; ++i) { put(emptiest(batch), batch.one, 1.0); }
    }
    return std::move(shares_);
  }

 private:
  [[nodiscard]] std::int64_t ranks() const { return static_cast<std::int64_t>(shares_.size()); }
  [[nodiscard]] double fullness(double memory, double work) const {
    return std::max(memory / memory_share_, work / work_share_);
  }

  void put(std::size_t rank, const TablePart& part, double count) {
    TableShare& share = shares_[rank];
    auto identical = std::find_if(share.begin(), share.end(), [&](const TablePart& known) {
      return known.rows == part.rows && known.width == part.width && known.lookups == part.lookups;
    });
    if (identical == share.end()) {
      identical = share.insert(share.end(), TablePart{0.0, part.rows, part.width, part.lookups});
    }
    identical->count += count;
    memory_[rank] += count * part.rows * real(part.width);
    work_[rank] += count * part.lookups * real(part.width);
  }

  // Equal numbers of each on every rank; the remainder stays in the list.
  void place_evenly(Batch& batch) {
    const std::int64_t each = batch.count / ranks();
    if (each == 0) { return; }
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) { put(rank, batch.one, real(each)); }
    batch.count -= each * ranks();
  }

  [[nodiscard]] std::size_t emptiest(const Batch& batch) const {
    std::size_t best = 0;
    double least = 0;
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      const double full = fullness(memory_[rank] + batch.memory(), work_[rank] + batch.work());
      if (rank > 0 && full >= least) { continue; }
      best = rank;
      least = full;
    }
    return best;
  }

  std::vector<TableShare> shares_;
  std::vector<double> memory_, work_;  // [rank]
  double memory_share_ = 1.0, work_share_ = 1.0;
};

}  // namespace

std::int64_t column_width(std::int64_t width, double element, std::int64_t ranks) {
  for (std::int64_t parts = std::min(ranks, width); parts > 1; --parts) {
    if (width % parts == 0 && real(width / parts) * element >= kLeastPart) { return width / parts; }
  }
  return width;
}

std::int64_t sharded_tables(const Recommender& recommender, const TablePlan& plan) {
  std::int64_t count = 0;
  for (const Table& table : recommender.tables) { count += is_replicated(table, plan) ? 0 : table.count; }
  return count;
}

TableSharding default_sharding(const Recommender& recommender, const TablePlan& plan, std::int64_t ranks) {
  const std::int64_t tables = sharded_tables(recommender, plan);
  return tables == 0 || tables >= ranks ? TableSharding::table : TableSharding::row;
}

TableShares table_shares(const Recommender& recommender, const TablePlan& plan, std::int64_t ranks) {
  ORRERY_ASSERT(ranks >= 1);
  const double element = hardware::element_size(recommender.table_precision).value();
  TableShares shares;
  TableShare rows;
  std::vector<Batch> batches;
  for (const Table& table : recommender.tables) {
    const double count = real(table.count), all = real(table.rows);
    if (is_replicated(table, plan)) {
      shares.replicated.push_back({count, all, table.width, table.lookups});
    } else if (plan.sharding == TableSharding::row) {
      rows.push_back({count, all / real(ranks), table.width, table.lookups / real(ranks)});
    } else {
      const bool cut = plan.sharding == TableSharding::column;
      const std::int64_t width = cut ? column_width(table.width, element, ranks) : table.width;
      batches.push_back({{1.0, all, width, table.lookups}, table.count * (table.width / width)});
    }
  }
  if (!rows.empty()) {
    shares.sharded.push_back(std::move(rows));
  } else if (!batches.empty()) {
    if (plan.sharding == TableSharding::balanced) { cut_to_shares(batches, ranks); }
    shares.sharded = Placing(ranks).run(std::move(batches));
  }
  return shares;
}

double distinct_rows(double rows, double lookups) {
  if (rows <= 1.0) { return std::min(rows, lookups); }
  return -rows * std::expm1(lookups * std::log1p(-1.0 / rows));
}

}  // namespace orrery::workload
