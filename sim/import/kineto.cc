#include "sim/import/kineto.h"

#include <fmt/format.h>

#include "sim/import/kineto_events.h"
#include "sim/import/kineto_link.h"
#include "sim/import/kineto_memory.h"
#include "sim/import/option_value.h"
#include "sim/import/timeline.h"
#include "sim/import/trace_maker.h"
#include "sim/model/error.h"

namespace hyperoffload {

ImportResult import_kineto(const std::vector<std::string>& files, const ImportOptions& options) {
  TraceMaker maker("kineto", files);
  Timeline timeline;
  KinetoWanted wanted;
  const bool linked = files.size() > 1;
  const bool memory = options.tensors && one_word(*options.tensors, "--tensors", {"memory"}) == "memory";
  if (linked && memory)
    throw InputError("--tensors memory", "an execution trace beside it", "one of the two");
  wanted.launches = linked || memory;
  wanted.host_ops = linked;
  wanted.memory = memory;
  const KinetoEvents events = read_kineto_events(files[0], wanted, options, timeline, maker);
  const std::vector<OpId> ops = timeline.emit(maker, options);
  if (linked) link_execution_trace(files[1], events, ops, maker);
  if (memory) add_memory_tensors(events, ops, maker);
  if (!linked && !memory)
    maker.remark("no tensors: the trace names none (an execution trace beside it gives them)" +
                 (events.memory_events == 0
                      ? std::string()
                      : fmt::format("; {} of the device {} not used (--tensors memory makes tensors of them)",
                                    count_of(events.memory_events, "memory event"),
                                    events.memory_events == 1 ? "is" : "are")));
  return maker.finish("kernel events");
}

}  // namespace hyperoffload
