#include "app/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/error.h"

namespace hyperoffload {

CsvTable parse_csv(const std::string& text, const std::string& source) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::size_t> line_numbers;
  std::size_t at = 0, line = 1;
  while (at < text.size()) {
    line_numbers.push_back(line);
    std::vector<std::string> fields;
    for (bool more = true; more;) {
      std::string field;
      if (at < text.size() && text[at] == '"') {
        const std::size_t opened = line;
        for (++at;; ++at) {
          if (at >= text.size())
            throw InputError(fmt::format("{}:{}", source, opened), "a quote that stays open", "CSV");
          if (text[at] == '"' && (++at >= text.size() || text[at] != '"')) break;
          line += text[at] == '\n';
          field += text[at];
        }
      }
      while (at < text.size() && text[at] != ',' && text[at] != '\n') field += text[at++];
      more = at < text.size() && text[at] == ',';
      if (!more && !field.empty() && field.back() == '\r') field.pop_back();
      ++at;
      fields.push_back(std::move(field));
    }
    ++line;
    lines.push_back(std::move(fields));
  }
  if (lines.empty()) throw InputError(source, "an empty file", "CSV with a line of column names");
  CsvTable table;
  table.columns = std::move(lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].size() != table.columns.size())
      throw InputError(fmt::format("{}:{}", source, line_numbers[i]), fmt::format("{} fields", lines[i].size()),
                       fmt::format("{}, as many as there are columns", table.columns.size()));
    table.rows.push_back(std::move(lines[i]));
    table.lines.push_back(line_numbers[i]);
  }
  return table;
}

}  // namespace hyperoffload
