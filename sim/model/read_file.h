// A whole file as text; gzip is recognised by content and unpacked; "-" is standard input.
#pragma once

#include <string>
#include <string_view>

namespace hyperoffload {

// `expected` says in the message what the file should have been ("a layer trace"). InputError for a
// missing file, a directory, an unreadable file, broken or truncated gzip.
std::string read_file(const std::string& path, const std::string& expected);

// What editors put before text in UTF-8; read_file() drops it.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// InputError where an unpacked file begins like another gzip file, or like text in UTF-16.
void check_begin(std::string_view text, const std::string& source);

// How messages name the file: the path, or "standard input" for "-".
std::string source_name(const std::string& path);

// The text itself, or what it unpacks to when it begins like a gzip file.
std::string gunzip_if_needed(std::string text, const std::string& source);

}  // namespace hyperoffload
