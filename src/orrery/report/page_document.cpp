#include "orrery/report/page_document.hpp"

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/core/error.hpp"
#include "orrery/report/page.hpp"

namespace orrery::report {

namespace {

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '&': safe += "&amp;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += c;
    }
  }
  return safe;
}

// `<` would end the script element that holds the data.
std::string script_text(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) { c == '<' ? void(safe += "\\u003c") : void(safe += c); }
  return safe;
}

}  // namespace

std::string_view embedded_text(std::string_view name) {
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name == name) { return file.bytes; }
  }
  throw_internal_error("embedded file", __FILE__, __LINE__);
}

std::string page_document(std::string_view title, std::string_view data, std::string_view script) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src "
      "'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n",
      html_text(title));
  page += embedded_text("page.css");
  page += "</style>\n</head>\n<body>\n<main id=\"page\"></main>\n<script type=\"application/json\" id=\"data\">";
  page += script_text(data);
  page += "</script>\n<script>\n";
  page += embedded_text("chart.min.js");
  page += "</script>\n<script>\n";
  page += embedded_text("common.js");
  page += "</script>\n<script>\n";
  page += script;
  return page + "</script>\n</body>\n</html>\n";
}

std::string runs_page(const std::vector<NamedResult>& runs) {
  std::string data;
  for (const auto& run : runs) {
    data += data.empty() ? "[" : ",";
    data += "{\"name\":" + config::json_text(run.name) + ",\"result\":" + run.json + "}";
  }
  return page_document("Results", data + "]", embedded_text("runs.js"));
}

}  // namespace orrery::report
