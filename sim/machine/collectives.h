// Collectives while time runs: ranks arrive, the last one starts the streams, all are over with the last
// stream.
//
// The k-th collective of a group at one rank is the k-th at every other; ranks that disagree about its kind
// or size are an InputError. Where each NPU has a trace of its own, the k-th `send` from a to b meets the
// k-th `recv` of b from a. Streams: collective.h. O(streams) a collective.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/machine/event_engine.h"
#include "sim/machine/platform.h"
#include "sim/model/collective.h"
#include "sim/model/graph.h"
#include "sim/model/hardware.h"

namespace hyperoffload {

// A flow between two ends; where no link between them can bind, a timer of bytes / cap.
void start_flow(EventEngine& engine, Flow& flow, const End& from, const End& to, double bytes, double cap,
                double weight, Completion& over);

// Whether some rank that takes part has members that don't.
bool reaches_beyond(const Group& group, const Hardware& hardware);

class Collectives {
 public:
  // `traces`: NPUs have traces of their own.
  Collectives(const Hardware& hardware, EventEngine& engine, const Platform& platform, bool traces)
      : hardware_(hardware), engine_(engine), platform_(platform), traces_(traces) {}

  bool takes_time(int npu, const Op& op);
  // `over` is told when all streams are. Returns a number for missing().
  int join(int npu, const Op& op, Completion& over);
  // The ranks that have not joined; empty: all have, or `over` waits for nothing there any more.
  std::string missing(int number, const Completion& over) const;

 private:
  struct Meeting : Completion {  // of ranks at one collective
    const Op* op = nullptr;      // of who came first
    std::vector<int> ranks;
    std::vector<char> here;
    std::size_t arrived = 0;
    std::vector<Completion*> waiting;
    std::deque<Flow> streams;
    int pending = 0;
    bool free = true;
    void done() override;
  };
  struct Party {  // ranks that meet again and again
    std::vector<int> ranks;
    std::vector<std::int64_t> joined;  // how often, by place
    std::int64_t first = 0;            // number of meetings.front()
    std::deque<int> meetings;          // indices into meetings_
  };
  struct Place {
    int party = -1;  // -1: no one to meet
    int index = 0;   // among its ranks
    Group const* group = nullptr;
  };

  Place place_of(int npu, const Op& op);
  int party_of(const std::vector<int>& ranks, int channel);
  int open_meeting(const Op& op, const std::vector<int>& ranks);
  void start(Meeting& meeting);
  void start_alone(Meeting& meeting, int npu, const Op& op);
  void check_same(const Op& first, const Op& op, int npu) const;

  const Hardware& hardware_;
  EventEngine& engine_;
  const Platform& platform_;
  const bool traces_;
  std::map<std::pair<int, std::vector<int>>, int> parties_by_ranks_;  // by channel: collectives, messages
  std::map<std::pair<const Op*, int>, Place> places_;                 // looked up only, never walked
  std::deque<Party> parties_;
  std::deque<Meeting> meetings_;
};

}  // namespace hyperoffload
