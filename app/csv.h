// A CSV table as `run` and `sweep` write it (RFC 4180: quotes, doubled inside; LF or CRLF). O(text).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hyperoffload {

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // as many fields each as there are columns
  std::vector<std::size_t> lines;              // where each row begins, from 1
};

// InputError with the line when a row has another number of fields or a quote stays open.
CsvTable parse_csv(const std::string& text, const std::string& source);

}  // namespace hyperoffload
