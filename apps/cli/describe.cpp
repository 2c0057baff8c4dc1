// `orrery describe`: one catalogue entry with its sources.
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/config/node.hpp"

namespace orrery::cli {

namespace of_describe {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery describe h100-sxm
  orrery describe dgx-h100 > mine.yaml      # start of a cluster file of your own
  orrery describe my-model/config.json --as llama
)";

struct Options {
  std::string name, as;
  bool json = false;
};

Result<std::string> as_json(const std::string& name, const std::string& yaml) {
  ORRERY_TRY(entry, config::parse_yaml(yaml, name));
  config::Node document = config::mapping_node();
  config::add(document, "schema", config::text_node("orrery.describe/1"));
  config::add(document, "entry", std::move(entry));
  return config::print_json(document);
}

Result<int> run(const Options& options) {
  if (options.name.empty()) { return fail(flag_place("NAME"), "is missing; \"orrery list KIND\" prints names"); }
  ORRERY_TRY(data, data_directory());
  ORRERY_TRY(yaml, api::Orrery(data).describe(options.name, options.as));
  if (!options.json) {
    print(yaml);
    return 0;
  }
  ORRERY_TRY(json, as_json(options.name, yaml));
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
  command.positional({"name", "NAME", "name of a model, cluster, accelerator, link or stack, or a YAML file", ""},
                     [options](const std::string& name) { options->name = name; });
  command.option({"--as", "TYPE", "read a Hugging Face config.json as this model_type, whatever its own", ""},
                 [options](const std::string& as) { options->as = as; });
  command.toggle(
      {"--json", "", "print one JSON document (orrery.describe/1) and nothing else", std::string(kOutputGroup)},
      [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
