// Reads and checks what a request names: the first step of every question about a job.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/estimate/spread.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::api {

struct Inputs {
  workload::Model model;
  hardware::Cluster cluster;
  hardware::Stack stack;
  estimate::Spreads spreads;
};

// Fails, at --by-message, if that is asked for on a cluster without a topology, whose routes messages would take.
[[nodiscard]] Result<void> require_routes(const hardware::Cluster& cluster, bool by_message);

// Sets the interval in which 80 % of measured times of such jobs lie.
[[nodiscard]] results::Estimate with_uncertainty(results::Estimate estimate, const Inputs& inputs,
                                                 const parallel::Job& job);

// Default of tokens per sequence if a training request does not give it: none, or the model's longest sequence.
enum class Length : std::uint8_t { typed, longest };

// Where the parts of a request come from: the catalogue, or a study that changes them.
struct InputSources {
  std::function<Result<workload::Model>(const estimate::Request&)> model;
  std::function<Result<hardware::Cluster>(const estimate::Request&)> cluster;
  // `on`: the accelerator it runs on; nullptr: not known.
  std::function<Result<hardware::Stack>(const std::string& name, const hardware::Accelerator* on)> stack;
  std::function<Result<estimate::Spreads>()> spreads;
};
[[nodiscard]] InputSources catalogue_sources(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                             hardware::UnlikeNodes unlike = hardware::UnlikeNodes::refused);

// All errors of the request and of its parts.
[[nodiscard]] Result<Inputs> read_inputs(const InputSources& sources, const estimate::Request& request,
                                         Length length = Length::typed);

// All errors of the request and of the files that it names. `unlike`: whether the question is answered on nodes of
// several kinds (hardware::Catalogue::cluster).
[[nodiscard]] Result<Inputs> read_inputs(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                         const estimate::Request& request,
                                         hardware::UnlikeNodes unlike = hardware::UnlikeNodes::refused,
                                         Length length = Length::typed);

}  // namespace orrery::api
