// Matching of the messages of one chunk: per sender and size the number of expected minus arrived messages. Nearly
// always at most two are not 0; these need no hash table. Private to the room.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace orrery::simulate {

class Channels {
 public:
  // Expected minus arrived messages. The reference is valid until the next call.
  [[nodiscard]] std::int32_t& balance(std::uint32_t peer, std::uint64_t bytes) {
    for (std::uint32_t i = 0; i < used_; ++i) {
      if (few_[i].peer == peer && few_[i].bytes == bytes) { return few_[i].balance; }
    }
    if (table_) {
      Cell& cell = table_->find(peer, bytes);
      if (cell.used) { return cell.channel.balance; }
    }
    for (std::uint32_t i = 0; i < used_; ++i) {
      if (few_[i].balance == 0) { return reset(few_[i], peer, bytes); }
    }
    if (used_ < few_.size()) { return reset(few_[used_++], peer, bytes); }
    if (!table_) { table_ = std::make_unique<Table>(); }
    return table_->add(peer, bytes);
  }

  [[nodiscard]] bool is_empty() const { return used_ == 0; }  // nothing was expected, nothing has arrived
  void clear() {
    used_ = 0;
    table_.reset();
  }

  // Calls use(peer, bytes) once for each channel with expected messages.
  template <class Use>
  void each_expected(Use&& use) const {
    for (std::uint32_t i = 0; i < used_; ++i) {
      if (few_[i].balance > 0) { use(few_[i].peer, few_[i].bytes); }
    }
    if (!table_) { return; }
    for (const Cell& cell : table_->cells) {
      if (cell.used && cell.channel.balance > 0) { use(cell.channel.peer, cell.channel.bytes); }
    }
  }

 private:
  struct Channel {
    std::uint64_t bytes = 0;
    std::uint32_t peer = 0;
    std::int32_t balance = 0;
  };
  struct Cell {
    Channel channel;
    bool used = false;
  };
  struct Table {
    std::vector<Cell> cells = std::vector<Cell>(16);
    std::size_t count = 0;

    // The cell of the key, or the free one where it would be.
    Cell& find(std::uint32_t peer, std::uint64_t bytes) {
      std::size_t at = ((bytes ^ (std::uint64_t{peer} << 32)) * 0x9E3779B97F4A7C15U >> 32) & (cells.size() - 1);
      while (cells[at].used && (cells[at].channel.peer != peer || cells[at].channel.bytes != bytes)) {
        at = (at + 1) & (cells.size() - 1);
      }
      return cells[at];
    }
    std::int32_t& add(std::uint32_t peer, std::uint64_t bytes) {
      if (2 * (count + 1) > cells.size()) {
        std::vector<Cell> old(2 * cells.size());
        old.swap(cells);
        for (const Cell& cell : old) {
          if (cell.used) { find(cell.channel.peer, cell.channel.bytes) = cell; }
        }
      }
      ++count;
      Cell& cell = find(peer, bytes);
      cell = {{bytes, peer, 0}, true};
      return cell.channel.balance;
    }
  };

  static std::int32_t& reset(Channel& channel, std::uint32_t peer, std::uint64_t bytes) {
    channel = {bytes, peer, 0};
    return channel.balance;
  }

  std::array<Channel, 2> few_;
  std::uint32_t used_ = 0;
  std::unique_ptr<Table> table_;
};

}  // namespace orrery::simulate
