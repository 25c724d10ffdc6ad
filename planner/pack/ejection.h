// Looks for a packing of a given height by putting each item where it costs least, and taking out what lies there.
//
// Items wait in a list; the next one goes to the lowest base where it fits, else to the base where those that it
// overlaps weigh least: they are taken out and wait again, and it gains weight, so that next time
// others make room (the idea of guided ejection search: Nagata and Braysy, Operations Research Letters 2009). Rounds
// differ by who is next and in which order all were placed first; weights are kept within a round.
//
// Who meets whom is a matrix of bits, one a pair of pieces; what is placed stands in two lists, by bottom and by
// top, so a move is one scan of both: O(pieces placed), about 5 us for 2,000. Memory: pieces^2 / 8 bytes.
// For hundreds to thousands of items where some room is to spare; weakness: proves nothing, and without room
// to spare goes round in circles, where floor_search.h is better for small instances.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "planner/pack/pack.h"

namespace hyperoffload {

class Ejection {
 public:
  // Items' lowest offset must be 0.
  explicit Ejection(const std::vector<PackItem>& items);
  static constexpr std::size_t kMostPieces = 30'000;
  bool too_large() const { return too_large_; }

  // Offsets below `height` for all, or nothing. `scans`: list entries that may be looked at; what was is taken off.
  std::vector<std::int64_t> search(std::int64_t height, std::int64_t& scans);

 private:
  struct Piece {  // distinct (item, offset, size)
    int item;
    std::int64_t offset, size;
  };
  struct Edge {
    std::int64_t at;
    int piece;
    bool operator<(const Edge& other) const { return at != other.at ? at < other.at : piece < other.piece; }
  };
  struct Round {
    bool random = false;        // next is any of those that wait; else the one that was taken out last
    double life = 0.5;          // the first order: by size x lifetime^this
    double gain = 1;            // of weight, in mean weights
  };

  bool meet(const std::uint64_t* row, int piece) const { return row[piece / 64] >> (piece % 64) & 1U; }
  bool run(const Round& round, std::int64_t height, std::int64_t& scans, std::int64_t allowed);
  std::int64_t cheapest_base(int item, std::int64_t last, double& cost);
  template <class NextFrom, class NextTo>
  std::int64_t sweep(std::int64_t last, double& cost, NextFrom next_from, NextTo next_to);
  void take_out(int item);
  void put(int item, std::int64_t base);
  void make_room(int item, std::int64_t base);

  bool too_large_ = false;
  int items_ = 0;
  std::size_t words_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::vector<int>> of_item_;
  std::vector<std::uint64_t> meets_;  // words_ by piece
  std::vector<double> life_;          // by item
  std::vector<std::int64_t> extent_;
  std::vector<std::int64_t> base_;
  std::vector<double> weight_;
  std::vector<char> placed_;
  std::vector<int> waiting_;
  std::vector<Edge> bottoms_, tops_;  // of what is placed, sorted
  std::vector<std::pair<std::int64_t, double>> from_, to_;
  std::mt19937_64 random_;
  std::int64_t scanned_ = 0;
};

}  // namespace hyperoffload
