// The front of a recommender: embedding tables, the all-to-all of looked-up vectors, and the bottom MLP that it is
// overlapped with.
// docs/models/recommenders.md has the formulas.
//
// If ranks hold different tables, operators are those of the rank with the most work, and memory is that of the rank
// that holds the most. Rows are accessed uniformly: the lookups of a batch read rows (1 - (1 - 1/rows)^lookups)
// distinct rows, each once from memory; repeated reads are served by the cache.
#include <algorithm>
#include <cmath>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"
#include "orrery/workload/tables.hpp"

namespace orrery::workload {

namespace {

constexpr double kSector = 32.0;   // bytes: smallest memory access
constexpr double kRowId = 8.0;     // of a row index in a sample (int64)
constexpr double kSortKey = 8.0;   // row and position of a lookup while they are sorted (two int32)
constexpr int kSortPasses = 4;     // radix sort of 32 bits, 8 per pass
constexpr double kGradient = 4.0;  // of the sum of a row's gradients (fp32)

// Cost of tables, or parts of them, on one rank.
struct Load {
  double memory = 0, state = 0;               // bytes
  double gather = 0, reduce = 0, update = 0;  // bytes read and written
  double rows = 0, sums = 0;                  // of `gather`: rows of tables; of `reduce`: sums of gradients
  hardware::HeldBytes updated;                // of `update`
  double lookups = 0;                         // rows that samples look up on this rank
  double width = 0;                           // numbers per sample in the vectors that it makes
  double summed = 0, listed = 0,
         gradients = 0;  // gradients exchanged with replicas: all-reduced, all-gathered; and kept
};

// Sizes of the ranks that hold tables.
struct Place {
  double samples = 0;   // samples that access them
  double copies = 1;    // replicas, each for other samples
  double own = 0;       // samples of this rank
  double element = 0;   // of a stored weight
  double exchange = 0;  // of a looked-up vector in the all-to-all, and of its gradient
  double moment = 0, moment_row = 0;
  double shared = 0;  // of a gradient that replicas exchange
};

double sectors(double bytes) { return std::ceil(bytes / kSector) * kSector; }

void add(Load& load, const TablePart& part, const Place& at) {
  const double width = real(part.width), elements = part.count * part.rows * width;
  const double n = at.samples * part.lookups;
  const double read = distinct_rows(part.rows, n), read_by_all = distinct_rows(part.rows, n * at.copies);
  const double vectors = at.samples * width * at.exchange;
  const double state_row = width * at.moment + at.moment_row;
  load.memory += elements * at.element;
  load.state += part.count * part.rows * state_row;
  load.lookups += part.count * n;
  load.width += part.count * width;
  load.rows += part.count * read * sectors(width * at.element);
  load.gather += part.count * (read * sectors(width * at.element) + n * kRowId + vectors);
  // Lookups sorted by row; the gradient of every vector read; for rows with replicas, the sums written.
  load.reduce += part.count * (2.0 * kSortPasses * n * kSortKey + vectors);
  load.update += part.count * read_by_all * 2.0 * (sectors(width * at.element) + sectors(state_row));
  load.updated.tables += Bytes(part.count * read_by_all * 2.0 * sectors(width * at.element));
  load.updated.optimizer += Bytes(part.count * read_by_all * 2.0 * sectors(state_row));
  if (at.copies <= 1.0) { return; }
  load.sums += part.count * read * width * kGradient;
  load.reduce += part.count * read * width * kGradient;
  load.update += part.count * read_by_all * width * kGradient;
  load.updated.gradients += Bytes(part.count * read_by_all * width * kGradient);
  // All-reduce of whole tables, or all-gather of rows: whichever sends less. Rows count at most as a whole table:
  // without this limit more lookups could be faster, because an all-reduce on trees or in switches takes less than
  // twice an all-gather.
  const double whole = part.rows * width * at.shared, rows = at.copies * read * (width * at.shared + kRowId);
  (2.0 * whole <= rows ? load.summed : load.listed) += part.count * std::min(whole, rows);
  load.gradients += part.count * (2.0 * whole <= rows ? part.rows * width * kGradient : rows);
}

// The maximum over ranks: each figure separately, except the work, which is that of the busiest rank.
Load most_of(const std::vector<TableShare>& shares, const Place& at) {
  Load most;
  for (const TableShare& share : shares) {
    Load load;
    for (const TablePart& part : share) { add(load, part, at); }
    const bool busier = load.gather + load.reduce + load.update > most.gather + most.reduce + most.update;
    if (busier) {
      most.gather = load.gather;
      most.rows = load.rows;
      most.reduce = load.reduce;
      most.sums = load.sums;
      most.update = load.update;
      most.updated = load.updated;
      most.summed = load.summed;
      most.listed = load.listed;
    }
    if (load.memory + load.state + load.gradients > most.memory + most.state + most.gradients) {
      most.memory = load.memory;
      most.state = load.state;
      most.gradients = load.gradients;
    }
    most.lookups = std::max(most.lookups, load.lookups);
    most.width = std::max(most.width, load.width);
  }
  return most;
}

struct Names {
  std::string_view lookup, share, update, fetch, stream;
};
constexpr Names kSharded{"tables.lookup", "tables.share", "tables.update", "tables.fetch", "tables.stream"};
constexpr Names kReplicated{"small_tables.lookup", "small_tables.share", "small_tables.update", "small_tables.fetch",
                            "small_tables.stream"};

// In forward order the update comes before the exchange between replicas, and that before the sums: backward runs the
// list in reverse.
// From the second tier come the rows that are looked up; rows that are updated pass the device with their state, beside
// the kernel that updates them.
void append_tables(std::vector<Operator>& list, const Names& names, const Load& load, bool everywhere, bool offloads) {
  Operator update = streamed(OperatorTag::tables, names.update, {}, stream(load.update));
  update.backward_input.held = load.updated;
  const Bytes streamed_rows = (load.updated.tables + load.updated.optimizer) / 2.0;  // read or written
  update.in_place = {Bytes(load.memory), Bytes(load.state), Bytes(load.gradients), {}};
  if (offloads) { update.in_place.fetched = max(Bytes(load.rows), streamed_rows); }
  const auto stream_end = [&](End end) {
    if (!offloads || streamed_rows == Bytes(0)) { return; }
    list.push_back(boundary(OperatorTag::tables, names.stream, Boundary::stream_rows, streamed_rows.value()));
    list.back().end = end;
  };
  stream_end(End::first);
  list.push_back(update);
  stream_end(End::second);
  const auto share = [&](Boundary kind, double bytes) {
    if (bytes <= 0.0) { return; }
    list.push_back(boundary(OperatorTag::tables, names.share, kind, bytes));
    list.back().everywhere = everywhere;
  };
  share(Boundary::share_sum, load.summed);
  share(Boundary::share_rows, load.listed);
  if (offloads) { list.push_back(boundary(OperatorTag::tables, names.fetch, Boundary::fetch_rows, load.rows)); }
  // A sort consists of a histogram, its passes, and the starts of the rows.
  list.push_back(
      streamed(OperatorTag::tables, names.lookup, stream(load.gather), stream(load.reduce, kSortPasses + 3)));
  list.back().forward.held.tables = Bytes(load.rows);
  list.back().backward_input.held.gradients = Bytes(load.sums);
  list.back().saved = Bytes(load.lookups * kRowId);
}

// Row indices that a rank sends or receives. A table split by columns sends them to every part.
double index_bytes(const TableShares& shares, const Slice& slice, const Place& at, double received) {
  double sent = 0;
  for (const TableShare& share : shares.sharded) {
    for (const TablePart& part : share) { sent += at.own * part.count * part.lookups; }
  }
  if (slice.tables.sharding == TableSharding::row) { sent *= real(slice.table_ranks); }  // one share represents all
  return std::max(sent, received) * kRowId;
}

void append_bottom(std::vector<Operator>& list, const Recommender& r, const hardware::Stack& stack, const Sizes& z) {
  std::int64_t in = r.dense_features;
  for (std::size_t i = 0; i < r.bottom.size(); ++i) {
    const std::size_t gemm = list.size();
    append_connected(list, stack, z, {"bottom.gemm", "bottom.activation", z.tokens, in, r.bottom[i]});
    if (i == 0) { list[gemm].backward_input = {}; }
    in = r.bottom[i];
  }
}

Place place_of(const Recommender& r, const hardware::Stack& stack, const Slice& slice, const Sizes& z) {
  Place at;
  at.own = z.tokens;
  at.element = hardware::element_size(r.table_precision).value();
  at.exchange = stack.tables.exchange_element > Bytes(0) ? stack.tables.exchange_element.value() : z.element;
  at.shared = stack.gradients.reduce_element.value();
  if (slice.pass == Pass::train) {
    at.moment = stack.tables.state_element.value();
    at.moment_row = stack.tables.row_state_element.value();
  }
  return at;
}

}  // namespace

std::vector<Operator> table_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Recommender& r = model.recommender;
  const Sizes z = sizes_of(model, stack, slice);
  const TableShares shares = table_shares(r, slice.tables, slice.table_ranks);
  const double ranks = real(slice.table_ranks), replicas = real(slice.replicas);
  Place at = place_of(r, stack, slice, z);
  std::vector<Operator> list;
  Operator exchange;
  if (!shares.sharded.empty()) {
    at.samples = at.own * ranks;
    at.copies = replicas / ranks;
    const Load load = most_of(shares.sharded, at);
    const bool sums = slice.tables.sharding == TableSharding::row;
    exchange = boundary(OperatorTag::tables, "tables.exchange", sums ? Boundary::pool_sum : Boundary::pool,
                        at.samples * load.width * at.exchange);
    list.push_back(boundary(OperatorTag::tables, "tables.spread", Boundary::lookup_indices,
                            index_bytes(shares, slice, at, load.lookups)));
    append_tables(list, kSharded, load, false, slice.offloads_tables);
    exchange.end = End::first;
    list.push_back(exchange);
  }
  if (!shares.replicated.empty()) {
    at.samples = at.own;
    at.copies = replicas;
    append_tables(list, kReplicated, most_of({shares.replicated}, at), true, slice.offloads_tables);
  }
  append_bottom(list, r, stack, z);
  if (exchange.end == End::first) {
    exchange.end = End::second;
    list.push_back(exchange);
  }
  if (!z.training) { keep_forward_only(list); }
  return list;
}

}  // namespace orrery::workload
