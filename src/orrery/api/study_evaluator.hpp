// The evaluator of studies, implemented by the estimator and the search.
#pragma once

#include <memory>
#include <string>

#include "orrery/api/study_inputs.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/study/run.hpp"

namespace orrery::api {

class StudyEvaluator final : public study::Evaluator {
 public:
  // `base_hash`: of everything but the settings of points.
  StudyEvaluator(const std::string& data_directory, const study::Study& study, std::string base_hash);

  void evaluate(const study::Point& point, results::StudyRow& row) override;
  // Of the last row: those of its point, and of a threshold also the value and the plan whose figures the row has.
  [[nodiscard]] const Settings& settings_of_row() const { return settings_of_row_; }
  // Of the last point that was priced.
  [[nodiscard]] const std::vector<std::string>& not_modelled() const { return not_modelled_; }
  [[nodiscard]] results::Sensitivity sensitivity(const study::Point& point, const std::string& path, double factor,
                                                 double base_step_time);

 private:
  // One job on one machine, with an estimator that keeps what it has priced.
  struct Ready {
    std::string text;
    Inputs inputs;
    std::unique_ptr<estimate::Estimator> estimator;
  };
  [[nodiscard]] Result<Ready*> ready(const Settings& settings, const estimate::Request& request);
  [[nodiscard]] Result<results::Estimate> physical(const Settings& settings, const estimate::Request& request,
                                                   hardware::Cluster& cluster);
  // With what does not fit in the second tier.
  [[nodiscard]] Result<results::Estimate> expanded_physical(const Settings& settings, const estimate::Request& request,
                                                            hardware::Cluster& cluster);
  [[nodiscard]] Result<results::Estimate> searched(const Settings& settings, const estimate::Request& request,
                                                   hardware::Cluster& cluster);
  void price(const Settings& settings, results::StudyRow& row);
  void price_mad_max(const Settings& settings, const estimate::Request& request, results::StudyRow& row);
  void find_threshold(const Settings& settings, results::StudyRow& row);

  std::string data_directory_;
  const study::Study& study_;
  std::string base_hash_;
  StudyInputs inputs_;
  std::unique_ptr<Ready> ready_;
  Settings settings_of_row_;
  std::vector<std::string> not_modelled_;
};

// FNV-1a, 64 bits, as hexadecimal digits.
[[nodiscard]] std::string hash_of(std::string_view text);

}  // namespace orrery::api
