#include "orrery/profile/link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/profile/kineto_read.hpp"

namespace orrery::profile::link_test {

using ::testing::HasSubstr;

// A host trace of operators on one thread, in the form of schema 1.0.1 or of later ones.
std::string host_text(const std::vector<std::string>& names, bool old_form, int pid = 9, int first_rf = 0) {
  std::string nodes = R"({"name":"[pytorch|profiler|execution_graph|thread]","id":2,"parent":1,"tid":1,"rf_id":0})";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t rf = first_rf == 0 ? 0 : static_cast<std::size_t>(first_rf) + i;
    nodes += old_form
                 ? fmt::format(R"(,{{"name":"{}","id":{},"rf_id":{},"parent":2,"tid":1,"inputs":[[1,[2]],"a"]}})",
                               names[i], i + 3, rf)
                 : fmt::format(R"(,{{"id":{},"name":"{}","ctrl_deps":2,"inputs":{{"values":[[1]]}},"attrs":[{{"name":)"
                               R"("rf_id","type":"uint64","value":{}}},{{"name":"tid","type":"uint64","value":1}}]}})",
                               i + 3, names[i], rf);
  }
  return fmt::format(R"({{"schema":"{}","pid":{},"nodes":[{}],"finish_ts":3}})",
                     old_form ? "1.0.1" : "1.1.0-chakra.0.0.4", pid, nodes);
}

std::string device_text(const std::vector<std::string>& names, int pid = 9, int first_rf = 0) {
  std::string events;
  for (std::size_t i = 0; i < names.size(); ++i) {
    events += fmt::format(R"({}{{"ph":"X","cat":"cpu_op","name":"{}","pid":{},"tid":55,"ts":{},"dur":5,"args":)"
                          R"({{"Record function id":{}}}}})",
                          i == 0 ? "" : ",", names[i], pid, 10 * i, first_rf == 0 ? 0 : first_rf + static_cast<int>(i));
  }
  return fmt::format(R"({{"traceEvents":[{}]}})", events);
}

Result<Link> linked(const std::string& host_text, const std::string& device_text) {
  ORRERY_TRY(host, read_host_trace_bytes(host_text, "host.json"));
  ORRERY_TRY(device, read_kineto_bytes(device_text, "device.json"));
  return link(host, device);
}

std::vector<std::string> operators(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) { names.push_back(fmt::format("op{}", i * i % 17)); }
  return names;
}

TEST(Link, ids_link_operators_in_any_order) {
  const auto names = operators(20);
  for (const bool old_form : {true, false}) {
    const auto found = linked(host_text(names, old_form, 9, 100), device_text(names, 9, 100));
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_TRUE(found->by_id);
    EXPECT_EQ(found->linked, 20U);
  }
}

TEST(Link, structure_links_one_step_of_many) {
  const auto step = operators(40);
  std::vector<std::string> many;
  for (int i = 0; i < 5; ++i) { many.insert(many.end(), step.begin(), step.end()); }
  const auto found = linked(host_text(step, true), device_text(many));
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_FALSE(found->by_id);
  EXPECT_EQ(found->linked, 40U);
}

TEST(Link, operators_that_one_file_lacks_are_skipped) {
  auto host = operators(60);
  auto device = host;
  host.insert(host.begin() + 20, "only in host");
  device.insert(device.begin() + 40, {"only in device", "another"});
  const auto found = linked(host_text(host, false), device_text(device));
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_EQ(found->operators, 61U);
  EXPECT_EQ(found->linked, 60U);
  EXPECT_EQ(found->unlinked, std::vector<std::uint64_t>{23});  // ids begin at 3
}

TEST(Link, files_of_different_processes_are_refused) {
  const auto found = linked(host_text(operators(5), true, 9), device_text(operators(5), 10));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text(),
            "device.json: is of process 10, but host.json is of process 9: the files are not of the same run");
}

TEST(Link, nothing_in_common_links_nothing) {
  const auto found = linked(host_text(operators(30), true), device_text(std::vector<std::string>(30, "other")));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->linked, 0U);
}

TEST(HostTrace, a_truncated_file_is_refused_with_the_byte_and_read_if_tolerant) {
  const std::string text = host_text(operators(5), true);
  const std::string cut = text.substr(0, text.find("\"id\":6"));
  const auto strict = read_host_trace_bytes(cut, "host.json");
  ASSERT_FALSE(strict);
  EXPECT_THAT(strict.error().text(), HasSubstr("after 4 whole nodes; --tolerant reads the file up to there"));
  const auto tolerant = read_host_trace_bytes(cut, "host.json", {true, false, false, {}});
  ASSERT_TRUE(tolerant) << tolerant.error().text();
  EXPECT_EQ(tolerant->nodes.size(), 4U);
}

}  // namespace orrery::profile::link_test
