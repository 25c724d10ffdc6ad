// What keeps an iteration above its ideal time, from its figures alone, and in one sentence.
//
// A direction whose link is under way longer than the ideal iteration lasts can't carry as much in
// that time, whatever the order: where that excess is at least half of the stall, its bandwidth
// binds, and `needed` is the bandwidth that would carry the same bytes in the ideal time; where the link did not get
// its own bandwidth, what it shares with others binds. Otherwise
// the largest cause of the stall names the resource. Weakness: it judges the transfers that were
// made; a plan that moves fewer bytes may need less.
#pragma once

#include "sim/model/hardware.h"
#include "sim/report/result.h"

namespace hyperoffload {

// `changed`: a policy changed the program, so that its own ops are among what is `other`.
Binding binding_of(const NpuFigures& figures, const Hardware& hardware, bool changed = false);

}  // namespace hyperoffload
