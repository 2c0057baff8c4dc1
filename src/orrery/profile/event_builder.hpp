// Collects the events of a file to a Profile. Private to the room.
#pragma once

#include <string>
#include <unordered_map>

#include "orrery/profile/kineto_event.hpp"
#include "orrery/profile/profile.hpp"

namespace orrery::profile {

class EventBuilder {
 public:
  EventBuilder(Profile& profile, bool other_devices) : profile_(profile), other_devices_(other_devices) {}

  void add(const RawEvent& raw);

  // Call at the end of the file.
  void finish();

 private:
  // Positions in a list of tracks by the numbers of its tracks, as texts.
  class Tracks {
   public:
    explicit Tracks(std::vector<Track>& tracks) : tracks_(tracks) {}
    TrackIndex index(std::string_view process, std::string_view thread);

   private:
    std::vector<Track>& tracks_;
    std::unordered_map<std::string, TrackIndex> known_;
    std::string key_;
    TrackIndex last_ = 0;
  };

  Category category(std::string_view text);
  void add_complete(const RawEvent& raw, Category category);
  [[nodiscard]] std::uint32_t detail(const RawEvent& raw, const Event& event);
  [[nodiscard]] std::uint32_t comm_detail(const RawEvent& raw);
  [[nodiscard]] std::uint32_t sync_detail(const RawEvent& raw);

  Profile& profile_;
  bool other_devices_;  // as of KinetoOptions
  Tracks threads_{profile_.threads};
  Tracks streams_{profile_.streams};
  std::unordered_map<std::string, std::pair<Category, std::uint64_t>> categories_;
  std::pair<const std::string, std::pair<Category, std::uint64_t>>* last_category_ = nullptr;
};

}  // namespace orrery::profile
