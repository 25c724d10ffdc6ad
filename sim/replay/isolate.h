// Runs a function in a forked child and brings its bytes back through a pipe. An InputError,
// InfeasibleError or CheckFailure thrown there is thrown here again; a child that dies otherwise
// (a signal, out of memory) is a CheckFailure that says so. Nothing the child prints is lost.
#pragma once

#include <functional>
#include <string>

namespace hyperoffload {

std::string run_isolated(const std::function<std::string()>& work);

}  // namespace hyperoffload
