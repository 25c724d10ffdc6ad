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
  StreamTimeline timeline;
  KinetoWanted wanted;
  const bool linked = files.size() > 1;
  const bool fabric =
      options.collectives && one_word(*options.collectives, "--collectives", {"fabric"}) == "fabric";
  const bool memory = options.tensors && one_word(*options.tensors, "--tensors", {"memory"}) == "memory";
  if (linked && memory)
    throw InputError("--tensors memory", "an execution trace beside it", "one of the two");
  wanted.launches = linked || memory;
  wanted.host_ops = linked;
  wanted.memory = memory;
  const KinetoEvents events = read_kineto_events(files[0], wanted, options, timeline, maker);
  const std::vector<OpId> ops = timeline.emit(maker, options);
  for (const auto& [event, collective] : events.collectives) {
    Op& op = maker.op_at(ops[event]);
    op.collective = collective;
    if (fabric) op.duration.reset();
  }
  if (!events.collectives.empty())
    maker.remark(fmt::format("{} with kind, bytes and group{}", count_of(events.collectives.size(), "collective"),
                             fabric ? ": the machine's fabric gives them their time"
                                    : "; they keep their measured time (--collectives fabric leaves it to the machine)"));
  if (events.unsaid_collectives > 0)
    maker.remark(fmt::format("{} of NCCL of which the trace doesn't say what {} carr{}: timed ops",
                             count_of(events.unsaid_collectives, "kernel"), events.unsaid_collectives == 1 ? "it" : "they",
                             events.unsaid_collectives == 1 ? "ies" : "y"));
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
