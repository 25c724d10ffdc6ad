#include "sim/model/plan.h"

namespace hyperoffload {

const char* to_string(ActionKind kind) {
  switch (kind) {
    case ActionKind::kPrefetch:
      return "prefetch";
    case ActionKind::kStore:
      return "store";
    case ActionKind::kDetach:
      return "detach";
  }
  return "";
}

}  // namespace hyperoffload
