// Runs functions in forked children and brings their bytes back through pipes. An InputError,
// InfeasibleError or CheckFailure thrown there is thrown here again; a child that dies otherwise
// (a signal, out of memory) is a CheckFailure that says so. A child ends with its parent.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hyperoffload {

using IsolatedWork = std::function<std::string()>;

std::string run_isolated(const IsolatedWork& work);

// Told in the parent as each work ends: its bytes, or null where it failed. False: no more are started.
using WorkEnded = std::function<bool(std::size_t work, const std::string* bytes)>;

// All of them, at most `jobs` at once; results in the order of the works. The error thrown is that of the
// first work in that order that failed; the others are finished first. Works that were not started have
// empty results.
std::vector<std::string> run_isolated_all(const std::vector<IsolatedWork>& works, int jobs,
                                          const WorkEnded& ended = {});

}  // namespace hyperoffload
