#include "orrery/hardware/citations.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace orrery::hardware {
namespace {

using config::Node;

constexpr std::array<std::string_view, 7> kNoFigures = {"name", "description", "maker",  "accelerator",
                                                        "link", "basis",       "sources"};

std::string joined(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

// An item of a list goes by its name, or by its number when it has none.
std::string item_name(const Node& item, std::size_t index) {
  const Node* name = item.find("name");
  return name == nullptr ? std::to_string(index) : name->scalar;
}

void add_figures(const Node& node, const std::string& path, std::vector<std::string>& figures) {
  for (const auto& member : node.members) {
    const bool is_figure = std::find(kNoFigures.begin(), kNoFigures.end(), member.key) == kNoFigures.end();
    if (is_figure) { add_figures(member.value, joined(path, member.key), figures); }
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    add_figures(node.items[i], joined(path, item_name(node.items[i], i)), figures);
  }
  if (node.is_scalar()) { figures.push_back(path); }
}

std::vector<std::string> figures_of(const Node& description) {
  std::vector<std::string> figures;
  add_figures(description, "", figures);
  return figures;
}

std::vector<std::string> citations_of(const Node& description) {
  std::vector<std::string> all;
  if (const Node* sources = description.find("sources")) {
    for (const auto& cited : sources->members) {
      for (auto& figure : cited_figures(cited.key)) { all.push_back(std::move(figure)); }
    }
  }
  return all;
}

// Whether a citation of `whole` covers `figure`: it is the same or a part of it.
bool covers(const std::string& whole, const std::string& figure) {
  return figure.starts_with(whole) && (figure.size() == whole.size() || figure[whole.size()] == '.');
}

}  // namespace

std::vector<std::string> cited_figures(std::string_view key) {
  std::vector<std::string> figures;
  while (!key.empty()) {
    const auto comma = key.find(',');
    std::string_view figure = key.substr(0, comma);
    while (figure.starts_with(' ')) { figure.remove_prefix(1); }
    while (figure.ends_with(' ')) { figure.remove_suffix(1); }
    if (!figure.empty()) { figures.emplace_back(figure); }
    key = comma == std::string_view::npos ? std::string_view() : key.substr(comma + 1);
  }
  return figures;
}

bool is_unverified(std::string_view citation) { return citation.starts_with("unverified"); }

std::vector<std::string> uncited_figures(const Node& description) {
  auto figures = figures_of(description);
  const auto citations = citations_of(description);
  std::erase_if(figures, [&](const std::string& figure) {
    return std::any_of(citations.begin(), citations.end(), [&](const auto& cited) { return covers(cited, figure); });
  });
  return figures;
}

std::vector<std::string> citations_of_nothing(const Node& description) {
  auto citations = citations_of(description);
  const auto figures = figures_of(description);
  std::erase_if(citations, [&](const std::string& cited) {
    return std::any_of(figures.begin(), figures.end(), [&](const auto& figure) { return covers(cited, figure); });
  });
  return citations;
}

}  // namespace orrery::hardware
