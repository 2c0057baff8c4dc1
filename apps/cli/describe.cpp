// `orrery describe`: one catalogue entry with its sources.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/api/topology.hpp"
#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/topology.hpp"

namespace orrery::cli {

namespace of_describe {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery describe h100-sxm
  orrery describe dgx-h100 > mine.yaml      # start of a cluster file of your own
  orrery describe engines/sglang > my-engine.yaml   # start of your own: serve --engine my-engine.yaml
  orrery describe my-model/config.json --as llama
  orrery describe examples/networks/fat-tree.yaml --draw fat-tree.svg
  orrery describe network.yml               # a network file of ASTRA-sim, as a topology

Of a cluster with a topology, the figures of its network stand above the YAML (docs/models/topologies.md).
)";

struct Options {
  std::string name, as, drawing;
  bool json = false;
};

using Network = std::optional<api::ClusterNetwork>;

Result<void> draw(const std::string& file, const std::string& name, const Network& network) {
  const Place place = flag_place("--draw");
  if (!network) { return fail(place, quote(name) + " is not a cluster with a topology; only those are drawn"); }
  const bool is_svg = file.ends_with(".svg");
  if (!is_svg && !file.ends_with(".dot")) {
    return fail(place, quote(file) + ": valid: a name that ends in .svg or .dot");
  }
  constexpr std::size_t kMostNodes = 2000;
  const std::size_t nodes = network->topology.nodes.size();
  if (is_svg && nodes > kMostNodes) {
    return fail(place,
                fmt::format("{} nodes are too many for a picture; at most {}; .dot has no limit", nodes, kMostNodes));
  }
  return write_file(file, is_svg ? report::topology_svg(network->topology) : report::topology_dot(network->topology),
                    place);
}

Result<std::string> as_json(const std::string& name, const std::string& yaml, const Network& network) {
  ORRERY_TRY(entry, config::parse_yaml(yaml, name));
  config::Node document = config::mapping_node();
  config::add(document, "schema", config::text_node("orrery.describe/1"));
  config::add(document, "entry", std::move(entry));
  if (network) { config::add(document, "network", report::topology_json(network->figures, network->dimensions)); }
  return config::print_json(document);
}

Result<int> run(const Options& options) {
  if (options.name.empty()) { return fail(flag_place("NAME"), "is missing; \"orrery list KIND\" prints names"); }
  ORRERY_TRY(data, data_directory());
  ORRERY_TRY(yaml, api::Orrery(data).describe(options.name, options.as));
  const Network network = api::network_of(data, options.name);
  if (!options.drawing.empty()) {
    if (auto drawn = draw(options.drawing, options.name, network); !drawn) {
      return tl::make_unexpected(drawn.error());
    }
  }
  if (!options.json) {
    print((network ? report::topology_comment(network->figures, network->dimensions) : "") + yaml);
    return 0;
  }
  ORRERY_TRY(json, as_json(options.name, yaml, network));
  print(json + "\n");
  return 0;
}

}  // namespace
}  // namespace of_describe

Command describe_command() {
  using namespace of_describe;
  Command command("describe",
                  "Print a catalogue entry, or a YAML file that defines one, as YAML with the sources of its figures.");
  const auto options = std::make_shared<Options>();
  command.positional(
      {"name", "NAME", "name of a model, cluster, accelerator, link or stack, engines/NAME, or a YAML file", ""},
      [options](const std::string& name) { options->name = name; });
  command.option({"--as", "TYPE", "read a Hugging Face config.json as this model_type, whatever its own", ""},
                 [options](const std::string& as) { options->as = as; });
  command.option({"--draw", "FILE", "draw the network of a cluster with a topology: .svg, or .dot for Graphviz",
                  std::string(kOutputGroup)},
                 [options](const std::string& file) { options->drawing = file; });
  command.toggle(
      {"--json", "", "print one JSON document (orrery.describe/1) and nothing else", std::string(kOutputGroup)},
      [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
