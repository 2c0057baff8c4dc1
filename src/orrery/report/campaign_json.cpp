#include "orrery/config/json.hpp"
#include "orrery/report/campaign.hpp"

namespace orrery::report {

namespace of_campaign {
namespace {

using config::json_list;
using config::json_object;
using config::JsonValue;
using config::Node;

Node range_json(const results::Range& range) {
  return json_object({{"p10", range.p10}, {"p50", range.p50}, {"p90", range.p90}});
}

Node checkpoint_json(const results::Campaign& campaign) {
  const auto& facts = campaign.checkpoint;
  return json_object({{"bytes", facts.total},
                      {"bytes_per_device", facts.per_device},
                      {"interval_s", facts.interval},
                      {"useful_s", facts.useful},
                      {"pause_s", facts.pause},
                      {"flush_s", facts.flush},
                      {"load_s", facts.load},
                      {"days_with_half_the_interval", facts.halved},
                      {"days_with_twice_the_interval", facts.doubled},
                      {"kept", facts.kept},
                      {"storage_Bps", facts.storage},
                      {"needed_Bps", facts.needed},
                      {"memory_interval_s", facts.memory_interval},
                      {"recoverable_from_memory", facts.recoverable}});
}

Node spares_json(const results::Campaign& campaign) {
  return json_list(campaign.spares, [](const results::SpareRow& row) {
    return json_object({{"spares", row.spares},
                        {"probability", row.probability},
                        {"throughput_waiting", row.waiting},
                        {"throughput_fixed_replicas", row.fixed},
                        {"throughput_regrouped", row.regrouped},
                        {"chosen", row.chosen}});
  });
}

Node changes_json(const results::Campaign& campaign) {
  return json_list(campaign.what_ifs, [](const results::CampaignChange& change) {
    return json_object({{"change", change.change},
                        {"flags", change.flags},
                        {"days_saved", change.days_saved},
                        {"usd_change", change.usd_change}});
  });
}

JsonValue simulation_json(const results::Campaign& campaign) {
  if (!campaign.simulation) { return nullptr; }
  const auto& runs = *campaign.simulation;
  return json_object({{"campaigns", runs.campaigns},
                      {"mean_days", runs.mean_days},
                      {"standard_error_days", runs.standard_error_days},
                      {"days", range_json(runs.days)},
                      {"interruptions", runs.interruptions},
                      {"closed_form_days", runs.closed_form_days},
                      {"note", runs.note}});
}

JsonValue wide_area_json(const results::Campaign& campaign) {
  if (!campaign.wide_area) { return nullptr; }
  const auto& area = *campaign.wide_area;
  return json_object({{"sites", area.sites},
                      {"local_steps", area.local_steps},
                      {"aggregate", area.aggregate},
                      {"round_s", area.round},
                      {"exchange_s", area.exchange},
                      {"exposed_s", area.exposed},
                      {"compute_utilization", area.compute_utilization},
                      {"sent_per_round_B", area.sent_per_round},
                      {"traffic_reduction", area.reduction},
                      {"synchronous_compute_utilization", area.synchronous_utilization},
                      {"loss_factor", area.loss_factor},
                      {"faster_than_synchronous", area.faster_than_synchronous}});
}

void add_expenses(Node& json, const results::Campaign& campaign) {
  const auto& money = campaign.money;
  const auto& energy = campaign.energy;
  const auto& carbon = campaign.carbon;
  const auto of = [](const auto& expense, auto member) {
    return expense ? JsonValue((*expense).*member) : JsonValue(nullptr);
  };
  add_fields(json, {{"gpu_hours", campaign.device_hours},
                    {"spare_gpu_hours", campaign.spare_device_hours},
                    {"usd", of(money, &results::CampaignMoney::usd)},
                    {"usd_per_gpu_hour", of(money, &results::CampaignMoney::per_hour)},
                    {"usd_basis", of(money, &results::CampaignMoney::basis)},
                    {"energy_J", of(energy, &results::CampaignEnergy::site_J)},
                    {"energy_computing_J", of(energy, &results::CampaignEnergy::busy_J)},
                    {"energy_down_J", of(energy, &results::CampaignEnergy::idle_J)},
                    {"energy_network_J", of(energy, &results::CampaignEnergy::network_J)},
                    {"energy_basis", of(energy, &results::CampaignEnergy::basis)},
                    {"co2_kg", of(carbon, &results::CampaignCarbon::location_kg)},
                    {"co2_basis", of(carbon, &results::CampaignCarbon::basis)},
                    {"embodied_co2_kg", of(carbon, &results::CampaignCarbon::embodied_kg)},
                    {"embodied_basis", of(carbon, &results::CampaignCarbon::embodied_basis)}});
}

}  // namespace
}  // namespace of_campaign

std::string campaign_json(const results::Campaign& campaign) {
  using namespace of_campaign;
  Node causes = json_object({}), bar = json_object({});
  for (const auto& cause : campaign.causes) { config::set_field(causes, cause.name, cause.interruptions); }
  for (const auto& part : campaign.bar) { config::set_field(bar, part.name, part.share); }
  Node json = json_object(
      {{"schema", "orrery.campaign/1"},
       {"model", campaign.estimate.model},
       {"cluster", campaign.estimate.cluster},
       {"devices", campaign.estimate.devices},
       {"feasible", campaign.estimate.feasible},
       {"step_time_s", campaign.estimate.step_time},
       {"tokens", campaign.tokens},
       {"steps", campaign.steps},
       {"days", range_json(campaign.days)},
       {"useful_days", campaign.useful_days},
       {"luck_days", campaign.luck_days},
       {"start", config::text_or_null(campaign.start)},
       {"end", config::text_or_null(campaign.end)},
       {"end_p10", config::text_or_null(campaign.end_p10)},
       {"end_p90", config::text_or_null(campaign.end_p90)},
       {"ettr", campaign.ettr},
       {"formula", campaign.formula},
       {"time_shares", std::move(bar)},
       {"interruptions", campaign.interruptions.p50},
       {"interruptions_range", range_json(campaign.interruptions)},
       {"interruptions_by_cause", std::move(causes)},
       {"mean_time_between_interruptions_s", campaign.mean_time_between_interruptions_s},
       {"failures_per_1000_node_days", campaign.failures_per_1000_node_days},
       {"failure_range", JsonValue(json_list(std::vector<double>{campaign.failures_low, campaign.failures_high},
                                             [](double rate) { return config::json_number(rate); }))},
       {"failure_counts", campaign.failure_counts},
       {"checkpoint_interval_s", campaign.checkpoint.interval},
       {"checkpoint", checkpoint_json(campaign)},
       {"nodes", campaign.nodes},
       {"node_devices", campaign.node_devices},
       {"replica_nodes", campaign.replica_nodes},
       {"largest_devices", campaign.largest_devices > 0 ? JsonValue(campaign.largest_devices) : JsonValue(nullptr)},
       {"spares", spares_json(campaign)}});
  add_fields(json, {{"ettr_by_devices", json_list(campaign.by_size, [](const results::SizePoint& point) {
                       return json_object({{"devices", point.devices}, {"ettr", point.ettr}});
                     })}});
  add_expenses(json, campaign);
  add_fields(json, {{"what_ifs", changes_json(campaign)},
                    {"simulation", simulation_json(campaign)},
                    {"wide_area", wide_area_json(campaign)},
                    {"chosen", campaign.chosen},
                    {"warnings", campaign.warnings},
                    {"not_modelled", campaign.not_modelled}});
  return config::json_document(json);
}

}  // namespace orrery::report
