// The command line: one function a sub-command.
#pragma once
namespace hyperoffload {}
