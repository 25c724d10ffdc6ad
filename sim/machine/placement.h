// Where bytes lie in the pool, and what of it is taken.
//
// The pool is made of bins, each a socket or several that are always used alike. Folding is exact:
// - Striped copies touch all sockets of a node (or all in reach) with equal parts at once. Their streams over
//   two of these sockets then cross links of equal bandwidth together with the same other streams, so that
//   max-min sharing, which is unique, gives them equal rates: S links of bandwidth B with a stream of a
//   copy's 1/S each hold exactly when one link of S x B holds with the whole copy as one flow of weight 1
//   (each stream weighs 1/S). All traffic of the machine is placed by one rule, so none is an exception.
// - Over all nodes that needs every path to be alike once a copy is under way, so it is done only where no
//   switch or uplink is declared; else a node's sockets are one bin, a copy has a stream a node.
// - Equal parts of a capacity: a bin holds S times a socket's.
// Local, hashed and load-driven placement use single sockets: never folded.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/model/hardware.h"
#include "sim/model/ids.h"

namespace hyperoffload {

struct Bin {
  int node = 0;     // -1: sockets of all nodes
  int sockets = 1;  // how many
  int first_socket = 0;
  Bytes capacity;
};

// Striped, a copy has a stream from each of its bins, all alike to a part of a byte; the bytes here are
// whole. `padding` is what rounding adds there.
struct Extent {
  int bin = 0;
  Bytes bytes;
  Bytes padding;
};
using Extents = std::vector<Extent>;

// `fold`: false keeps every socket a bin of its own (to test the folding).
std::vector<Bin> pool_bins(const Hardware& hardware, bool fold);

// One allocation: the bytes [from, from + bytes) of a tensor of an NPU.
struct PoolPiece {
  int npu = 0;
  TensorId tensor;  // none: workspace
  Bytes from, bytes;
};

// Room is a matter of sums, as allocated: in all of the pool, in what an NPU reaches of it (its own socket
// if placement is local, else its node's sockets or all), and in the NPU's share if it is held to one.
// Within its reach an allocation goes where placement says; what a socket has no room for goes on to the
// next ones, so that what fits in the sum fits.
class Pool {
 public:
  // `unlimited`: everything fits; exceeded() tells by how much it would not.
  Pool(const Hardware& hardware, bool fold, bool unlimited);

  const std::vector<Bin>& bins() const { return bins_; }
  // From now on the NPU takes no more than fair_pool(): what its plan was checked with.
  void hold_to_share(int npu);
  // Whether pieces of one NPU would all find room together.
  bool fits(std::span<const PoolPiece> pieces) const;
  // Must fit. Where the bytes lie; to be handed back to give().
  Extents take(const PoolPiece& piece);
  void give(const PoolPiece& piece, const Extents& extents);
  // True: where() tells where a piece lies, nobody needs to remember.
  bool fixed() const { return fixed_; }
  Extents where(const PoolPiece& piece) const;

  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }            // allocated: rounded up
  Bytes requested() const { return requested_; }  // what was asked for
  Bytes peak() const { return peak_; }
  Bytes requested_peak() const { return requested_peak_; }
  Bytes exceeded() const { return exceeded_; }
  Bytes used_in(std::size_t bin) const { return taken_[bin]; }
  std::uint64_t gives() const { return gives_; }  // how often bytes were given back
  // As allocated: what pieces take, what an NPU could have at most, and what is left of that.
  Bytes needs(std::span<const PoolPiece> pieces) const;
  Bytes most_for(int npu) const;
  Bytes left_for(int npu) const;
  // "the pool is short of ..." for a piece that does not fit.
  std::string shortage(const PoolPiece& piece) const;

 private:
  struct Link {
    double bandwidth = 0;
    double bytes = 0;  // of living allocations behind it
  };
  struct Quota {  // of an NPU, or of what some NPUs reach
    Bytes capacity = Bytes::max(), used;
    Bytes left() const { return capacity - used; }
  };

  void build_links();
  std::vector<int> path(int npu, int bin) const;  // indices into links_
  std::size_t region(int npu) const;              // index into regions_
  Extents place(const PoolPiece& piece);
  Extents by_load(const PoolPiece& piece);
  void spill(const PoolPiece& piece, Extents& extents) const;
  int least_loaded(int npu, Bytes bytes) const;
  void account(int npu, const Extent& extent, bool take);

  Hardware hardware_;
  std::vector<Bin> bins_;
  std::vector<Bytes> taken_;  // a bin
  std::vector<Link> links_;   // of load-driven placement
  std::vector<Quota> npus_, regions_;
  Bytes capacity_, used_, requested_, peak_, requested_peak_, exceeded_;
  std::uint64_t gives_ = 0;
  bool unlimited_, fixed_;
};

}  // namespace hyperoffload
