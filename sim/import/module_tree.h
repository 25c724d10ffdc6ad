// A network as PyTorch prints it: "ResNet(\n  (conv1): Conv2d(3, 64, kernel_size=(7, 7), ...)\n ...)".
#pragma once

#include <string>
#include <vector>

namespace hyperoffload {

struct Module {
  std::string name;       // "conv1"; of the outermost empty
  std::string type;       // "Conv2d"
  std::string arguments;  // "3, 64, kernel_size=(7, 7), bias=False"; empty where it has children
  int line = 0;
  std::vector<Module> children;

  // The n-th number of an argument: of "kernel_size=(7, 5)" 7 and 5, of "padding=1" 1 for any n; of a
  // positional argument its place is its name ("0", "1"). `otherwise` when the argument is absent.
  int number(const std::string& argument, int n, int otherwise) const;
  bool flag(const std::string& argument, bool otherwise) const;  // "bias=False"
};

// InputError with the line for what doesn't look like this.
Module parse_module_tree(const std::string& text, const std::string& source);

}  // namespace hyperoffload
