// Runs a function in a forked child and brings its result back: SimGrid allows one simulation a
// process, so every replay in a test runs in a child of its own.
//
// The child's exceptions arrive as what they were: InputError, InfeasibleError and CheckFailure keep
// their type, anything else is a std::runtime_error; so is a child that dies (its signal is named).
// The child leaves with _exit: it flushes nothing and runs no destructor of the parent's objects.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/run_record.h"

namespace hyperoffload {

std::string run_in_child(const std::function<std::string()>& work);
RunRecord record_from_child(const std::function<RunRecord()>& work);

// Calls work(0), ..., work(jobs - 1) at the same time, a child each; results in that order.
std::vector<std::string> run_in_children(int jobs, const std::function<std::string(int)>& work);

// A RunRecord as bytes and back, for pipes between processes of one build only.
std::string encode_record(const RunRecord& record);
RunRecord decode_record(const std::string& bytes);

}  // namespace hyperoffload
