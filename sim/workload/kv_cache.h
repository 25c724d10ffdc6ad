// What a layer keeps of the tokens it has seen, and what of it a pass reads.
//
// Lengths in tokens of one sample. A window layer's cache holds the window only. With kv_block the cache
// is split into tensors of so many tokens each (all samples of a group together); blocks that hold none
// of the tokens cached at the start are born when first written. Ranges are half-open.
#pragma once

#include "sim/workload/program.h"

namespace hyperoffload {

// (query, key) pairs a causal mask lets through: query i of `new_tokens` sees itself and all before it,
// those of the cache included; no more than `window` keys (0: all), or those of its own chunk of `window`.
std::int64_t attended_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t window, bool chunked);

// The same where each query reads at most `top_k` keys.
std::int64_t selected_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t top_k);

// Tokens of a capacity that a layer keeps.
std::int64_t kept_tokens(std::int64_t capacity, std::int64_t window);

// Bytes one token takes in a layer's cache on this rank (0: none), and of its state of fixed size a sample.
Bytes kv_bytes_per_token(const LayerSpec& layer, DataType type, const RankPlace& place);
Bytes state_bytes_per_sample(const LayerSpec& layer, DataType type, const RankPlace& place);
bool grows_without_end(const LayerSpec& layer);

// A group as one context-parallel rank holds it: its part of the tokens.
TokenGroup own_tokens(const TokenGroup& group, const RankPlace& place);

class ProgramBuilder;

// The cache tensors of one group in one layer.
class GroupCache {
 public:
  // `token_bytes` of one sample; `kept` tokens of each at most. `whole`: one tensor, whatever kv_block says.
  GroupCache(ProgramBuilder& builder, const TokenGroup& group, const std::string& suffix, Bytes token_bytes,
             std::int64_t kept, std::int64_t layer, bool whole = false);
  // States written by the new tokens, and those of them that already hold some.
  std::vector<int> written() const;
  std::vector<int> updated() const;
  // All states with tokens after the pass; or, where each query reads only `top_k` tokens, some of them.
  std::vector<int> read() const;
  std::vector<int> selected(std::int64_t top_k, const SparseSpec& sparse, std::int64_t pass) const;
  Bytes token_bytes() const { return token_bytes_; }  // all samples
  std::int64_t visible() const { return visible_; }   // tokens a sample there after the pass

 private:
  int block(std::int64_t index) const;
  ProgramBuilder& builder_;
  const TokenGroup& group_;
  std::string name_;
  Bytes token_bytes_;
  std::int64_t kept_, visible_, block_tokens_, layer_;
};

}  // namespace hyperoffload
