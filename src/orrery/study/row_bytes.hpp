// Rows and lists of ids as bytes, between processes of one run on machines of one kind. Private to the room.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/results/study.hpp"

namespace orrery::study {

[[nodiscard]] std::string bytes_of_rows(std::span<const results::StudyRow> rows);
[[nodiscard]] std::vector<results::StudyRow> rows_of_bytes(std::string_view bytes);

[[nodiscard]] std::string bytes_of_ids(std::span<const std::int64_t> ids);
[[nodiscard]] std::vector<std::int64_t> ids_of_bytes(std::string_view bytes);

}  // namespace orrery::study
