#include "sim/workload/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/workload/program_builder.h"
#include "sim/workload/splitmix.h"

namespace hyperoffload {
namespace {

std::int64_t triangle(std::int64_t n) { return n * (n + 1) / 2; }  // 1 + 2 + ... + n

}  // namespace

std::int64_t attended_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t window, bool chunked) {
  const auto up_to = [&](std::int64_t positions) {  // keys seen by positions 0 .. positions - 1
    if (window <= 0) return triangle(positions);
    if (chunked) return positions / window * triangle(window) + triangle(positions % window);
    const std::int64_t rising = std::min(positions, window);
    return triangle(rising) + (positions - rising) * window;
  };
  return up_to(cached + new_tokens) - up_to(cached);
}

std::int64_t selected_pairs(std::int64_t new_tokens, std::int64_t cached, std::int64_t top_k) {
  return attended_pairs(new_tokens, cached, top_k, false);
}

std::int64_t kept_tokens(std::int64_t capacity, std::int64_t window) {
  return window > 0 ? std::min(capacity, window) : capacity;
}

Bytes kv_bytes_per_token(const LayerSpec& layer, DataType type, const RankPlace& place) {
  if (const auto* a = std::get_if<AttentionSpec>(&layer.mixer)) {
    const std::int64_t heads = shared_share(a->kv_heads, place.tp, place.tp_rank).count();
    return bytes_of(heads * (a->head_dim + a->v_head_dim), type);
  }
  if (const auto* a = std::get_if<MlaSpec>(&layer.mixer))
    return bytes_of(a->kv_lora + a->rope_dim + (a->indexer ? a->indexer->head_dim : 0), type);
  if (const auto* a = std::get_if<CompressedAttentionSpec>(&layer.mixer)) {
    const Bytes compressed = bytes_of(a->head_dim + (a->indexer ? a->indexer->head_dim : 0), type);
    return bytes_of(a->head_dim, type) + Bytes(a->ratio > 0 ? compressed.value / a->ratio : 0);
  }
  return Bytes(0);
}

bool grows_without_end(const LayerSpec& layer) {
  if (const auto* a = std::get_if<AttentionSpec>(&layer.mixer)) return a->window == 0;
  return std::holds_alternative<MlaSpec>(layer.mixer);
}

Bytes state_bytes_per_sample(const LayerSpec& layer, DataType type, const RankPlace& place) {
  if (const auto* m = std::get_if<MambaSpec>(&layer.mixer)) {
    const std::int64_t heads = even_share(m->heads, place.tp, place.tp_rank).count();
    const std::int64_t groups = shared_share(m->groups, place.tp, place.tp_rank).count();
    const std::int64_t channels = heads * m->head_dim + 2 * groups * m->state;
    return bytes_of(heads * m->head_dim * m->state, m->state_type.value_or(type)) +
           bytes_of(channels * (m->conv - 1), type);
  }
  if (const auto* d = std::get_if<DeltaNetSpec>(&layer.mixer)) {
    const std::int64_t keys = even_share(d->key_heads, place.tp, place.tp_rank).count() * d->key_dim;
    const std::int64_t heads = even_share(d->value_heads, place.tp, place.tp_rank).count();
    const std::int64_t channels = 2 * keys + heads * d->value_dim;
    return bytes_of(heads * d->key_dim * d->value_dim, d->state_type.value_or(type)) +
           bytes_of(channels * (d->conv - 1), type);
  }
  return Bytes(0);
}

TokenGroup own_tokens(const TokenGroup& group, const RankPlace& place) {
  TokenGroup mine = group;
  for (std::int64_t* tokens : {&mine.new_tokens, &mine.cached, &mine.capacity, &mine.persistent})
    *tokens /= place.cp;
  return mine;
}

GroupCache::GroupCache(ProgramBuilder& builder, const TokenGroup& group, const std::string& suffix,
                       Bytes token_bytes, std::int64_t kept, std::int64_t layer, bool whole)
    : builder_(builder),
      group_(group),
      name_(group.cache + suffix),
      token_bytes_(token_bytes.value * group.sequences),
      kept_(kept),
      visible_(std::min(kept, group.cached + group.new_tokens)),
      layer_(layer) {
  // A rolling window is one tensor: its tokens change places.
  const std::int64_t wanted = builder.context.spec.kv_block;
  block_tokens_ = !whole && wanted > 0 && kept >= group.capacity ? wanted : kept;
  // Every block takes its bytes, read or not.
  for (std::int64_t i = 0; i * block_tokens_ < kept_; ++i) block(i);
}

int GroupCache::block(std::int64_t index) const {
  if (block_tokens_ >= kept_) return builder_.state(name_, Bytes(token_bytes_.value * kept_));
  const std::int64_t from = index * block_tokens_, to = std::min(kept_, from + block_tokens_);
  return builder_.state(fmt::format("{}.{}", name_, index), Bytes(token_bytes_.value * (to - from)),
                        from < group_.persistent);
}

std::vector<int> GroupCache::written() const {
  std::vector<int> ids;
  if (block_tokens_ >= kept_) return {block(0)};
  for (std::int64_t i = group_.cached / block_tokens_; i * block_tokens_ < visible_; ++i)
    ids.push_back(block(i));
  return ids;
}

std::vector<int> GroupCache::updated() const {
  if (group_.cached == 0) return {};
  if (block_tokens_ >= kept_) return {block(0)};
  if (group_.cached % block_tokens_ == 0) return {};
  return {block(group_.cached / block_tokens_)};
}

std::vector<int> GroupCache::read() const {
  std::vector<int> ids;
  if (block_tokens_ >= kept_) return {block(0)};
  for (std::int64_t i = 0; i * block_tokens_ < visible_; ++i) ids.push_back(block(i));
  return ids;
}

std::vector<int> GroupCache::selected(std::int64_t top_k, const SparseSpec& sparse, std::int64_t pass) const {
  const std::int64_t blocks = (visible_ + block_tokens_ - 1) / block_tokens_;
  const std::int64_t wanted = std::min(blocks, (top_k + block_tokens_ - 1) / block_tokens_);
  if (block_tokens_ >= kept_ || wanted == blocks) return read();
  // The block written now is always one of them. Of the others each keeps its place from step to step
  // with probability `reuse`: its epoch is the last step at which it was drawn anew.
  std::set<std::int64_t> chosen{blocks - 1};
  for (std::int64_t slot = 0; static_cast<std::int64_t>(chosen.size()) < wanted; ++slot) {
    std::int64_t epoch = pass;
    while (epoch > 0 && SplitMix(sparse.seed, layer_, slot, epoch, 1).unit() < sparse.reuse) --epoch;
    SplitMix draw(sparse.seed, layer_, slot, epoch, 2);
    chosen.insert(draw.below(blocks - 1));
  }
  std::vector<int> ids;
  for (std::int64_t i : chosen) ids.push_back(block(i));
  return ids;
}

}  // namespace hyperoffload
