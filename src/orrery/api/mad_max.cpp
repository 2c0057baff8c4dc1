// Requests with MAD-Max's semantics: inputs are read, strategies and batch are checked, prices computed.
#include "orrery/api/mad_max.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/madmax/answer.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

namespace {

using estimate::Request;

void note(const Failure& more, const char* flag, Failure& failure) {
  for (auto diagnostic : more.diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, flag}; }
    failure.diagnostics.push_back(std::move(diagnostic));
  }
}

Result<madmax::System> read_system(const std::string& data_directory, const Request& request) {
  const hardware::Catalogue catalogue(data_directory);
  if (!madmax::is_system(data_directory, request.cluster) &&
      catalogue.cluster(request.cluster, 0, hardware::UnlikeNodes::modelled)) {
    return fail(
        Place{"", 0, 0, "--cluster"},
        request.cluster +
            " lacks the figures of MAD-Max's equations (utilisations, blend of the all-reduce); valid: a system "
            "madmax/... of \"orrery list clusters\", or a YAML file of one (see \"orrery describe madmax/...\")");
  }
  return madmax::load_system(data_directory, request.cluster, request.devices.value_or(0));
}

Result<MadMaxInputs> read_named(const std::string& data_directory, const Request& request) {
  Failure failure{estimate::problems(request)};
  const auto model = workload::load_model(data_directory, request.model, request.as);
  const auto work = model ? madmax::work_of(*model, request.precision, request.seq.value_or(0))
                          : Result<madmax::SampleWork>(tl::make_unexpected(model.error()));
  auto system = read_system(data_directory, request);
  if (!work) { note(work.error(), "--model", failure); }
  if (!system) { note(system.error(), "--cluster", failure); }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return MadMaxInputs{*work, std::move(*system)};
}

madmax::Task task_of(parallel::Task task) {
  switch (task) {
    case parallel::Task::pretrain: return madmax::Task::pretrain;
    case parallel::Task::finetune: return madmax::Task::finetune;
    case parallel::Task::inference: return madmax::Task::inference;
  }
  return madmax::Task::pretrain;
}

struct Question {
  madmax::RunSettings job;
  madmax::GivenStrategies typed;
  madmax::LocalBatches local;
};

// All given fields except the batch.
Result<Question> question_of(const Request& request, const MadMaxInputs& named) {
  Failure failure;
  auto typed = madmax::strategies_from(request.strategy, named.work, named.system);
  auto local = madmax::local_batches_from(request.local_batch, named.work);
  auto frozen = madmax::frozen_from(request.freeze, named.work);
  if (!typed) { note(typed.error(), "--strategy", failure); }
  if (!local) { note(local.error(), "--local-batch", failure); }
  if (!frozen) { note(frozen.error(), "--freeze", failure); }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  Question question{{}, std::move(*typed), std::move(*local)};
  question.job.task = task_of(request.task);
  question.job.frozen = *frozen;
  question.job.memory_rule = request.memory_rule.value_or(true);
  return question;
}

}  // namespace

Result<results::MadMaxEstimate> mad_max_estimate(const MadMaxInputs& named, const Request& request, bool with_events) {
  ORRERY_TRY(question, question_of(request, named));
  const auto strategies = madmax::completed(question.typed, named.work);
  ORRERY_TRY(batch,
             madmax::global_batch_of(request.global_batch, question.local, strategies, named.work, named.system));
  question.job.global_batch = batch;
  madmax::Evaluator evaluator(named.work, named.system, question.job);
  return madmax::estimate(evaluator, strategies, with_events);
}

Result<results::MadMaxEstimate> Orrery::mad_max_estimate(const Request& request, bool with_events) const {
  ORRERY_TRY(named, read_named(data_directory_, request));
  return api::mad_max_estimate(named, request, with_events);
}

Result<results::MadMaxSearch> Orrery::mad_max_plan(const Request& request, std::size_t top) const {
  ORRERY_TRY(named, read_named(data_directory_, request));
  return api::mad_max_plan(named, request, top);
}

// A local batch has an effect only if the strategy of its class is fixed.
Result<results::MadMaxSearch> mad_max_plan(const MadMaxInputs& named, const Request& request, std::size_t top) {
  ORRERY_TRY(question, question_of(request, named));
  if (!request.global_batch) {
    return fail(Place{"", 0, 0, "--global-batch"}, "is missing: the global batch at which strategies are compared");
  }
  if (!question.local.empty()) {
    return fail(Place{"", 0, 0, "--local-batch"},
                "is not valid here: strategies are searched, and local batches follow from them; give --global-batch");
  }
  question.job.global_batch = *request.global_batch;
  madmax::Evaluator evaluator(named.work, named.system, question.job);
  return madmax::search(evaluator, {question.typed, top});
}

}  // namespace orrery::api
